// A binding: functions and handles of one MPI, and the handling of their errors.
#pragma once

#include <algorithm>
#include <string>

#include "base/error.hpp"
#include "transport/mpi/abi/functions.hpp"

namespace paceline::mpi {

template <class A>
struct Binding {
  MpiFunctions<A> call;
  MpiHandles<A> handle;

  std::string text_of(int error) const {
    char text[A::error_string + 1] = {};
    int length = 0;
    if (call.Error_string(error, text, &length) != A::success) return str("error ", error);
    return {text, std::size_t(std::clamp(length, 0, A::error_string))};
  }

  void check(int code, const char* what) const {
    if (code == A::success) return;
    fail(Fault::resource, "mpi: PMPI_", what, " failed: ", text_of(code), ".");
  }

  bool is_set(int (*question)(int*)) const {
    int answer = 0;
    return question(&answer) == A::success && answer != 0;
  }
};

}  // namespace paceline::mpi
