// A copy from or to memory that may go away meanwhile, as that of a process which ends does.
#pragma once

#include <cstddef>

namespace paceline {

// All of it; false: the system had no page for a part of it (SIGBUS). Such signals of anything else
// go to who was there for them before.
bool copy_guarded(void* to, const void* from, std::size_t bytes);

}  // namespace paceline
