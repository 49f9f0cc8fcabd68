// What a call that must fail is asked for: its fault, and words of its message.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/error.hpp"

namespace paceline::test {

// Empty, or what is wrong with what was thrown.
std::string expect_fault(Fault fault, const std::vector<std::string>& words,
                         const std::function<void()>& call);

}  // namespace paceline::test
