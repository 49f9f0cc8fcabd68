// CallCache: the calls that a communicator made last. The same call again, run or started, needs no
// checks, no layout and no choice: they would come out the same.
#pragma once

#include <array>
#include <functional>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "runtime/call.hpp"
#include "transport/transport.hpp"

namespace paceline {

struct ActiveOp;   // runtime/progress/session_state.hpp

// A call, and what else decides what is done.
struct Asked {
  const Call& call;
  std::uint64_t shares = 0;   // SharedBook::changes()
  std::uint64_t late = 0;     // ranks that it takes for late: ArrivalBook::Turn::digest
};

struct Prepared;   // runtime/schedule_cache.hpp

class CallCache {
 public:
  struct Entry {
    Call call;                // with the buffers of the last time
    bool in_place = false;
    std::uint64_t shares = 0;
    std::uint64_t late = 0;
    Fingerprint fingerprint;
    std::shared_ptr<Prepared> prepared;   // keeps its operations
    std::vector<std::shared_ptr<ActiveOp>> operations = {};   // several may be under way

    // One that has ended and that no request holds; null if there is none.
    const std::shared_ptr<ActiveOp>* free_operation() const;
  };

  // `count` is called before a call that was found begins; empty: nothing is.
  CallCache(int rank, int ranks, std::function<void(const Call&)> count = {})
      : rank_(rank), ranks_(ranks), count_(std::move(count)) {}

  // The entry of such a call, or nothing. Where there are shared buffers it is the same call only
  // with the same buffers.
  const Entry* find(const Asked& asked);
  void count(const Call& call) const {
    if (count_) count_(call);
  }
  // Does not keep calls that have to be looked through every time.
  void keep(const Asked& asked, const std::shared_ptr<Prepared>& prepared,
            std::shared_ptr<ActiveOp> active, const Fingerprint& fingerprint);

 private:
  static constexpr std::size_t kPlaces = 16, kWays = 2, kMostOperations = 8;
  using Ways = std::array<Entry, kWays>;
  Ways& ways_of(const Asked& asked, bool in_place);

  int rank_, ranks_;
  std::function<void(const Call&)> count_;
  std::array<Ways, kPlaces> entries_;
  Entry* last_ = nullptr;   // found
};

// Whether the call is in place; nothing for calls that are to be looked through: those that ask for
// something special, and those whose buffers may be wrong.
std::optional<bool> plain_in_place(const Call& call, int rank, int ranks);

}  // namespace paceline
