// Where a process may run.
#pragma once

#include <vector>

namespace paceline {

// The processors that a process may run on, ascending (0: this process, as its calling thread
// sees it). Empty where that cannot be known.
std::vector<int> allowed_processors(int process = 0);

}  // namespace paceline
