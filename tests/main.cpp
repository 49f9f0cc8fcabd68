// The main function of every C++ test binary. `build/release/tests/world --help` lists its options.
#define DOCTEST_CONFIG_IMPLEMENT
#include "environment.hpp"
#include "skip.hpp"

int main(int argc, char** argv) {
  paceline::test::forget_options();
  return paceline::test::with_skips(doctest::Context(argc, argv).run());
}
