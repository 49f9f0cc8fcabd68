// A test that cannot run on this machine says why, and ctest shows its file as skipped.
//
//   if (geteuid() != 0) return test::skip("only root can be two users");
//
// Each reason has a row in tools/dev/skips.py; another one makes `./dev test` fail.
#pragma once

#include <doctest/doctest.h>

#include <cstdio>
#include <set>
#include <string>

namespace paceline::test {

// The exit status of a binary whose tests have passed, but for those that could not run.
constexpr int kSkipped = 77;

inline std::set<std::string>& skips() {
  static std::set<std::string> lines;
  return lines;
}

// Of the test case that runs; the rest of it may still be tried.
inline void skip(const std::string& why) {
  const auto* now = doctest::getContextOptions()->currentTest;
  skips().insert(why + " [in: " + (now ? now->m_name : "?") + "]");
}

// What main() returns: a failure stays one, whatever was skipped besides.
inline int with_skips(int status) {
  for (const std::string& line : skips()) std::printf("SKIPPED %s\n", line.c_str());
  return status == 0 && !skips().empty() ? kSkipped : status;
}

}  // namespace paceline::test
