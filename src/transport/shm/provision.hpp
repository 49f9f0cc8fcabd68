// Provision: the size of the stages of a node's ranks, agreed upon while they meet, so that a small
// /dev/shm makes calls slower and is no error.
//
// The cards that lead to the inboxes say how much memory is free: the rank that makes its inbox
// last sees what all leave. So all ranks compute the same size, reserve the first stage of that
// size, and say whether they could.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "transport/shm/ring.hpp"
#include "transport/shm/segment.hpp"

namespace paceline {

struct ShmConfig;

// Space that a rank finds once its inbox is made.
struct FolderSpace {
  std::size_t free = 0;   // bytes in the folder
  bool anonymous = false;   // there is memory besides, which belongs to no folder
  std::size_t longest = ~std::size_t{0};   // bytes that it may give a file
};

struct Provision {
  std::size_t bytes = 0;    // for slots, of each stage; 0: no stages, calls send messages
  bool in_folder = true;    // false: besides
  bool operator==(const Provision&) const = default;
};

// Shape of the ring from each peer if the inboxes of `ranks` share `bytes`. With too many ranks it
// is the shortest there is, and they take more.
RingShape ring_shape(std::size_t bytes, int ranks);
std::size_t inbox_bytes(const RingShape& shape, int ranks);   // of one rank

// Returns `wanted` if an inbox may be in no folder, or the folder is so large that all could fit;
// else a shape with which those of all ranks take half of it. Never longer than a file may be.
RingShape fitting(const RingShape& wanted, const std::string& folder, int ranks);

// Bytes for slots of a stage if `ranks` share `bytes`: equal on all ranks.
std::size_t stage_bytes(std::size_t bytes, int ranks);

// Grants `asked`, the bytes for slots of each stage, if they fit into the folder, or besides; else
// what half of the free space allows, since more communicators may follow; else none. Never longer
// than a file may be.
Provision provide(std::size_t asked, const std::vector<FolderSpace>& spaces);

FolderSpace folder_space(const std::string& folder);

// One line for the user; empty if all is as asked. `shapes`: by rank.
std::string shortage_of_rings(const ShmConfig& config, std::span<const RingShape> shapes);
// The same for stages. `why`: reason why no stage could be reserved after all.
std::string shortage(const ShmConfig& config, const Provision& made,
                     const std::vector<FolderSpace>& spaces, const std::string& why);

}  // namespace paceline
