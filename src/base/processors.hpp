// Processors that a process may run on.
#pragma once

#include <vector>

namespace paceline {

// Returns the processors that a process may run on, ascending (0: the calling thread's). Empty if
// they are unknown.
std::vector<int> allowed_processors(int process = 0);

}  // namespace paceline
