// Failures: ends what cannot go on. It breaks communicators, tells their ranks, exchanges with them
// the line of the program that each is in (WorldConfig::call_site), and writes the flight record.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
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

  // Without the lock. Those that raise may wait 0.5 s for the call sites of the other ranks.
  [[noreturn]] void raise(const ActiveOp& active);   // the error of an operation that has failed
  // Throws the error that a call has ended with; where the group is broken for it, with call sites.
  [[noreturn]] void raise_with_call_sites(Group& group, const Error& error);
  // After a std::bad_alloc: breaks the group on all ranks, and throws a resource error.
  [[noreturn]] void raise_out_of_memory(Group& group);
  std::string broken(const Group& group) const;   // why; empty: it is not
  // Breaks the group on all ranks, for the reason that a program gives. Throws a usage error in a
  // child of fork().
  void abort(Group& group, const std::string& why);

  // With the lock held. A group breaks once: later reasons are dropped. Its calls are stopped, and
  // stay in SessionState::active until progress() finds them done.
  void break_group(Group& group, Fault fault, const std::string& why, bool tell_others);
  // In a handler: breaks, for the exception that is handled, the groups of all calls under way, on
  // all their ranks. Whose fault it was is not known.
  void break_all_under_way();
  std::string reason(const Group& group) const;   // why it is broken, with call sites, or empty

  // With the lock held. What goes wrong inside the transport or an operation is only noted there,
  // since it must not be called back: handle() breaks the groups afterwards.
  void inspect(const ActiveOp& active);
  void compare(int peer, const Key& key, const Fingerprint& theirs);
  void handle();
  bool is_pending() const { return !pending_.empty(); }
  bool is_own_pending() const;   // found by this rank, not reported by a peer
  bool arrives(int peer, const Key& key, const Fingerprint& fingerprint);   // as a Listener's
  void misfits(int peer, const Key& key, std::size_t came, std::size_t expected);
  void aborted(int peer, std::uint64_t context, const std::string& why);

  // With the lock held: communicators come and go.
  void opened(const Group& group);   // breaks it where a peer has aborted it before
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
  void exchange_call_sites(Group& group);
  std::string call_sites_of(const Group& group) const;
  void keep_record(const std::string& reason);   // on disk, if that was asked for
  void amend_record(const Group& group);         // by this rank's call site

  SessionState& state_;
  ProgressThread& thread_;
  Driver& driver_;
  std::vector<Trouble> pending_;
  std::unordered_map<std::uint64_t, std::string> early_aborts_;  // of groups that are not open yet
  ClosedContexts closed_;
  std::optional<FlightRecord> kept_record_;   // the one on disk; the first break alone writes one
};

}  // namespace paceline
