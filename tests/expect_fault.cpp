#include "expect_fault.hpp"

namespace paceline::test {

std::string expect_fault(Fault fault, const std::vector<std::string>& words,
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
