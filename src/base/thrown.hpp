// Text of any exception.
#pragma once

#include <exception>
#include <string>

namespace paceline {

inline std::string text_of(const std::exception_ptr& error) try {
  std::rethrow_exception(error);
} catch (const std::exception& e) {
  return e.what();
} catch (...) {
  return "an error without a text";
}

}  // namespace paceline
