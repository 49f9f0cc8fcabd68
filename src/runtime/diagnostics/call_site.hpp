// Call sites of programs in C, C++ or Fortran.
#pragma once

#include <string>

namespace paceline {

// Returns the calling thread's innermost caller outside of this library, such as
// "train+0x1189 (main)", which `addr2line -e train 0x1189` resolves; empty if the stack cannot be
// read. The first call takes some milliseconds.
std::string native_call_site();

// Returns an address of code in the same form; empty if it is in no file.
std::string describe_place(const void* address);

}  // namespace paceline
