// Where a program of C, C++ or Fortran calls this library from.
#pragma once

#include <string>

namespace paceline {

// The calling thread's innermost caller outside of this library, such as "train+0x1189 (main)", as
// `addr2line -e train 0x1189` reads it; empty where the stack cannot be read. Takes some
// milliseconds the first time.
std::string native_call_site();

// An address of code in the same words; empty where it is in no file.
std::string describe_place(const void* address);

}  // namespace paceline
