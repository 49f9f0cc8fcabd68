// What a call that must fail is asked for: its fault, and words of its message.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/error.hpp"

namespace paceline::test {

// Empty, or what is wrong with what was thrown.
inline std::string expect_fault(Fault fault, const std::vector<std::string>& words,
                                const std::function<void()>& call) {
  try {
    call();
  } catch (const Error& error) {
    const std::string text = error.what();
    if (error.fault() != fault) return str("another fault: ", text);
    for (const std::string& word : words)
      if (text.find(word) == std::string::npos) return str("'", word, "' is missing in: ", text);
    return {};
  }
  return "nothing was thrown";
}

}  // namespace paceline::test
