// Builder: an author writes steps in the algorithm's order; it derives the edges between them.
#pragma once

#include <initializer_list>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "ir/schedule.hpp"

namespace paceline {

// Consecutive blocks of a buffer, as the home of a sub-collective's input or output. In a scratch
// slot the region may reach beyond it: then the sub-collective has room for the slot's blocks, and
// of the others only knows how long they are.
struct Region {
  Space space = Space::output;
  int first = 0;
  int blocks = 0;
  Segment slot = {};   // scratch only: the slot
};

// Segments that a caller has listed, for as long as a call takes.
struct Segments : std::span<const Segment> {
  Segments(std::initializer_list<Segment> list) : span(list.begin(), list.size()) {}
  Segments(const std::vector<Segment>& list) : span(list) {}
};

class Builder {
 public:
  // `cuts`: blocks per unit of the problem's message.
  Builder(const Problem& problem, int cuts);

  // The blocks [first, first + blocks) of the caller's buffers; without arguments all of them. If a
  // problem is in place, both names mean the same memory.
  Segment input(int first, int blocks = 1) const;
  Segment output(int first, int blocks = 1) const;
  Segment input() const { return input(0, total()); }
  Segment output() const { return output(0, total()); }
  int total() const { return total_; }
  const Problem& problem() const { return problem_; }

  // Working memory with room for `shape`. The same slot can be used for another range later on:
  // as(slot, other) is the slot, holding `other`.
  Segment scratch(const Segment& shape);
  // Scratch of which peers use a part that this rank does not (Access::staging). All ranks ask for
  // the same shape.
  Segment shared_scratch(const Segment& shape);
  // Scratch that the other ranks of the node reach as well (Problem::node_staging). All of them ask
  // for the same shapes in the same order, before any other scratch.
  Segment staging(const Segment& shape);
  static Segment as(const Segment& slot, const Segment& shape);
  // The blocks of a segment, in any buffer, that are called [first, first + blocks).
  static Segment part(const Segment& whole, int first, int blocks);

  // The same blocks of the peer's buffer, which this rank reads or writes itself. Signals and waits
  // must say when it may. The peer's problem must be in place if this rank's is.
  Segment of_peer(int peer, Segment segment) const;

  void send(int peer, Segments message);   // empty: a message without content
  void recv(int peer, Segments message);
  void copy(const Segment& source, const Segment& target);    // nothing if both are the same
  // target = sources[0] op sources[1] op ..., in this order; the target may be one of the sources.
  void reduce(Segments sources, const Segment& target);
  // Marks the combination of this block as complete: here an average is divided. Once per block,
  // before it spreads.
  void finish(const Segment& block);
  // Everything written above is visible to `peer` when its matching wait returns.
  void signal(int peer);
  void wait(int peer);

  // Begins the tail, which may take all pipeline segments of a message together (ir/pipeline.hpp).
  // Every rank calls this at the same point of the algorithm. `reads_scratch`: some rank goes on to
  // read scratch from before. The tail must not combine what it receives.
  void whole(bool reads_scratch = false);

  // Cuts blocks in two steps: `blocks` of them make one block of another algorithm, and begin and
  // end where it does. Every rank calls this alike, in phases too.
  void cut_within(int blocks);

  // A Builder for a collective among some of the ranks, on some of the blocks, that records into
  // this one. `problem` is the phase's own (ranks, rank and root are positions among `members`).
  // Unless the phase completes the sum, its finish() means nothing. If other ranks are in no such
  // phase, no tail begins in it. Used through ir/compose.hpp.
  struct Part {
    Problem problem;
    int cuts = 1;
    std::vector<int> members;    // position -> rank of this Builder
    Region input, output;
    bool completes = false;
    bool leaves_out = false;
  };
  Builder phase(const Part& part) const;

  Schedule take(std::string algorithm) &&;

 private:
  struct Recording;                       // shared by a Builder and its phases

  Segment place(const Region& region, int first, int blocks) const;
  int rank_of(int position) const;
  void add(Kind kind, int position, Segments first, Segments rest = {});

  Builder() = default;

  Problem problem_;
  int total_ = 1;                          // blocks of the message
  std::vector<int> members_;               // empty: every rank, as numbered
  Region input_, output_;
  bool completes_ = true, leaves_out_ = false;
  std::shared_ptr<Recording> recording_;
};

}  // namespace paceline
