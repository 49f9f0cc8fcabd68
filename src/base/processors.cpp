#include "base/processors.hpp"

#include <sched.h>

namespace paceline {

std::vector<int> allowed_processors(int process) {
  std::vector<int> processors;
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(process, sizeof(set), &set) != 0) return processors;   // or too many
  for (int i = 0; i < CPU_SETSIZE; ++i)
    if (CPU_ISSET(i, &set)) processors.push_back(i);
  return processors;
}

}  // namespace paceline
