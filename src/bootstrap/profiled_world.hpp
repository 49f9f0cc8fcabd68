// Profiled world: begins and ends the profile of a world, on all ranks together.
#pragma once

#include "profile/recorder.hpp"
#include "runtime/communicator.hpp"
#include "runtime/world.hpp"

namespace paceline {

// Begins to record and compares the nodes' clocks. Collective over the world; a world on one node
// sends no messages. Throws a resource error if this rank cannot make its file.
void begin_profile(Communicator& world, ProfileConfig config);
// Begins the profile that the options ask for. Reports an error on stderr, and the program goes on.
void begin_profile(Communicator& world, const WorldConfig& config);
// Ends the profile and compares the clocks again. Collective over the world.
void end_profile(Communicator& world);

}  // namespace paceline
