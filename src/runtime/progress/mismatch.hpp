// What errors say of ranks whose calls do not fit together. With the session's lock held.
#pragma once

#include <cstddef>
#include <string>

#include "engine/operation.hpp"
#include "runtime/progress/session_state.hpp"

namespace paceline {

// A peer's staging buffer shows another call than this rank's.
std::string differing_calls(const Group& group, const CallMismatch& mismatch);

// A message of a peer (of the world) belongs to a call that has started here as another one.
// `known`: whether `mine` is that call; else it is too long ago.
std::string misplaced_message(const Group& group, int peer, const Key& key,
                              const Fingerprint& theirs, const Fingerprint& mine, bool known);

// The counts of two ranks of the world do not fit together.
std::string wrong_size(int peer, int rank, const Key& key, std::size_t came, std::size_t expected);

// The system let ranks copy each other's memory when they started, and does not now.
std::string denied_copy(const ActiveOp& active, int rank, const CopyDenied& denied);

}  // namespace paceline
