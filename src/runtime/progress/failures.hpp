// Failures: ends what cannot go on. It breaks communicators, tells their ranks, says where in the
// program each of them was, and keeps the flight record.
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

  // Without the lock.
  [[noreturn]] void raise(const ActiveOp& active);   // what went wrong with it
  // A call has ended with this error: throws it, with what there is to say about a broken group.
  [[noreturn]] void raise_late(Group& group, const Error& error);
  // A call could not be made, or go on, for want of memory: breaks its group, and throws that.
  [[noreturn]] void raise_starved(Group& group);
  std::string broken(const Group& group) const;   // why; empty: it is not
  void abort(Group& group, const std::string& why);   // on all ranks

  // With the lock held.
  void break_group(Group& group, Fault fault, const std::string& why, bool tell_others);
  // In a handler, of what came while everything was driven: on all ranks of all calls under way,
  // which must not wait for one that cannot go on. They are over, and have yet to leave the list.
  void break_all_under_way();
  std::string reason(const Group& group) const;   // that it is broken for, to whom asks

  // With the lock held: what is found inside the transport, or an operation. handle() deals with
  // it, outside of those.
  void inspect(const ActiveOp& active);
  void compare(int peer, const Key& key, const Fingerprint& theirs);
  void handle();
  bool is_pending() const { return !pending_.empty(); }
  bool is_own_pending() const;   // found by this rank, not reported by a peer
  bool arrives(int peer, const Key& key, const Fingerprint& fingerprint);   // as a Listener's
  void misfits(int peer, const Key& key, std::size_t came, std::size_t expected);
  void aborted(int peer, std::uint64_t context, const std::string& why);

  // With the lock held: communicators come and go.
  void opened(const Group& group);   // it may have been broken by a peer before
  void closed(std::uint64_t context) { closed_.add(context); }

 private:
  struct Trouble {
    std::uint64_t context;
    Fault fault;
    std::string why;
    bool tell_others;
  };

  void starve(Group& group);
  void tell_all(const Group& group, const std::string& what);
  void tell_where(Group& group);
  std::string whereabouts(const Group& group) const;
  void keep_record(const std::string& reason);   // on disk, if that was asked for
  void amend_record(const Group& group);         // by where this rank was

  SessionState& state_;
  ProgressThread& thread_;
  Driver& driver_;
  std::vector<Trouble> pending_;
  std::unordered_map<std::uint64_t, std::string> early_aborts_;  // of groups that are not open yet
  ClosedContexts closed_;
  std::optional<FlightRecord> kept_record_;   // once one is on disk
};

}  // namespace paceline
