// Interleaved: processes a long stretch of memory as several streams, a strip of each in turn.
// Hardware prefetchers follow each stream, so that more lines are under way between two cores than
// with one stream (docs/design/0019-straight.md).
#pragma once

#include <algorithm>
#include <cstddef>

namespace paceline {

inline constexpr std::size_t kInterleave = 4;

// Calls part(offset, bytes) for all of `bytes`, at most `strip` at a time.
template <class Part>
void interleaved(std::size_t bytes, std::size_t strip, Part part) {
  const std::size_t stream = bytes / kInterleave / strip * strip;
  for (std::size_t at = 0; at < stream; at += strip)
    for (std::size_t k = 0; k < kInterleave; ++k) part(k * stream + at, strip);
  for (std::size_t at = kInterleave * stream; at < bytes; at += strip)
    part(at, std::min(strip, bytes - at));
}

}  // namespace paceline
