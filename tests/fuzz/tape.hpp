// Programs for ranks that know MPI alone: what each of them is to do, written to a file that a C
// program reads (tests/preload/tape.c), and what it found in memory after each call, read back and
// judged here.
//
// A tape has a line per action, and behind that of a call the bytes of its two blocks:
//   program SEED
//   pause MICROSECONDS
//   split PARENT GROUP COLOUR KEY | dup PARENT GROUP | self GROUP    (GROUP -1: in none of them)
//   subgroup PARENT GROUP N RANKS...
//   release GROUP
//   begin CALL NAME TYPE OP ROOT GROUP STARTED IN_PLACE INPUT OUTPUT COUNT UNEVEN ROOM ROOM
//   counts N SENT... RECEIVED...                                      (where uneven)
//   complete TESTS N CALLS...
// INPUT and OUTPUT are block:byte. The answer has "program SEED" and "call CALL BYTES BYTES", the
// latter followed by the blocks.
#pragma once

#include "fuzz/command.hpp"

namespace paceline::fuzz {

int write_tapes(const Options& options);   // FOLDER/tape.RANK
int judge_tapes(const Options& options);   // FOLDER/out.RANK

}  // namespace paceline::fuzz
