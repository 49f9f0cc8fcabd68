// Schedule: what one rank does in one collective, a graph of steps over segments of buffers.
//
// The centre of the house. verify, execute, simulate and draw each read it in their own way;
// nothing in it is a pointer, a byte count, a type, a tag or a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "ir/problem.hpp"

namespace paceline {

enum class Space : std::uint8_t { input, output, scratch, incoming };

inline constexpr int kOwn = -1;   // the owner of a segment that belongs to the rank itself

// Consecutive blocks of a buffer. A scratch slot is shaped after blocks of the input or the output:
// `like` says whose, and `origin` is the block that lies at the slot's beginning. `incoming` is the
// message that is being received by the same step.
struct Segment {
  Space space = Space::output;
  Space like = Space::output;
  int owner = kOwn;     // or the rank whose exposed buffer this is
  int slot = 0;         // scratch only
  int origin = 0;       // scratch only
  int first = 0;
  int blocks = 0;

  bool operator==(const Segment&) const = default;
};

enum class Kind : std::uint8_t { send, recv, reduce, copy, finish, recv_reduce, signal, wait };

std::string_view name_of(Kind kind);

// Segments of a step, in this order:
//   send    the message, a list                      recv    where the message goes, a list
//   reduce  target, then the sources from left to right
//   copy    target, source                           finish  the block whose sum is complete
//   recv_reduce  target, then the sources; one of them is `incoming`
struct Step {
  Kind kind = Kind::copy;
  std::uint16_t lane = 0;
  int peer = 0;                   // send, recv, recv_reduce, signal, wait
  int seq = 0;                    // number of this message among those of (peer, direction, lane)
  std::uint32_t first = 0;        // its segments in Schedule::segments
  std::uint32_t segments = 0;
};

// A piece of working memory: as large as the largest of these block ranges. Copies of a pipelined
// schedule share slots lane by lane.
struct Slot {
  std::vector<Segment> shapes;
  bool is_alike = false;   // the first shape is the one that all ranks asked for, used or not
};

struct Schedule {
  Problem problem;
  std::string algorithm;
  bool single_copy = false;       // peers' buffers are reached by the system, and not seen
  int units = 1;                  // of the message, by its collective
  int cuts = 1;                   // blocks per unit and pipeline segment
  int within = 1;                 // so many of them together are cut first, and then each such part
  int pipeline = 1;               // pipeline segments
  std::size_t grain = 1;          // elements; long parts begin at multiples of it
  int lanes = 1;                  // segments that run at the same time
  int tail = 0;                   // the last steps, which may take all segments together
  bool tail_reads_scratch = false;   // some rank's: then each of the segments has its own lane
  std::vector<Step> steps;        // in the author's order
  std::vector<Segment> segments;
  std::vector<Slot> slots;
  // Number of slots, the first ones, that lie in the rank's staging buffer, where the ranks of its
  // node reach them (Problem::node_staging); the others are memory of its own.
  int staging = 0;
  // The successors of step i are edges[edge_begin[i] .. edge_begin[i + 1]).
  std::vector<std::uint32_t> edge_begin;
  std::vector<std::uint32_t> edges;
  std::vector<std::uint32_t> indegree;

  int blocks() const { return units * cuts * pipeline; }
  // Steps before the tail, of all segments, which lie one after the other and are equally long.
  int head() const { return static_cast<int>(steps.size()) - tail; }
  // Segment to which a step belongs; the tail counts as one more.
  int segment_of(std::uint32_t step) const;
  const Segment* begin(const Step& step) const { return segments.data() + step.first; }
  const Segment* end(const Step& step) const { return begin(step) + step.segments; }
};

using Edge = std::pair<std::uint32_t, std::uint32_t>;   // from, to

// Fills edge_begin, edges and indegree; drops doubles.
void set_edges(Schedule& schedule, std::vector<Edge> edges);
std::vector<Edge> edges_of(const Schedule& schedule);

// One line per step: "#4 recv_reduce <- 2 output[3..4) = incoming + input[3..4)  after 1 3".
std::string print(const Schedule& schedule);

}  // namespace paceline
