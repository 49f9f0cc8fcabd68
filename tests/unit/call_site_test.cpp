#include "runtime/diagnostics/call_site.hpp"

#include <dlfcn.h>
#include <doctest/doctest.h>

using namespace paceline;

TEST_CASE("call site: a symbol of C++ is shown as the program's text has it") {
  const void* place = dlsym(RTLD_DEFAULT, "_ZSt9terminatev");
  REQUIRE(place);
  CHECK(describe_place(place).ends_with(" (std::terminate())"));
}

TEST_CASE("call site: a symbol of C is shown as it is") {
  const void* place = dlsym(RTLD_DEFAULT, "malloc");
  REQUIRE(place);
  CHECK(describe_place(place).find("alloc)") != std::string::npos);
}
