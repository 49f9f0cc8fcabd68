// loop: ranks inside one process, for tests. One thread steps them in a seeded order, or each is a
// thread.
//
// Every message waits for a random number of progress() calls. Some are taken from the sender at
// once (buffered), others only when the receive is there (rendezvous). One seed decides it all.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "transport/staging.hpp"
#include "transport/transport.hpp"

namespace paceline {

// Staging memory of one rank in one communicator, small so that test messages come in many blocks.
struct alignas(64) StagingMemory {
  static constexpr std::size_t kBytes = 64u << 10;
  std::byte bytes[StagingBuffer::kHead + kBytes] = {};
};

struct LoopOptions {
  std::uint64_t seed = 1;
  int buffered_percent = 50;  // of the messages
  int delay_most = 3;         // progress() calls of the receiver before a message moves
  std::string why_not_attached = {};   // see StagingBuffers
};

// Its endpoints may outlive it, with the calls that they still carry.
class LoopNet {
 public:
  LoopNet(int ranks, LoopOptions options);
  std::unique_ptr<Transport> endpoint(int rank);
  void kill(int rank);  // its peers are told by their next check_peers()

 private:
  friend class LoopTransport;
  friend class LoopStaging;
  struct State;

  std::shared_ptr<State> state_;   // its endpoints hold it as well
};

}  // namespace paceline
