// The conflict rule: who has to wait for whom, given what each reads and writes.
//
// A read follows the last write; a write follows the last write and every read since. The schedule
// Builder orders steps by it; anything else that orders work by reads and writes uses it too.
#pragma once

#include <vector>

namespace paceline {

enum class Access { read, write };

// One thing that can be read and written. Actors are numbered by whoever uses the cell.
struct Cell {
  static constexpr int kNobody = -1;
  int writer = kNobody;
  std::vector<int> readers;  // since the last write
};

// Records that `actor` accesses the cell; calls follow(earlier) for each actor it has to wait for.
template <class Follow>
void access(Cell& cell, int actor, Access kind, Follow&& follow) {
  if (cell.writer != Cell::kNobody && cell.writer != actor) follow(cell.writer);
  if (kind == Access::read) {
    cell.readers.push_back(actor);
    return;
  }
  for (int reader : cell.readers)
    if (reader != actor) follow(reader);
  cell.readers.clear();
  cell.writer = actor;
}

}  // namespace paceline
