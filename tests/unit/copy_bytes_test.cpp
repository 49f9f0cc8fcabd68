// copy_bytes: every place in a page, every length around its pieces.
#include "base/copy_bytes.hpp"

#include <doctest/doctest.h>

#include <cstdint>
#include <vector>

namespace paceline {
namespace {

TEST_CASE("copy_bytes: copies what memcpy copies, and nothing beside it") {
  std::vector<std::uint8_t> from(16384), to(16384);
  for (std::size_t i = 0; i < from.size(); ++i)
    from[i] = static_cast<std::uint8_t>(1 + (i * 7 + i / 256) % 255);
  for (std::size_t ahead : {0, 1, 4, 16, 31, 32, 4080})
    for (std::size_t bytes : {0, 1, 1535, 1536, 1537, 3071, 3072, 3073, 8000}) {
      to.assign(to.size(), 0);
      // Twins of `from`'s pages, so that the distance in a page is `ahead`.
      const std::size_t base = (reinterpret_cast<std::uintptr_t>(from.data()) -
                                reinterpret_cast<std::uintptr_t>(to.data())) % 4096;
      const std::size_t at = base + ahead;
      REQUIRE(at + bytes <= to.size());
      copy_bytes(to.data() + at, from.data(), bytes);
      std::size_t wrong = 0;
      for (std::size_t i = 0; i < to.size(); ++i)
        wrong += to[i] != (i < at || i >= at + bytes ? 0 : from[i - at]);
      CAPTURE(ahead);
      CAPTURE(bytes);
      CHECK(wrong == 0);
    }
}

}  // namespace
}  // namespace paceline
