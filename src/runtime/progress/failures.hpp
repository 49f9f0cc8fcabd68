// Failures: breaks communicators that cannot go on. It stops their calls, tells their ranks,
// exchanges call sites with them (the line of the program that each rank is in), and writes the
// flight record.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/error.hpp"
#include "runtime/diagnostics/record.hpp"
#include "runtime/progress/closed.hpp"
#include "runtime/progress/progress_thread.hpp"
#include "runtime/progress/session_state.hpp"

namespace paceline {

class Failures {
 public:
  Failures(SessionState& state, ProgressThread& thread, Driver& driver)
      : state_(state), thread_(thread), driver_(driver) {}

  // These are called without the lock. raise...() may wait 0.5 s for the peers' call sites.
  [[noreturn]] void raise(const ActiveOp& active);   // throws the error of a failed operation
  // Throws a call's error. If that error broke the group, call sites are added.
  [[noreturn]] void raise_with_call_sites(Group& group, const Error& error);
  // Called after a std::bad_alloc: breaks the group on all ranks, and throws a resource error.
  [[noreturn]] void raise_out_of_memory(Group& group);
  std::string broken(const Group& group) const;   // why the group is broken; empty: it works
  // Breaks the group on all ranks, for the program's reason. Throws a usage error in a child of
  // fork().
  void abort(Group& group, const std::string& why);

  // All functions from here on require the lock.

  // Breaks a group once; later reasons are dropped. Its calls are stopped, and stay in
  // SessionState::active until progress() finds them done.
  void break_group(Group& group, Fault fault, const std::string& why, bool tell_others);
  // Called in a handler: breaks the groups of all calls under way, on all their ranks, since the
  // exception does not tell which call caused it.
  void break_all_under_way();
  std::string reason(const Group& group) const;   // why it is broken, with call sites, or empty

  // These only note a failure, since the transport and operations must not be called back where
  // they find one. handle() breaks the groups afterwards.
  void inspect(const ActiveOp& active);
  void compare(int peer, const Key& key, const Fingerprint& theirs);
  void handle();
  bool is_pending() const { return !pending_.empty(); }
  bool is_own_pending() const;   // true if this rank found a failure itself
  bool arrives(int peer, const Key& key, const Fingerprint& fingerprint);   // see Listener
  void misfits(int peer, const Key& key, std::size_t came, std::size_t expected);
  void aborted(int peer, std::uint64_t context, const std::string& why);

  void opened(const Group& group);   // breaks the group if a peer has aborted it already
  void closed(std::uint64_t context) { closed_.add(context); }
  bool has_closed(std::uint64_t context) const { return closed_.has(context); }

 private:
  struct Trouble {
    std::uint64_t context;
    Fault fault;
    std::string why;
    bool tell_others;
  };

  void break_out_of_memory(Group& group);
  void tell_all(const Group& group, const std::string& what);
  // Sends this rank's call site to the others, with `when` behind it, and waits for theirs.
  void exchange_call_sites(Group& group, std::string_view when = "");
  void await_call_sites(const std::function<bool()>& is_over);
  std::string call_sites_of(const Group& group) const;
  void keep_record(const std::string& reason);   // writes it to WorldConfig::record_dir, if set
  void amend_record(const Group& group, const std::string& call_site);   // adds it

  SessionState& state_;
  ProgressThread& thread_;
  Driver& driver_;
  std::vector<Trouble> pending_;
  std::unordered_map<std::uint64_t, std::string> early_aborts_;  // of groups not open yet
  ClosedContexts closed_;
  std::optional<FlightRecord> kept_record_;   // the record on disk, of the session's first break
};

}  // namespace paceline
