// Peer: what the shm transport keeps for each of the other ranks of the node.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <deque>
#include <string>
#include <vector>

#include "transport/matcher.hpp"
#include "transport/shm/inbox.hpp"

namespace paceline::shm {

constexpr std::uint32_t kNoToken = 0xffffffff;

inline void head(Cell64& cell, CellKind kind, const Transfer& t) {
  cell.kind = kind;
  cell.context = t.key.context;
  cell.number = t.key.number;
  cell.lane = t.key.lane;
  cell.signal = t.key.signal;
  cell.seq = t.key.seq;
  cell.what = t.fingerprint.what;
  cell.count = t.fingerprint.count;
  cell.total = t.bytes;
  cell.bytes = 0;
}

// All of the header but the turn, which publish() sets.
inline void copy_head(Cell64& to, const Cell64& from) {
  std::memcpy(reinterpret_cast<std::byte*>(&to) + sizeof(to.turn),
              reinterpret_cast<const std::byte*>(&from) + sizeof(from.turn),
              sizeof(Cell64) - sizeof(to.turn));
}

struct Early {
  Key key;
  Fingerprint fingerprint;
  bool request = false;
  std::uint64_t total = 0;
  std::uint32_t token = 0;  // of the sender, to answer a request with
  std::vector<std::byte> data;
};

// A table of transfers that the other side knows by number. Numbers from shared memory are checked.
class Tokens {
 public:
  std::uint32_t add(Transfer* t) {
    for (std::uint32_t i = 0; i < table_.size(); ++i)
      if (!table_[i]) return table_[i] = t, i;
    table_.push_back(t);
    return static_cast<std::uint32_t>(table_.size() - 1);
  }
  Transfer* find(std::uint32_t token) const {
    return token < table_.size() && table_[token] != &retired_ ? table_[token] : nullptr;
  }
  void drop(const Transfer* t) { replace(t, nullptr); }
  // The other side may still answer to this number: it must never mean another transfer.
  void retire(const Transfer* t) { replace(t, &retired_); }

 private:
  void replace(const Transfer* t, Transfer* by) {
    for (Transfer*& entry : table_)
      if (entry == t) entry = by;
  }

  Transfer retired_;
  std::vector<Transfer*> table_;
};

// A grant, or an abort with its text.
struct Word {
  Cell64 head{};
  std::string text;
};

struct Peer {
  Ring out, in;
  std::deque<Transfer*> sends;  // to begin, or granted and streaming; oldest first
  std::deque<Word> words;       // that found the ring full
  Matcher<Early> matcher;
  Tokens requested;           // sends that wait for their grant
  Tokens granted;             // receives that are being streamed to
  std::uint64_t unread = 0;   // bytes of eager messages sent so far
  std::uint64_t drained = 0;  // bytes of eager messages matched so far, of this peer's
  bool gone = false;

  bool has_work() { return in.filled_cell() || !sends.empty() || !words.empty(); }
};

}  // namespace paceline::shm
