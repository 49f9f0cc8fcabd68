// What peers still say of communicators that this rank has closed: it takes no room from what they
// say of those that it has yet to make.
#include <doctest/doctest.h>

#include <memory>

#include "runtime/progress/session.hpp"
#include "transport/loop/loop.hpp"

namespace paceline {
namespace {

TEST_CASE("aborts of closed communicators leave room for those of later ones") {
  constexpr int kClosed = 1100;   // of communicators to come, a rank keeps 1024
  LoopNet net(2, {});
  WorldConfig config;
  config.progress = Progress::caller;
  Communicator mine = join_transport(net.endpoint(0), config);
  Communicator theirs = join_transport(net.endpoint(1), config);
  const auto look = [&] { (void)mine.is_called(); };
  for (std::uint64_t tag = 1; tag <= kClosed; ++tag) {
    { const Communicator closed = mine.subgroup({0, 1}, tag); }
    mine.subgroup({0}, kClosed + tag);   // by then the closed one is forgotten
    theirs.subgroup({0, 1}, tag).abort("gives up");
    look();
  }
  constexpr std::uint64_t kLast = 3 * kClosed;
  theirs.subgroup({0, 1}, kLast).abort("gives up the last one");
  look();
  CHECK(mine.subgroup({0, 1}, kLast).broken().find("gives up the last one") != std::string::npos);
  mine.leave();
  theirs.leave();
}

}  // namespace
}  // namespace paceline
