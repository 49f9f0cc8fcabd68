// Provision: how large the stages of a node's ranks are, agreed upon while they meet, so that a
// small /dev/shm makes calls slower and is no error.
//
// What memory there is for the stages is told in the cards that lead to the inboxes: whoever makes
// its inbox last sees what all have left. So all ranks reckon the same, reserve the first stage of
// that size, and say whether they could.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "transport/shm/segment.hpp"

namespace paceline {

struct ShmConfig;

// What a rank finds, once its inbox is made.
struct Room {
  std::size_t free = 0;   // bytes in the folder
  bool anonymous = false;   // whether there is memory besides, which belongs to no folder
};

struct Provision {
  std::size_t bytes = 0;    // for rooms, of each stage; 0: no stages, calls send messages
  bool in_folder = true;    // or besides
  bool operator==(const Provision&) const = default;
};

// How large the rooms of a stage are where `ranks` share `bytes`: equal on all ranks.
std::size_t stage_bytes(std::size_t bytes, int ranks);

// Whole where that fits into the folder, or besides; else as large as half of what is free allows,
// since more communicators may follow; else none. `asked`: for rooms, of each stage.
Provision provide(std::size_t asked, const std::vector<Room>& rooms);

Room room_in(const std::string& folder);

// The memory of one stage: in the folder or, where that is full, besides. Throws a resource error.
SharedFile make_stage(const std::string& folder, std::size_t bytes);

// One line for whoever runs the job; empty where all is as asked. `why`: no stage could be reserved
// after all.
std::string shortage(const ShmConfig& config, const Provision& made, const std::vector<Room>& rooms,
                     const std::string& why);

}  // namespace paceline
