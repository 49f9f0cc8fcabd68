// Transport: moves messages between ranks; all that an engine needs of it, on one screen.
//
// A message is named by its key and matches the receive with the same key from the same peer: the
// order in which either side posts does not matter. Everything is non-blocking; work is done in the
// thread that calls progress(). One thread at a time may call into a transport.
#pragma once

#include <atomic>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "transport/leaving.hpp"

namespace paceline {

class StagingBuffers;   // transport/staging.hpp

// Properties of a call on which ranks must agree. It travels in the header of every message of the
// call.
struct Fingerprint {
  std::uint64_t what = 0;  // collective, type, operation, root, algorithm
  std::uint64_t count = 0;
  bool operator==(const Fingerprint&) const = default;
};

struct Key {
  std::uint64_t context = 0;  // communicator
  std::uint32_t number = 0;   // operation
  std::uint16_t lane = 0;
  bool signal = false;
  std::int32_t seq = 0;  // message of this operation, pair and lane
  auto operator<=>(const Key&) const = default;
};

// Keys of a communicator's messages: of all its calls, or of one.
struct KeyRange {
  std::uint64_t context = 0;
  std::optional<std::uint32_t> number = std::nullopt;
  bool has(const Key& key) const {
    return key.context == context && key.number == number.value_or(key.number);
  }
};

struct Part {
  std::byte* data = nullptr;
  std::size_t bytes = 0;
};

// Takes a piece of an arriving message, `offset` bytes from its beginning. Pieces come in order and
// end on multiples of 64 bytes, except the last.
using Consume = void (*)(void* state, std::size_t offset, const std::byte* data, std::size_t bytes);

// One send or receive. Its caller owns it, and leaves it alone until it is done or cancelled.
struct Transfer {
  int peer = 0;
  Key key;
  Fingerprint fingerprint;
  std::vector<Part> parts;    // from where, or to where
  std::size_t bytes = 0;      // sum of the parts, or what `consume` will get
  Consume consume = nullptr;  // receive only: instead of parts
  void* state = nullptr;
  int priority = 0;           // the most urgent (highest) message to a peer goes first
  std::atomic<bool> done{false};

  std::size_t moved = 0;  // below: the transport's own
  std::uint32_t token = 0;
  bool granted = false;
};

// Takes the events of a transport. Called inside progress() and recv(); must not call back.
struct Listener {
  virtual ~Listener() = default;
  // The first sight of a message; false if it must not be delivered because the call does not fit.
  virtual bool arrives(int peer, const Key& key, const Fingerprint& fingerprint) = 0;
  // A message is not as long as its receive expects; neither is finished.
  virtual void misfits(int peer, const Key& key, std::size_t came, std::size_t expected) = 0;
  virtual void aborted(int peer, std::uint64_t context, const std::string& why) = 0;
  virtual void lost(int peer, const std::string& why) = 0;
  // A rank that this one waits for; -1: none. Shown to peers with this rank's status.
  virtual int awaits() const { return -1; }
};

// A rank's latest call, for its peers to read when they wait for it.
struct PeerStatus {
  std::uint64_t context = 0;
  Fingerprint fingerprint;
  std::uint32_t number = 0;
  bool inside = false;  // false: it has left that call
  bool current = true;  // false: known from its last message only
  bool silent = false;  // it has been asked since, and does not answer
  int awaits = -1;      // a rank that it waits for; -1: none, as far as is known
};

class Transport {
 public:
  virtual ~Transport() = default;
  virtual std::string_view name() const = 0;
  virtual int rank() const = 0;
  virtual int ranks() const = 0;
  // True if this rank's processors are too few for the ranks that may run nowhere else.
  virtual bool is_oversubscribed() const;
  virtual void listen(Listener* listener) = 0;
  // Stages of ranks that share memory; null: there are none. For groups whose ranks are all on this
  // node.
  virtual StagingBuffers* stages() { return nullptr; }

  virtual void send(Transfer& transfer) = 0;
  virtual void recv(Transfer& transfer) = 0;
  virtual void cancel(Transfer& transfer) = 0;  // afterwards the transport does not touch it
  virtual bool progress() = 0;                  // true if anything moved
  // True if progress() would find nothing to do among ranks that share memory; for fast paths.
  virtual bool is_quiet() { return false; }
  // Rate of a link between nodes, as far as is known. Ranks may be told different rates.
  virtual void expect_rate(double) {}

  // Visits messages with these keys that came before their receive; a starting operation compares
  // itself with those of its call.
  using Visit = std::function<void(int peer, const Key&, const Fingerprint&)>;
  virtual void unexpected(const KeyRange& of, const Visit& visit) const = 0;
  // Throws away such messages of a communicator that this rank has closed, and gives their senders
  // the room back. A transport whose messages take no room need not.
  virtual void forget(std::uint64_t) {}
  // Tells a peer that a communicator is broken, once there is room; until then owes() is true.
  virtual void abort(int peer, std::uint64_t context, const std::string& why) = 0;
  virtual bool owes() const { return false; }
  virtual void leave(Leaving why) = 0;     // tells the peers that nothing will come any more
  // Tells the listener which peers are lost, and shows peers the rank that this one awaits. Not for
  // fast paths.
  virtual void check_peers() = 0;
  // Asks a peer for its status, in transports that cannot look: peer_status() has the answer in a
  // while.
  virtual void ask(int) {}
  // Sleeps until something arrives, at most `timeout_us`; not at all if `can_progress` says so once
  // peers can see that this rank is about to sleep.
  virtual void rest(int timeout_us, const std::function<bool()>& can_progress) = 0;
  // Ends the sleep of these ranks after a store in a place that they may watch.
  virtual void wake_peers(const std::vector<int>&) {}
  virtual void wake() = 0;                 // ends another thread's rest(); callable at any time
  virtual void publish_status(const PeerStatus& doing) = 0;
  virtual PeerStatus peer_status(int peer) const = 0;
};

// Copies between a list of parts and one piece of memory, `offset` bytes into the list.
void copy_out(const std::vector<Part>& parts, std::size_t offset, std::byte* target,
              std::size_t bytes);
void deliver(Transfer& transfer, const std::byte* data,
             std::size_t bytes);  // the next piece, in order

}  // namespace paceline
