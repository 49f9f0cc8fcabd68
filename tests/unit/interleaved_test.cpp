// Several streams of one stretch: all of it, once, in strips.
#include <doctest/doctest.h>

#include <vector>

#include "engine/shm/interleaved.hpp"

using namespace paceline;

TEST_CASE("interleaved: every byte once, in strips of four streams by turns") {
  for (std::size_t bytes : {0, 1, 1023, 1024, 4095, 4096, 4097, 65536, 65540, 70000, 300001}) {
    CAPTURE(bytes);
    std::vector<int> times(bytes, 0);
    std::vector<std::size_t> begins;
    interleaved(bytes, 1024, [&](std::size_t at, std::size_t strip) {
      CHECK(strip <= 1024);
      REQUIRE(at + strip <= bytes);
      for (std::size_t i = at; i < at + strip; ++i) ++times[i];
      begins.push_back(at);
    });
    CHECK(std::count(times.begin(), times.end(), 1) == std::ptrdiff_t(bytes));
    if (bytes < 8192) continue;
    const std::size_t stream = bytes / kInterleave / 1024 * 1024;
    for (std::size_t k = 0; k < kInterleave; ++k) {
      CHECK(begins[k] == k * stream);
      CHECK(begins[kInterleave + k] == k * stream + 1024);
    }
  }
}
