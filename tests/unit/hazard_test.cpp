// The conflict rule as a table, for all code that orders work by reads and writes.
#include "base/hazard.hpp"

#include <doctest/doctest.h>

#include <set>
#include <sstream>
#include <string>

using namespace paceline;

namespace {

// "w0 r1 w2": actor 0 writes, actor 1 reads, actor 2 writes. The answer, "1<0 2<0 2<1", lists the
// pairs "later<earlier" in the order of the accesses.
std::string follows(const std::string& accesses) {
  Cell<int> cell;
  std::istringstream words(accesses);
  std::string out;
  for (std::string word; words >> word;) {
    const int actor = std::stoi(word.substr(1));
    std::set<int> earlier;
    access(cell, actor, word[0] == 'r' ? Use::read : Use::write,
           [&](int other) { earlier.insert(other); });
    for (int other : earlier)
      out += (out.empty() ? "" : " ") + std::to_string(actor) + "<" + std::to_string(other);
  }
  return out;
}

}  // namespace

TEST_CASE("hazard: who follows whom") {
  const struct {
    std::string accesses, follows, why;
  } rows[] = {
      {"", "", "nothing happens"},
      {"r0", "", "nobody wrote what is there at the beginning"},
      {"w0", "", "nobody was there before"},
      {"r0 r1 r2", "", "readers are in no order"},
      {"w0 r1", "1<0", "a read follows the last write"},
      {"w0 w1", "1<0", "a write follows the last write"},
      {"r0 w1", "1<0", "a write follows a read"},
      {"r0 r1 w2", "2<0 2<1", "a write follows every read"},
      {"w0 r1 r2 w3", "1<0 2<0 3<0 3<1 3<2", "a write follows the write and every read since"},
      {"r0 w1 w2", "1<0 2<1", "reads before the last write are done with"},
      {"r0 w1 r2 w3", "1<0 2<1 3<1 3<2", "only reads since the last write count"},
      {"w0 r1 w2 r3", "1<0 2<0 2<1 3<2", "a read follows the last write, not an older one"},
      {"w0 r0", "", "nobody follows itself: reading what it wrote"},
      {"r0 w0", "", "nobody follows itself: writing what it read"},
      {"w0 w0", "", "nobody follows itself: writing twice"},
      {"r0 r1 w1", "1<0", "of two readers one writes: it follows the other"},
      {"r1 w1 r2", "2<1", "a reader that wrote is a writer"},
      {"r0 r0 w1", "1<0", "two reads of one actor are as one"},
      {"w0 r1 w1 r2 w2", "1<0 1<0 2<1 2<1", "a chain of updates"},
      {"w0 r2 w1", "2<0 1<0 1<2", "numbers do not matter, the sequence does"},
  };
  for (const auto& row : rows)
    CHECK_MESSAGE(follows(row.accesses) == row.follows, row.accesses, " (", row.why, "): ",
                  follows(row.accesses));
}

TEST_CASE("hazard: cells know nothing of each other") {
  Cell<int> a, b;
  const auto nobody = [](int) { FAIL("no actor shares a cell with another"); };
  access(a, 0, Use::write, nobody);
  access(b, 1, Use::write, nobody);
  access(b, 1, Use::read, nobody);
}
