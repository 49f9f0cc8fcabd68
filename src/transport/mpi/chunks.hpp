// Chunks: the cut of a message that travels as a stream. The sender chooses their number, from
// which both sides know their length: equal for all but the last.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace paceline::mpi {

constexpr std::size_t kCacheLine = 64;

constexpr std::size_t whole_lines(std::size_t bytes) {
  return std::max<std::size_t>(1, (bytes + kCacheLine - 1) / kCacheLine) * kCacheLine;
}

struct Chunks {
  std::size_t total = 0, most = 0;   // bytes: of all, of one
  std::uint32_t count = 0;

  Chunks() = default;
  Chunks(std::size_t total_bytes, std::uint32_t chunks)
      : total(total_bytes),
        most(whole_lines((total + chunks - 1) / std::max(chunks, 1u))),
        count(chunks) {}

  // Number of chunks of at most `most` bytes, which are whole lines: at least 1.
  static std::uint32_t number(std::size_t total, std::size_t most) {
    return static_cast<std::uint32_t>(std::max<std::size_t>(1, (total + most - 1) / most));
  }
  std::size_t begin(std::uint32_t chunk) const { return std::min(total, chunk * most); }
  std::size_t length(std::uint32_t chunk) const { return begin(chunk + 1) - begin(chunk); }
};

}  // namespace paceline::mpi
