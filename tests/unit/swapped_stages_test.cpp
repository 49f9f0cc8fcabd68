// Two ranks that both show and take: each writes where it has last read.
#include <doctest/doctest.h>

#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "base/random.hpp"
#include "engine/shm/shm_channel.hpp"
#include "loop/loop.hpp"

using namespace paceline;

namespace {

struct Two {
  LoopNet net{2, {}};
  std::vector<std::unique_ptr<Transport>> transports;
  std::vector<ShmChannel> views;

  explicit Two(const ShmProfile& profile = shm_profile()) {
    for (int rank = 0; rank < 2; ++rank) {
      transports.push_back(net.endpoint(rank));
      views.emplace_back(*transports.back()->stages(), 7, std::vector<int>{0, 1}, rank,
                         profile);
      views.back().open();
    }
    for (ShmChannel& view : views) view.look_around();   // as a waiting rank does
  }
  ShmChannel& view(int rank) { return views[std::size_t(rank)]; }
  bool enter(int rank, std::uint64_t call, std::size_t bytes, bool swaps) {
    std::optional<CallMismatch> mismatch;
    REQUIRE(view(rank).can_enter(bytes, swaps));
    if (view(rank).occupied(call, bytes, mismatch)) return false;
    view(rank).enter(call, bytes, static_cast<std::uint32_t>(call), {}, swaps);
    view(rank).signal(call, 1);
    view(rank).enroll();
    return true;
  }
};

struct Range {
  std::byte *begin = nullptr, *end = nullptr;
  bool overlaps(const Range& other) const { return begin < other.end && other.begin < end; }
};

}  // namespace

TEST_CASE("stages: of two ranks each writes where it has read the last time, and nowhere else") {
  const std::size_t lengths[] = {500, 5000, 20000, 100000, 200000};
  for (int k = 0; k < 40; ++k) {
    const std::size_t bytes = lengths[k % 5];
    const auto every = static_cast<std::uint64_t>(k / 5 % 4 + 1);   // call; the others need no slot
    const ShmProfile& profile = shm_profiles()[std::size_t(k / 20)];
    CAPTURE(bytes);
    CAPTURE(every);
    CAPTURE(profile.measured_on);
    Two two(profile);
    std::map<std::byte*, int> last;   // by place: owner of its data, as rank 0 sees it
    int again = 0;
    for (std::uint64_t call = 1; call <= 120 * every; ++call) {
      const bool has_slot = call % every == 0;
      for (int rank = 0; rank < 2; ++rank) {
        REQUIRE(two.enter(rank, call, has_slot ? bytes : 0, true));
        two.view(rank).leave(call);
      }
      if (!has_slot) continue;
      for (int whose = 0; whose < 2; ++whose) {
        std::byte* const place = two.view(0).slot(whose, call);
        CHECK(place == two.view(1).slot(whose, call));
        if (const auto before = last.find(place); before != last.end() && profile.swaps) {
          CHECK(before->second == 1 - whose);
          ++again;
        }
        last[place] = whose;
      }
    }
    CHECK((again > 0 || !profile.swaps));
  }
}

TEST_CASE("stages: nobody swaps before it has found the peer's stage") {
  LoopNet net{2, {}};
  const auto alone = net.endpoint(0), late = net.endpoint(1);
  ShmChannel view(*alone->stages(), 7, {0, 1}, 0), other(*late->stages(), 7, {0, 1}, 1);
  view.open();
  for (std::uint64_t call : {1, 2}) {   // its two places have had their turns
    CHECK(view.can_enter(500, true));
    view.enter(call, 500, 0, {}, false);
  }
  CHECK(!view.can_enter(500, true));
  CHECK(view.can_enter(500, false));
  CHECK(view.can_enter(5000, true));
  other.open();
  CHECK(view.can_enter(500, true));
}

TEST_CASE("stages: what is swapped in one call and not in the next stays apart") {
  Two two;
  Random random(5);
  Range held[2];      // of rank 1, which is one call behind: what it writes and what it reads
  int ahead = 0;
  for (std::uint64_t call = 1; call <= 2000; ++call) {
    const std::size_t bytes = 33 + random.below(random.below(4) == 0 ? 150000 : 9000);
    const bool swaps = random.below(3) != 0;
    if (two.enter(0, call, bytes, swaps)) {   // while rank 1 is in the call before
      ++ahead;
      std::byte* const slot = two.view(0).slot(0, call);
      for (const Range& range : held) CHECK(!range.overlaps({slot, slot + bytes}));
      if (call > 1) two.view(1).leave(call - 1);
      REQUIRE(two.enter(1, call, bytes, swaps));
    } else {   // it hears that rank 1 has left when that one goes on, or waits for it
      two.view(1).leave(call - 1);
      const bool is_first = two.enter(1, call, bytes, swaps);
      REQUIRE(two.enter(0, call, bytes, swaps));
      REQUIRE((is_first || two.enter(1, call, bytes, swaps)));
    }
    for (int whose = 0; whose < 2; ++whose) {
      std::byte* const slot = two.view(1).slot(whose, call);
      held[whose] = {slot, slot + bytes};
    }
    two.view(0).leave(call);
  }
  CHECK(ahead > 0);   // how often it may depends on the slots, and they on the processor
}

TEST_CASE("stages: nobody writes into a peer's stage before that has room for it") {
  Two two;
  ShmChannel& view = two.view(0);
  const StagingBuffer theirs = *two.transports[0]->stages()->find(1, 7);
  std::atomic<std::uint64_t>& reserved = theirs.owner().reserved;
  reserved = StagingBuffer::kAtFirst;   // as one that begins small
  for (std::uint64_t call = 1; call <= 2; ++call) {   // slots of that length rotate once
    CHECK(view.can_enter(20000, true));
    view.enter(call, 20000, 0, {}, false);
  }
  CHECK(!view.can_enter(20000, true));
  CHECK(view.can_enter(20000, false));
  reserved = StagingMemory::kBytes;   // and grows
  CHECK(view.can_enter(20000, true));
}
