// Provision: how large the stages of a node's ranks are, agreed upon while they meet, so that a
// small /dev/shm makes calls slower and is no error.
//
// What memory there is for the stages is told in the cards that lead to the inboxes: whoever makes
// its inbox last sees what all have left. So all ranks reckon the same, reserve the first stage of
// that size, and say whether they could.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "transport/shm/ring.hpp"
#include "transport/shm/segment.hpp"

namespace paceline {

struct ShmConfig;

// What a rank finds, once its inbox is made.
struct FolderSpace {
  std::size_t free = 0;   // bytes in the folder
  bool anonymous = false;   // whether there is memory besides, which belongs to no folder
  std::size_t longest = ~std::size_t{0};   // bytes that it may give a file
};

struct Provision {
  std::size_t bytes = 0;    // for slots, of each stage; 0: no stages, calls send messages
  bool in_folder = true;    // or besides
  bool operator==(const Provision&) const = default;
};

// A ring for each of the others, where the inboxes of `ranks` share `bytes`. With too many ranks it
// is the shortest there is, and they take more.
RingShape ring_shape(std::size_t bytes, int ranks);
std::size_t inbox_bytes(const RingShape& shape, int ranks);   // of one rank

// As wanted where an inbox may be in no folder, or the folder is so large that all could fit; else
// so that those of all ranks take half of it. Never longer than a file may be.
RingShape fitting(const RingShape& wanted, const std::string& folder, int ranks);

// How many bytes of a stage are for slots where `ranks` share `bytes`: equal on all ranks.
std::size_t stage_bytes(std::size_t bytes, int ranks);

// Whole where that fits into the folder, or besides; else as large as half of what is free allows,
// since more communicators may follow; else none. Never longer than a file may be. `asked`: for
// slots, of each stage.
Provision provide(std::size_t asked, const std::vector<FolderSpace>& spaces);

FolderSpace folder_space(const std::string& folder);

// One line for whoever runs the job; empty where all is as asked. `shapes`: by rank.
std::string shortage_of_rings(const ShmConfig& config, std::span<const RingShape> shapes);
// Likewise. `why`: no stage could be reserved
// after all.
std::string shortage(const ShmConfig& config, const Provision& made,
                     const std::vector<FolderSpace>& spaces, const std::string& why);

}  // namespace paceline
