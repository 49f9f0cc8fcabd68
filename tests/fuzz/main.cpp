// The tests of this folder, or programs that somebody asks for:
//
//   fuzz                      the tests; --help lists doctest's options
//   fuzz play HOW OPTIONS     programs from a seed on; HOW is loop, shm, or mpi (under mpiexec)
//   fuzz print OPTIONS        what a seed stands for
//   fuzz tapes | judge        see tape.hpp
//
// `./dev fuzz` calls it. The exit status is 1 where a program has gone wrong; its seed is printed.
#define DOCTEST_CONFIG_IMPLEMENT
#include <doctest/doctest.h>

#include "environment.hpp"
#include "fuzz/command.hpp"
#include "skip.hpp"

int main(int argc, char** argv) {
  using namespace paceline::fuzz;
  const std::string first = argc > 1 ? argv[1] : "";
  if (first == "play" || first == "print" || first == "tapes" || first == "judge")
    return command({argv + 1, argv + argc});
  paceline::test::forget_options();
  return paceline::test::with_skips(doctest::Context(argc, argv).run());
}
