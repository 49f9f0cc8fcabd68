// Ports: the sending and receiving sides that are busy, and the waiting message that is next.
#pragma once

#include <cstdint>
#include <set>
#include <utility>
#include <vector>

#include "simulate/work.hpp"

namespace paceline {

class Ports {
 public:
  explicit Ports(const std::vector<int>& node_of);   // of each rank, from 0 on

  // A message, by its send, that both ranks are ready for.
  void offer(const Urgency& message, int from, int to);

  // The message has ended: its ports are free.
  void release(int from, int to);

  // Takes the most urgent message that can start, and its ports; kNobody: there is none. To be
  // called until then, after all that happens at one moment has been offered and released.
  std::uint32_t next();

 private:
  struct Waiting {
    Urgency message;
    std::size_t out = 0, in = 0;
    bool operator<(const Waiting& other) const { return message < other.message; }
  };
  using Queue = std::set<Waiting>;

  // A place in a queue whose port has become free, with what stands there.
  struct Cursor {
    Waiting at;
    std::size_t port = 0;
    bool fresh = false;                // offered just now: not in any queue
    bool operator>(const Cursor& other) const { return other.at < at; }
  };

  std::pair<std::size_t, std::size_t> ports_of(int from, int to) const;
  bool fits(const Waiting& w) const { return !busy_[w.out] && !busy_[w.in]; }
  void push(const Cursor& cursor);
  void look_behind(const Cursor& cursor);

  std::vector<int> node_of_;
  std::size_t nodes_, ranks_;
  std::vector<bool> busy_;
  std::vector<Queue> queues_;          // by port: what waits for it
  std::vector<Cursor> heads_;          // a heap, the most urgent first
  std::vector<std::size_t> freed_;     // since the last round
};

}  // namespace paceline
