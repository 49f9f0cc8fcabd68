// The conflict rule: which actors wait for which, by their reads and writes.
//
// A read follows the last write; a write follows the last write and every read since. The schedule
// Builder orders steps by it, and the dependency engine (src/graph) orders tasks.
#pragma once

#include <optional>
#include <vector>

namespace paceline {

enum class Use { read, write };

// A resource that is read and written. An actor is an index of a step or a pointer to a task.
template <class Actor>
struct Cell {
  std::optional<Actor> writer;
  std::vector<Actor> readers;  // since the last write
};

// Records that `actor` accesses the cell; calls follow(earlier) for each actor it has to wait for.
template <class Actor, class Follow>
void access(Cell<Actor>& cell, const Actor& actor, Use kind, Follow&& follow) {
  if (cell.writer && *cell.writer != actor) follow(*cell.writer);
  if (kind == Use::read) {
    cell.readers.push_back(actor);
    return;
  }
  for (const Actor& reader : cell.readers)
    if (reader != actor) follow(reader);
  cell.readers.clear();
  cell.writer = actor;
}

}  // namespace paceline
