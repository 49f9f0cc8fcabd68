// Leaving: why a rank leaves. It is the last that its peers hear of it.
#pragma once

#include <cstdint>

namespace paceline {

enum class Leaving : std::uint8_t { ended = 1, interrupted = 2 };   // 0: it is there

// Text for the error of a peer that waits for it. paceline.errors.RankLost knows the first by its
// words.
constexpr const char* words_of(Leaving why) {
  return why == Leaving::interrupted ? "it has left (interrupted by Ctrl-C)"
                                     : "it has left (finalize, or its program ended)";
}

}  // namespace paceline
