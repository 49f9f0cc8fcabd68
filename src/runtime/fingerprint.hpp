// The fingerprint of a call: what all ranks must pass alike, packed so that it fits a message
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

// The tag of a name; never 0.
std::uint64_t tag_of(std::string_view name);

// The tag of a barrier that a rank makes in place of a call that it was refused before anything was
// sent. Where all ranks are refused it completes; else the others hear what the matter is.
inline constexpr std::string_view kRefused = "(refused)";
bool is_refusal(const Fingerprint& fingerprint);

// `choice` is a hash of how the call is carried out; `places` names where its buffers lie in shared
// memory, if its peers touch them there.
Fingerprint fingerprint_of(const Call& call, std::uint64_t choice,
                           std::optional<std::uint64_t> places = {});

// Of the ranks of a communicator, in their order: subgroup() makes one without asking the others.
std::uint64_t digest_of(const std::vector<int>& ranks);

// "root differs (rank 2: 0, rank 3: 1); all ranks must pass the same root."
std::string difference(const Fingerprint& mine, int my_rank, const Fingerprint& theirs,
                       int their_rank);
std::string_view collective_of(const Fingerprint& fingerprint);
std::string describe(const Fingerprint& fingerprint);  // "allreduce of 1024 float32, sum"

}  // namespace paceline
