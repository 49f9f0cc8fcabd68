// The texts of errors about ranks whose calls do not fit together. With the session's lock held.
#pragma once

#include <cstddef>
#include <string>

#include "engine/operation.hpp"
#include "runtime/progress/session_state.hpp"

namespace paceline {

// Found in memory: a peer's flag line shows another call than the one that this rank is in.
std::string differing_calls(const Group& group, const CallMismatch& mismatch);

// Found by a message: that of a peer (rank of the world) has the number of a call that has started
// here, and another fingerprint, or that call has ended here without it. `known`: whether `mine` is
// that call's fingerprint; else it is too long ago, and `mine` is not named.
std::string misplaced_message(const Group& group, int peer, const Key& key,
                              const Fingerprint& theirs, const Fingerprint& mine, bool known);

// A message of a peer (of the world) is not as long as its receive expects: `came` bytes instead of
// `expected`.
std::string wrong_size(const Group& group, int peer, const Key& key, std::size_t came,
                       std::size_t expected);

// The system refuses a copy between two ranks' memory, and did not when they started.
std::string denied_copy(const ActiveOp& active, int rank, const CopyDenied& denied);

}  // namespace paceline
