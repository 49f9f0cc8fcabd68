// Streams: long messages, as chunks under a tag of their own.
//
// A few chunks of a stream are under way at once. Streams to one peer follow each other, so that
// the first is whole as early as can be, and are received in that order. A receiver that has yet to
// begin the call of an earlier one asks the sender for a later one first (Kind::want).
//
// The first chunks of a call pass through memory of ours on both sides. Once one has arrived, the
// other side is known to be at work on this call, and the rest moves straight between the callers'
// buffers. So when a rank gives up waiting for one that does not come, MPI uses none of its
// caller's buffers.
#pragma once

#include <array>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "transport/mpi/chunks.hpp"
#include "transport/mpi/peer.hpp"
#include "transport/mpi/port.hpp"
#include "transport/mpi/wire.hpp"

namespace paceline::mpi {

// Tags for the streams from this rank to one peer.
class Tags {
 public:
  explicit Tags(std::uint32_t first = 1, std::uint32_t last = 1)
      : first_(first), last_(last), next_(first) {}
  // Returns the next tag that is not in use; 0: all are.
  std::uint32_t draw();
  void give_back(std::uint32_t tag);

 private:
  std::uint32_t first_, last_, next_;
  std::vector<std::uint32_t> used_;  // a handful at any time
};

class Streams {
 public:
  // Called when a message to or from a peer has failed, with the reason.
  using Failed = std::function<void(int peer, const std::string& why)>;
  Streams(MpiPort& port, std::size_t chunk_bytes, Failed failed);

  // Takes the rate of a link. Chunks of this rank's messages that would take less than kChunkS grow
  // from now on: each costs a message of MPI, and an answer.
  void expect_rate(double bytes_per_s);
  // Number of chunks of a message of this rank: at least 1, for the sender to wait for.
  std::uint32_t chunks_of(std::size_t bytes) const { return Chunks::number(bytes, chunk_bytes_); }

  // Returns a tag for a stream to that peer; 0: all are in use, try again later.
  std::uint32_t draw(int peer) { return tags_[std::size_t(peer)].draw(); }
  void send(Transfer& transfer, std::uint32_t tag);
  // Receives a stream; without a transfer, throws it away. `waits`: it begins only when release()
  // finds no earlier stream in its way.
  void receive(Transfer* transfer, int peer, std::uint32_t tag, std::size_t bytes,
               std::uint32_t chunks, const Order& order = {}, bool waits = false);
  // The peer wants this stream, and has no receive yet for one before it.
  void want(int peer, std::uint32_t tag);
  // Streams have been announced, or have found their receive: release() has something to look at.
  void look_again() { may_be_held_up_ = true; }
  struct HeldUp {
    int peer = 0;
    std::uint32_t tag = 0;
  };
  static constexpr double kHeldUpS = 0.05;   // longer than receives wait for slots, as a rule
  using FindBefore = std::function<Peer::Before(int peer, const Order& stream)>;
  // Begins to receive streams that need not wait any more. Returns, once each, those that their
  // peer is to send first: they would wait for good, or have been held up for kHeldUpS.
  std::vector<HeldUp> release(const FindBefore& before);

  struct Withdrawn {
    std::uint32_t tag = 0;
    std::uint32_t chunks = 0;  // that have been sent
  };
  // Lets go of a transfer, sent or received, and touches nothing of it afterwards. Returns the
  // withdrawal to be told to the receiver of a send. Waits at most `most_s` for a receiver that is
  // at work on it: kLetGoS for one that has not left.
  static constexpr double kLetGoS = 5;
  std::optional<Withdrawn> drop(const Transfer& transfer, double most_s);
  // The peer has sent only so many chunks of a stream.
  void withdraw(int peer, std::uint32_t tag, std::uint32_t chunks);

  void pending(std::vector<int>& messages) const;  // messages to poll for
  bool progress();                                 // after a poll; true if anything moved
  bool comes_from(int peer) const;                 // true if a stream from it has a receive

  bool idle() const { return out_.empty() && in_.empty() && leftovers_.empty(); }
  void close();    // receives nothing more
  void abandon();  // MPI keeps the memory of what has not ended

 private:
  static constexpr std::uint32_t kProbe = 2;   // chunks under way before the first has arrived
  static constexpr std::uint32_t kWindow = 4;  // and afterwards
  // Time that a chunk should take at the expected rate: a more urgent message waits for a window of
  // them. Chunks of a probe are copied on both sides.
  static constexpr double kChunkS = 0.01;
  static constexpr std::size_t kLongestChunk = 1u << 20;
  struct Chunk {
    int message = -1;    // of the port
    Buffer staged = {};  // none: it moves from or into the caller's buffer
  };
  struct Stream {
    Transfer* transfer = nullptr;
    int peer = 0;
    std::uint32_t tag = 0;
    Chunks chunks = {};
    std::uint32_t started = 0, finished = 0;
    bool failed = false;
    bool wanted = false;   // by its receiver, before earlier ones that have no receive there
    Order order = {};
    bool waits = false;    // received: for earlier ones to have a receive
    double since_s = 0;    // received: since when it may be held up; 0: it is not
    std::array<Chunk, kWindow> under_way = {};
    Chunk& at(std::uint32_t chunk) { return under_way[chunk % kWindow]; }
    const Chunk& at(std::uint32_t chunk) const { return under_way[chunk % kWindow]; }
    bool may_start() const {
      const std::uint32_t most = finished ? kWindow : kProbe;
      return !failed && started < chunks.count && started - finished < most;
    }
    bool is_over() const { return finished == started && (failed || started == chunks.count); }
  };
  // Rest of a stream that was given up: its chunks must be sent and received all the same, since
  // the other side waits for them.
  struct Leftover {
    bool sends = false;
    int peer = 0;
    std::uint32_t tag = 0;
    std::uint32_t chunks = 0, received = 0;
    std::vector<Chunk> posted = {};
  };

  std::byte* unstaged(const Stream& s, std::uint32_t chunk) const;
  bool is_at_work(const Stream& s) const;   // true if the peer is, on the call of `s`
  void has_moved(const Stream& s);          // a chunk of it moved: its peer is at work
  bool is_due(const Stream& s) const;
  bool advance_send(Stream& s);
  bool advance_receive(Stream& s);
  void start_sends(Stream& s);
  void start_receives(Stream& s);
  bool check(Stream& s, const Ended& how, std::size_t bytes);
  static Stream take(std::vector<Stream>& from, std::vector<Stream>::iterator at);
  static void oldest_of(const std::vector<Stream>& streams, std::vector<int>& messages);
  void pending_receives(std::vector<int>& messages) const;
  bool progress_receives();
  void post(Leftover& leftover);
  void keep(Leftover leftover);
  bool advance(Leftover& leftover);  // true once it is over
  Leftover leftover_of(Stream s, bool sends, double most_s = kLetGoS);
  std::uint32_t settle(std::vector<int>& messages, int peer, double most_s);

  MpiPort& port_;
  std::size_t chunk_bytes_, least_bytes_;
  Pool pool_;
  Failed failed_;
  std::vector<Tags> tags_;  // by peer
  double settles_since_s_ = 0;   // 0: progress() came after the last settle()
  std::vector<Order> moved_;   // by peer: the stream of which a chunk has moved last
  std::vector<Stream> out_, in_;   // out_: in the order in which they go (goes_before)
  std::vector<Leftover> leftovers_;
  std::uint64_t sends_ = 0;        // streams so far
  bool may_be_held_up_ = false;    // some stream of in_
  bool closed_ = false;
};

}  // namespace paceline::mpi
