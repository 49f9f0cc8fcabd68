// Format of a rank's profile, a file that is written while the program runs: a header, lines of
// text that explain the numbers, and one record per call.
//
// The file is mapped into memory, so that nothing is lost when the program is killed: a record is
// complete in the file as soon as it is in memory. Numbers are the machine's own (little-endian);
// python/paceline/profiling/files.py reads the same layout.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace paceline {

inline constexpr char kProfileMagic[8] = {'P', 'L', 'P', 'R', 'O', 'F', '1', '\n'};
inline constexpr std::size_t kProfileHeaderBytes = 4096;

// Stage of a recorded call.
enum class CallStage : std::uint8_t { none, entered, returned, complete, failed };

// One call of a collective on one rank. Times are nanoseconds of the rank's own clock.
struct CallRecord {
  std::int64_t enter_ns;        // when the rank entered: its arrival
  std::int64_t leave_ns;        // when the call returned
  std::int64_t wait_ns;         // non-blocking: when the program began to wait; 0: it has not
  std::int64_t done_ns;         // non-blocking: when the collective was complete
  std::uint64_t bytes;          // of the full message, as far as this rank knows it
  std::uint32_t communicator;   // numbers that lines of text explain
  std::uint32_t number;         // of the call on its communicator, from 0
  std::uint32_t site;           // the call's place in the program
  std::uint16_t collective;
  std::atomic<CallStage> stage;
  std::uint8_t nonblocking;     // 0 or 1
};
static_assert(sizeof(CallRecord) == 56 && alignof(CallRecord) == 8);

struct ProfileHeader {
  char magic[8];
  std::uint32_t header_bytes, record_bytes;
  std::uint64_t text_bytes;                   // room for lines, behind the header
  std::uint64_t capacity;                     // records, behind the lines
  std::atomic<std::uint64_t> text_used;
  std::atomic<std::uint64_t> calls;           // recorded and not: more than `capacity` were lost
  std::atomic<std::uint64_t> text_lost;       // lines that had no room
  std::int32_t rank, ranks;
  std::int64_t process;
  std::int64_t begin_ns;                      // own clock
  std::atomic<std::int64_t> end_ns;           // 0: the program has not ended normally
  std::int64_t begin_unix_ns;                 // time of day at begin_ns
  std::uint64_t clock;                        // equal on ranks that read the same clock
  char source[16];                            // "mpi" or "paceline"
  char host[256];
  char node[256];                             // ranks with different names are on different nodes
};
static_assert(sizeof(ProfileHeader) <= kProfileHeaderBytes);

}  // namespace paceline
