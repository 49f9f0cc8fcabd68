// Port: the messages of one communicator, for a transport that must not know which MPI it talks to.
//
// A message under way has a number. Nothing throws: what MPI reports about a message becomes part
// of how it ended.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

namespace paceline::mpi {

using Buffer = std::unique_ptr<std::byte[]>;

struct Ended {
  int peer = 0;           // the sender, of a receive
  std::size_t bytes = 0;  // received
  bool cancelled = false;
  int error = 0;  // MPI's code; 0: none
};

class MpiPort {
 public:
  static constexpr int kAnybody = -1, kNone = -1;
  enum class Mode { buffered, matched };  // a send ends when MPI has it, when its receive is there

  virtual ~MpiPort() = default;
  virtual int rank() const = 0;
  virtual int ranks() const = 0;
  virtual int tag_limit() const = 0;
  virtual double now_s() const = 0;

  virtual int send(Mode mode, int peer, int tag, const std::byte* data, std::size_t bytes) = 0;
  virtual int recv(int peer, int tag, std::byte* data, std::size_t bytes) = 0;
  // True if MPI completes every receive from any source that is posted ahead of its message. If
  // not, take() receives a message that has already arrived; kNone: none has.
  virtual bool can_post_from_anybody() const = 0;
  virtual int take(int tag, std::byte* data, std::size_t bytes) = 0;
  virtual void poll(const std::vector<int>& messages) = 0;
  virtual void wait(const std::vector<int>& messages) = 0;  // until one of them has ended
  // True if poll() or wait() has seen it end; its number is free again then.
  virtual bool ended(int message, Ended& how) = 0;
  virtual void cancel(int message) = 0;   // a receive: it ends soon, as cancelled or received
  // Forgets it. MPI may use `memory` until the process ends; null: the buffer is the caller's.
  virtual void abandon(int message, Buffer memory) = 0;
  virtual std::string text_of(int error) const = 0;

  virtual bool is_finalized() const = 0;
  virtual void free() = 0;  // the communicator, when every rank does so
};

}  // namespace paceline::mpi
