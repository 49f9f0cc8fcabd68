// Texts of errors about ranks whose calls do not fit together. All require the session's lock.
#pragma once

#include <cstddef>
#include <string>

#include "engine/operation.hpp"
#include "runtime/progress/session_state.hpp"

namespace paceline {

// A peer's flag line in shared memory shows another call than this rank's.
std::string differing_calls(const Group& group, const CallMismatch& mismatch);

// A message of a peer (rank of the world) has the number of a call that has started here, but
// another fingerprint, or the call has ended here without it. `known`: true if `mine` is that
// call's fingerprint; false if the call is too long ago: then `mine` is not named.
std::string misplaced_message(const Group& group, int peer, const Key& key,
                              const Fingerprint& theirs, const Fingerprint& mine, bool known);

// A message of a peer (rank of the world) has `came` bytes, and its receive expects `expected`.
std::string wrong_size(const Group& group, int peer, const Key& key, std::size_t came,
                       std::size_t expected);

// The system refuses a copy between two ranks' memory, which it allowed at start-up.
std::string denied_copy(const ActiveOp& active, int rank, const CopyDenied& denied);

}  // namespace paceline
