#include <doctest/doctest.h>

#include "engine/scratch.hpp"

namespace paceline {
namespace {

TEST_CASE("the second call of a size gets the first one's memory") {
  ScratchPool pool;
  ScratchPool::Block first = pool.take(5000);
  const std::byte* where = first.data.get();
  CHECK(first.bytes >= 5000);
  CHECK(first.bytes <= 10000);
  pool.give(std::move(first));
  CHECK(pool.resting() > 0);
  ScratchPool::Block again = pool.take(6000);
  CHECK(again.data.get() == where);
  CHECK(pool.resting() == 0);
  CHECK(pool.take(5000).data.get() != where);  // borrowed memory is not lent twice
}

TEST_CASE("nothing is borrowed for nothing, and not everything is kept") {
  ScratchPool pool;
  CHECK(pool.take(0).data == nullptr);
  pool.give({});
  CHECK(pool.resting() == 0);
  ScratchPool::Block a = pool.take(ScratchPool::kMostResting);
  ScratchPool::Block b = pool.take(4096);
  pool.give(std::move(a));
  pool.give(std::move(b));
  CHECK(pool.resting() == ScratchPool::kMostResting);
}

}  // namespace
}  // namespace paceline
