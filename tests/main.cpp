// The main function of every C++ test binary. `build/release/tests/world --help` lists its options.
#define DOCTEST_CONFIG_IMPLEMENT
#include "skip.hpp"

int main(int argc, char** argv) {
  return paceline::test::with_skips(doctest::Context(argc, argv).run());
}
