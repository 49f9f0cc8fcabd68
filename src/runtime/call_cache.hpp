// CallCache: the latest calls of a communicator. A repeated call takes its operation from here, and
// needs no checks, no layout and no choice.
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

// A call, and the state that its operation depends on.
struct Asked {
  const Call& call;
  std::uint64_t shares = 0;   // SharedBook::changes()
  std::uint64_t late = 0;     // ArrivalBook::Turn::digest of the ranks that it takes for late
};

struct Prepared;   // runtime/schedule_cache.hpp

class CallCache {
 public:
  struct Entry {
    Call call;                // with the buffers of its last start
    bool in_place = false;
    std::uint64_t shares = 0;
    std::uint64_t late = 0;
    Fingerprint fingerprint;
    std::shared_ptr<Prepared> prepared;   // keeps its operations
    std::vector<std::shared_ptr<ActiveOp>> operations = {};   // several may be under way

    // Returns an operation that has ended and that no request holds; null if there is none.
    const std::shared_ptr<ActiveOp>* free_operation() const;
  };

  // count() calls `count`, before a call from the cache begins; empty: it does nothing.
  CallCache(int rank, int ranks, std::function<void(const Call&)> count = {})
      : rank_(rank), ranks_(ranks), count_(std::move(count)) {}

  // Returns the entry of such a call, or null. While shared memory exists (`shares`), the buffers
  // must be the same too.
  const Entry* find(const Asked& asked);
  void count(const Call& call) const {
    if (count_) count_(call);
  }
  // Adds the call's operation, unless the call must be checked every time (plain_in_place()).
  void keep(const Asked& asked, const std::shared_ptr<Prepared>& prepared,
            std::shared_ptr<ActiveOp> active, const Fingerprint& fingerprint);

 private:
  static constexpr std::size_t kPlaces = 16, kWays = 2, kMostOperations = 8;
  using Ways = std::array<Entry, kWays>;
  Ways& ways_of(const Asked& asked, bool in_place);

  int rank_, ranks_;
  std::function<void(const Call&)> count_;
  std::array<Ways, kPlaces> entries_;
  Entry* last_ = nullptr;   // the entry found or kept last
};

// Returns whether the call is in place; nothing for calls that must be checked every time: those
// with special options, and those whose buffers may be wrong.
std::optional<bool> plain_in_place(const Call& call, int rank, int ranks);

}  // namespace paceline
