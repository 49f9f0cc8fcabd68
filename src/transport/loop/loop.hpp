// loop: ranks inside one process, for tests. One thread steps them in a seeded order, or each is a
// thread.
//
// Every message waits for a random number of progress() calls, some are taken from the sender at
// once (buffered), others only when the receive is there (rendezvous): what a network does, from
// one seed.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "base/random.hpp"
#include "transport/matcher.hpp"
#include "transport/stage.hpp"
#include "transport/transport.hpp"

namespace paceline {

// Of one rank in one communicator. Small, so that messages of tests come in many blocks.
struct alignas(64) StageMemory {
  static constexpr std::size_t kBytes = 64u << 10;
  std::byte bytes[Stage::kHead + kBytes] = {};
};

struct LoopOptions {
  std::uint64_t seed = 1;
  int buffered_percent = 50;  // of the messages
  int delay_most = 3;         // progress() calls of the receiver before a message moves
  std::string why_not_attached = {};   // see Stages
};

class LoopNet {
 public:
  LoopNet(int ranks, LoopOptions options);
  ~LoopNet();
  std::unique_ptr<Transport> endpoint(int rank);
  void kill(int rank);  // its peers are told by their next check_peers()

 private:
  friend class LoopTransport;
  friend class LoopStages;
  struct Message {
    Key key;
    Fingerprint fingerprint;
    Transfer* sender = nullptr;   // rendezvous
    std::vector<std::byte> data;  // buffered
    std::size_t bytes = 0;
    int delay = 0;
    bool seen = false;
  };
  struct Inbox {
    std::vector<Message> messages;  // from one peer
    std::vector<Transfer*> receives;
  };
  struct Notice {
    int from;
    std::uint64_t context;
    std::string why;
  };

  std::mutex mutex_;
  int ranks_;
  LoopOptions options_;
  Random random_;
  std::vector<std::vector<Inbox>> inbox_;  // by receiver, by sender
  std::vector<std::vector<Notice>> notices_;
  std::vector<bool> alive_;
  std::vector<Doing> doing_;
  std::map<std::pair<int, std::uint64_t>, std::unique_ptr<StageMemory>> stages_;
};

}  // namespace paceline
