// Flight record: what a rank has called last and what it is in, to be held against what the other
// ranks have (paceline doctor --record).
#pragma once

#include <string>
#include <vector>

#include "transport/transport.hpp"

namespace paceline {

struct RecordedCall {
  std::uint32_t number = 0;        // among the communicator's calls, from 1
  Fingerprint fingerprint;
  bool under_way = false;
  double waited_s = 0;             // while it is under way
  std::vector<int> waits_for;      // likewise: positions
};

struct RecordedCommunicator {
  std::uint64_t context = 0;       // equal on all its ranks
  std::vector<int> ranks;          // position -> rank of the world
  int rank = 0;                    // own position
  std::string broken;              // empty, or why
  std::vector<RecordedCall> calls; // the last ones, oldest first
  std::string called_at = {};      // once broken: where this rank's program was, if that is known
};

struct FlightRecord {
  int rank = 0, ranks = 1;         // of the world
  std::string reason;              // what it was written for
  std::vector<RecordedCommunicator> communicators;
};

// Of all communicators, with the session's lock held.
struct SessionState;
FlightRecord record_of(const SessionState& state, const std::string& reason);

// One object with the names of the fields above; a call as describe() says it.
std::string json_of(const FlightRecord& record);
std::string text_of(const FlightRecord& record);   // the same, for people

// Writes rank-<rank>.json and .txt into the folder, each at once. Whether that went well: a record
// is written where something else is wrong already, so it makes no errors of its own.
bool write_record(const FlightRecord& record, const std::string& folder);

}  // namespace paceline
