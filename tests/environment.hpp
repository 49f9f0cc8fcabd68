// Tests find the environment that they set themselves, whoever runs them.
#pragma once

#include <unistd.h>

#include <cstdlib>
#include <string>
#include <vector>

namespace paceline::test {

// Unsets every option of the library. What is kept says how tests are run.
inline void forget_options() {
  std::vector<std::string> names;
  for (char** entry = environ; entry && *entry; ++entry) {
    const std::string text = *entry, name = text.substr(0, text.find('='));
    const bool is_kept =
        name == "PACELINE_SHORT" || name == "PACELINE_LONG" ||
        name == "PACELINE_CUDA_KERNELS" || name.starts_with("PACELINE_GOLDEN");
    if (name.starts_with("PACELINE_") && !is_kept) names.push_back(name);
  }
  for (const std::string& name : names) unsetenv(name.c_str());
}

}  // namespace paceline::test
