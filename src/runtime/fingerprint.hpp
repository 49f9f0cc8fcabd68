// The fingerprint of a call: the arguments that must be equal on all ranks, packed to fit a message
// header.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/call.hpp"
#include "transport/transport.hpp"

namespace paceline {

// Returns the tag of a name; never 0.
std::uint64_t tag_of(std::string_view name);

// Tag of the barrier that a rank makes instead of a call that was refused before it sent anything.
// The barrier completes if all ranks are refused; else the other ranks get a mismatch that says so.
inline constexpr std::string_view kRefused = "(refused)";
bool is_refusal(const Fingerprint& fingerprint);

// `choice`: hash of the algorithm and cut, among others. `places`: name of the buffers' places in
// shared memory, if peers access them there.
Fingerprint fingerprint_of(const Call& call, std::uint64_t choice,
                           std::optional<std::uint64_t> places = {});

// Returns a hash of a communicator's ranks, in their order. It tells subgroup()s apart, which are
// made without communication.
std::uint64_t digest_of(const std::vector<int>& ranks);

// Returns text such as "root differs between ranks (rank 2: 0, rank 3: 1); all ranks must pass the
// same root".
std::string difference(const Fingerprint& mine, int my_rank, const Fingerprint& theirs,
                       int their_rank);
std::string_view collective_of(const Fingerprint& fingerprint);
std::string describe(const Fingerprint& fingerprint);  // "allreduce of 1024 float32, sum"

}  // namespace paceline
