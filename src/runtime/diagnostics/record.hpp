// Flight record: the last calls of a rank and those under way, to be compared with those of other
// ranks (paceline doctor --record).
#pragma once

#include <string>
#include <vector>

#include "transport/transport.hpp"

namespace paceline {

struct RecordedCall {
  std::uint32_t number = 0;        // among the communicator's calls, from 1
  Fingerprint fingerprint;
  bool under_way = false;
  double waited_s = 0;             // of a call under way
  std::vector<int> waits_for;      // positions of the ranks that a call under way waits for
};

struct RecordedCommunicator {
  std::uint64_t context = 0;       // equal on all its ranks
  std::vector<int> ranks;          // position -> rank of the world
  int rank = 0;                    // this rank's position
  std::string broken;              // why it is broken; empty: it works
  std::vector<RecordedCall> calls; // the last ones, oldest first
  std::string called_at = {};      // this rank's call site at the break; empty: unknown
};

struct FlightRecord {
  int rank = 0, ranks = 1;         // of the world
  std::string reason;              // why it was written
  std::vector<RecordedCommunicator> communicators;
};

// Returns the record of all communicators of a session. Requires the session's lock.
struct SessionState;
FlightRecord record_of(const SessionState& state, const std::string& reason);

// Returns one JSON object with the names of the fields above, and calls as describe() prints them.
std::string json_of(const FlightRecord& record);
std::string text_of(const FlightRecord& record);   // the same, for people

// Writes rank-<rank>.json and .txt into the folder, each atomically. Returns false on failure
// instead of throwing, since a record is written after another error.
bool write_record(const FlightRecord& record, const std::string& folder);

}  // namespace paceline
