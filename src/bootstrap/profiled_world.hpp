// Recording the calls of a world: the profile begins and ends on all ranks together.
#pragma once

#include "profile/recorder.hpp"
#include "runtime/communicator.hpp"
#include "runtime/world.hpp"

namespace paceline {

// Begins to record and compares the nodes' clocks; collective over the world, and sends messages
// between nodes alone. Throws a resource error where this rank can make no file.
void begin_profile(Communicator& world, ProfileConfig config);
// What the options ask for. Trouble is a line on stderr: the program goes on.
void begin_profile(Communicator& world, const WorldConfig& config);
// Ends it and compares the clocks again; likewise collective.
void end_profile(Communicator& world);

}  // namespace paceline
