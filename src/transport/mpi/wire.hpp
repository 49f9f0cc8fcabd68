// Wire: the header of a control message, and the memory that messages travel in.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <vector>

#include "transport/mpi/port.hpp"
#include "transport/transport.hpp"

namespace paceline::mpi {

// eager     a whole message                        stream  a message that follows in chunks
// withdraw  fewer chunks come than were said       want    send this stream before older ones
// credit    only says how much has been read
// abort     a communicator is broken; text follows
// query     what are you about?                    answer  this
// leave     no call will come any more, and why    close   nothing is received any more either
// bye       the last word to one that has left, too
enum class Kind : std::uint8_t {
  eager,
  stream,
  withdraw,
  want,
  credit,
  abort,
  query,
  answer,
  leave,
  close,
  bye
};

struct Header {
  std::uint64_t context = 0;
  std::uint64_t what = 0;  // fingerprint
  std::uint64_t count = 0;
  std::uint64_t total = 0;  // bytes of the whole message
  std::uint64_t read = 0;   // bytes of eager messages that the sender of this has read so far
  std::uint32_t number = 0;
  std::int32_t seq = 0;
  std::uint32_t tag = 0;     // of the chunks; want: of that stream
  std::uint32_t chunks = 0;  // of the stream; withdraw: as many come after all
  std::uint16_t lane = 0;
  Kind kind = Kind::eager;
  std::uint8_t signal = 0;    // answer: inside the call; leave: why
  std::int32_t priority = 0;  // stream
};
static_assert(sizeof(Header) == 64 && std::is_trivially_copyable_v<Header>);

// Payload of an answer: the rank that its sender waits for, and what it last heard of that rank.
struct Awaited {
  std::int64_t rank = -1;   // -1: none
  std::uint64_t context = 0, what = 0, count = 0, number = 0;
};

inline Awaited awaited_of(const std::byte* payload, std::size_t bytes) {
  Awaited said;
  if (bytes >= sizeof(said)) std::memcpy(&said, payload, sizeof(said));
  return said;
}

inline Header answer_of(const PeerStatus& doing) {
  Header h;
  h.kind = Kind::answer;
  h.context = doing.context;
  h.what = doing.fingerprint.what;
  h.count = doing.fingerprint.count;
  h.number = doing.number;
  h.signal = doing.inside;
  return h;
}

inline Header header_of(Kind kind, const Transfer& t) {
  Header h;
  h.kind = kind;
  h.context = t.key.context;
  h.number = t.key.number;
  h.lane = t.key.lane;
  h.signal = t.key.signal;
  h.seq = t.key.seq;
  h.what = t.fingerprint.what;
  h.count = t.fingerprint.count;
  h.total = t.bytes;
  h.priority = t.priority;
  return h;
}

inline Key key_of(const Header& h) { return {h.context, h.number, h.lane, h.signal != 0, h.seq}; }
inline Fingerprint fingerprint_of(const Header& h) { return {h.what, h.count}; }

// Order of the streams from one rank to another: the most urgent first; in one communicator the
// older call first; otherwise the older stream.
struct Order {
  std::int32_t priority = 0;
  std::uint64_t context = 0;
  std::uint32_t number = 0;
  std::uint64_t place = 0;   // among all messages from the one rank to the other
};
inline Order order_of(const Transfer& t, std::uint64_t place) {
  return {t.priority, t.key.context, t.key.number, place};
}
inline Order order_of(const Header& h, std::uint64_t place) {
  return {h.priority, h.context, h.number, place};
}
// Compares streams of one communicator, whatever their priorities.
inline bool is_older(const Order& a, const Order& b) {
  const auto calls = static_cast<std::int32_t>(a.number - b.number);
  return calls < 0 || (calls == 0 && a.place < b.place);
}
inline bool goes_before(const Order& a, const Order& b) {
  if (a.priority != b.priority) return a.priority > b.priority;
  return a.context == b.context ? is_older(a, b) : a.place < b.place;
}

// Buffers of one size. It keeps all that were ever in use at once until it is destroyed.
class Pool {
 public:
  explicit Pool(std::size_t bytes) : bytes_(bytes) {}
  std::size_t bytes() const { return bytes_; }

  Buffer take() {
    if (unused_.empty()) return std::make_unique_for_overwrite<std::byte[]>(bytes_);
    Buffer buffer = std::move(unused_.back());
    unused_.pop_back();
    return buffer;
  }
  void give(Buffer buffer) {
    if (buffer) unused_.push_back(std::move(buffer));
  }

 private:
  std::size_t bytes_;
  std::vector<Buffer> unused_;
};

}  // namespace paceline::mpi
