// The main function of every C++ test binary. `build/release/tests/world --help` lists its options.
#define DOCTEST_CONFIG_IMPLEMENT_WITH_MAIN
#include <doctest/doctest.h>
