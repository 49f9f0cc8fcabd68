// CallCache: what a communicator has been asked for last. A call that is asked for again needs no
// checks, no layout and no choice: they would come out the same.
#pragma once

#include <array>
#include <memory>
#include <optional>

#include "runtime/communicator.hpp"
#include "transport/transport.hpp"

namespace paceline {

// A call, and what else decides what is done.
struct Asked {
  const Call& call;
  std::uint64_t shares = 0;   // SharedBook::changes()
  std::uint64_t late = 0;     // ranks that it takes for late: ArrivalBook::Turn::digest
};

class CallCache {
 public:
  struct Entry {
    Call call;                // with the buffers of the last time
    bool in_place = false;
    std::uint64_t shares = 0;
    std::shared_ptr<ActiveOp> active;
    Fingerprint fingerprint;
    std::uint64_t late = 0;
  };

  CallCache(int rank, int ranks) : rank_(rank), ranks_(ranks) {}

  // The entry of such a call, or nothing. Where there are shared buffers it is the same call only
  // with the same buffers.
  const Entry* find(const Asked& asked);
  // Not kept is what has to be looked through every time.
  void keep(const Asked& asked, std::shared_ptr<ActiveOp> active, const Fingerprint& fingerprint);

 private:
  static constexpr std::size_t kPlaces = 16, kWays = 2;
  using Ways = std::array<Entry, kWays>;
  Ways& ways_of(const Asked& asked, bool in_place);

  int rank_, ranks_;
  std::array<Ways, kPlaces> entries_;
  Entry* last_ = nullptr;   // found
};

// Whether the call is in place; nothing for calls that are to be looked through: those that ask for
// something special, and those whose buffers may be wrong.
std::optional<bool> plain_in_place(const Call& call, int rank, int ranks);

}  // namespace paceline
