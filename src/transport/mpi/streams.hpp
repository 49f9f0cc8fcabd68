// Streams: long messages, as chunks under a tag of their own.
//
// A few chunks of a stream are under way at once. Streams to one peer follow each other, so that
// the first is whole as early as can be, and are received in that order. A rank that has no receive
// yet for an older one, since it has yet to begin that call, says which one it wants.
//
// The first chunks pass through memory of ours on both sides, also where they need not: once they
// have arrived, the other side is known to be at work on this message, and the rest moves straight
// between the callers' buffers. So whoever gives up waiting for a rank that does not come has
// nothing in its buffers that MPI still uses.
#pragma once

#include <array>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "transport/mpi/port.hpp"
#include "transport/mpi/wire.hpp"

namespace paceline::mpi {

// Tags for the streams from this rank to one peer.
class Tags {
 public:
  explicit Tags(std::uint32_t first = 1, std::uint32_t last = 1)
      : first_(first), last_(last), next_(first) {}
  // The next one that is not in use; 0 where all are.
  std::uint32_t draw();
  void give_back(std::uint32_t tag);

 private:
  std::uint32_t first_, last_, next_;
  std::vector<std::uint32_t> used_;  // a handful at any time
};

class Streams {
 public:
  // Told of a message to or from a peer that went wrong, and why.
  using Failed = std::function<void(int peer, const std::string& why)>;
  Streams(MpiPort& port, std::size_t chunk_bytes, Failed failed);

  std::uint32_t chunks_of(std::size_t bytes) const;  // at least one, for the sender to wait for

  // A tag for a stream to that peer, or 0 where all are in use: try again later.
  std::uint32_t draw(int peer) { return tags_[std::size_t(peer)].draw(); }
  void send(Transfer& transfer, std::uint32_t tag);
  // Receives such a stream. Without a transfer it is received and thrown away. `place`: of one that
  // waits for older ones of its call, which are announced and have no receive yet.
  static constexpr std::uint64_t kAtOnce = ~std::uint64_t{0};
  void receive(Transfer* transfer, int peer, std::uint32_t tag, std::size_t bytes,
               std::uint32_t chunks, std::uint64_t place = kAtOnce);
  // The peer wants this stream, and has no receive yet for one before it.
  void want(int peer, std::uint32_t tag);
  // Tags of streams of other calls that nothing has come of yet: one of that call was announced,
  // may be more urgent, and has no receive. Each is named once.
  std::vector<std::uint32_t> held_up(int peer, const Key& call);
  // Begins to receive streams that need not wait any more; those that have waited for kHeldUpS are
  // returned: their peer is to send them first.
  struct HeldUp {
    int peer = 0;
    std::uint32_t tag = 0;
  };
  static constexpr double kHeldUpS = 0.05;
  using IsHeld = std::function<bool(int peer, const Key& key, std::uint64_t place)>;
  std::vector<HeldUp> release(const IsHeld& is_held);

  struct Withdrawn {
    std::uint32_t tag = 0;
    std::uint32_t chunks = 0;  // that have been sent
  };
  // Lets go of a transfer, whichever way it goes: nothing of it is touched afterwards. What its
  // receiver has to be told, if anything. Waits at most so long for a receiver that is at work on
  // it; kLetGoS for one that has not left.
  static constexpr double kLetGoS = 5;
  std::optional<Withdrawn> drop(const Transfer& transfer, double most_s);
  // The peer has sent only so many chunks of a stream.
  void withdraw(int peer, std::uint32_t tag, std::uint32_t chunks);

  void pending(std::vector<int>& messages) const;  // what to poll for
  bool progress();                                 // after a poll; whether anything moved
  bool comes_from(int peer) const;                 // a stream that somebody waits for

  bool sent() const;  // nothing of ours is under way any more
  bool idle() const { return out_.empty() && in_.empty() && rests_.empty(); }
  void close();    // receives nothing more
  void abandon();  // MPI keeps the memory of what has not ended

 private:
  static constexpr std::uint32_t kProbe = 2;   // chunks under way before the first has arrived
  static constexpr std::uint32_t kWindow = 4;  // and afterwards
  struct Chunk {
    int message = -1;
    Buffer staged = {};  // none: straight from or into the caller's buffer
  };
  struct Stream {
    Transfer* transfer = nullptr;
    int peer = 0;
    std::uint32_t tag = 0;
    std::uint32_t chunks = 0, started = 0, finished = 0;
    bool failed = false;
    bool wanted = false;   // before older ones that its receiver has no receive for
    std::uint64_t place = kAtOnce;   // else it waits for older ones to have a receive
    double waits_s = 0;              // since then
    std::array<Chunk, kWindow> flight = {};
    Chunk& at(std::uint32_t chunk) { return flight[chunk % kWindow]; }
    const Chunk& at(std::uint32_t chunk) const { return flight[chunk % kWindow]; }
    bool may_start() const {
      return !failed && started < chunks && started - finished < (finished ? kWindow : kProbe);
    }
    bool is_over() const { return finished == started && (failed || started == chunks); }
  };
  // What is left of a stream that nobody is interested in: its chunks must come and go all the
  // same, since the other side waits for them.
  struct Rest {
    bool sends = false;
    int peer = 0;
    std::uint32_t tag = 0;
    std::uint32_t chunks = 0, received = 0;
    std::vector<Chunk> posted = {};
  };

  std::size_t length(const Stream& s, std::uint32_t chunk) const;
  std::byte* straight(const Stream& s, std::uint32_t chunk) const;
  bool is_due(const Stream& s) const;
  bool advance_send(Stream& s);
  bool advance_receive(Stream& s);
  void start_sends(Stream& s);
  void start_receives(Stream& s);
  bool check(Stream& s, const Ended& how, std::size_t bytes);
  static Stream take(std::vector<Stream>& from, std::vector<Stream>::iterator at);
  static void oldest_of(const std::vector<Stream>& streams, std::vector<int>& messages);
  void coming(std::vector<int>& messages) const;
  bool receive_on();
  void post(Rest& rest);
  void keep(Rest rest);
  bool advance(Rest& rest);  // whether it is over
  Rest rest_of(Stream s, bool sends, double most_s = kLetGoS);
  std::uint32_t settle(std::vector<int>& messages, int peer, double most_s);

  MpiPort& port_;
  std::size_t chunk_bytes_;
  Pool pool_;
  Failed failed_;
  std::vector<Tags> tags_;  // by peer
  std::vector<Stream> out_, in_;   // out_: the most urgent first
  std::vector<Rest> rests_;
  bool waits_ = false;             // a stream of in_ may wait for older ones
  bool closed_ = false;
};

}  // namespace paceline::mpi
