// Mailbox: the control messages of a rank. Those from one peer come in the order in which it sent
// them.
#pragma once

#include <deque>
#include <vector>

#include "transport/mpi/port.hpp"
#include "transport/mpi/wire.hpp"

namespace paceline::mpi {

inline constexpr int kControlTag = 0;

class Mailbox {
 public:
  // `payload`: the most bytes behind a header.
  Mailbox(MpiPort& port, std::size_t payload);

  struct Letter {
    int from = 0;
    Header header;
    Buffer memory;  // give it back
    std::size_t bytes = 0;
    std::byte* payload() const { return memory.get() + sizeof(Header); }
  };

  std::size_t payload_most() const { return pool_.bytes() - sizeof(Header); }
  // Sends the header and what follows it; write(target) fills in `bytes` bytes.
  template <class Write>
  void send(int peer, const Header& header, std::size_t bytes, Write&& write) {
    Buffer memory = pool_.take();
    std::memcpy(memory.get(), &header, sizeof(header));
    write(memory.get() + sizeof(header));
    post(peer, std::move(memory), sizeof(header) + bytes);
  }
  void send(int peer, const Header& header) {
    send(peer, header, 0, [](std::byte*) {});
  }

  // The next message, if poll() has seen it. `trouble`: MPI's code if it cannot receive.
  bool next(Letter& letter, int& trouble);
  void give_back(Buffer memory) { pool_.give(std::move(memory)); }

  void pending(std::vector<int>& messages) const;  // messages to poll for
  // Frees messages that have been sent. Calls failed(peer, code) for those that could not be.
  template <class Failed>
  void collect(Failed&& failed) {
    Ended how;
    while (!sending_.empty() && port_.ended(sending_.front().message, how)) {
      if (how.error) failed(how.peer, how.error);
      pool_.give(std::move(sending_.front().memory));
      sending_.pop_front();
    }
  }
  bool idle() const { return sending_.empty(); }

  void close();  // receives nothing more; what remains is for abandon()
  bool is_closed() const { return receiving_.empty(); }
  void collect_closed();  // after a poll
  void abandon();         // MPI keeps the memory of what has not ended

 private:
  struct Slot {
    int message = 0;
    Buffer memory;
  };
  void post(int peer, Buffer memory, std::size_t bytes);
  void receive();   // posts one ahead
  void take();      // receives a message that has arrived, if none are posted

  MpiPort& port_;
  Pool pool_;
  std::deque<Slot> receiving_;  // in the order posted, in which messages match them
  std::deque<Slot> sending_;
  bool posts_ahead_, closing_ = false;
};

}  // namespace paceline::mpi
