// Peer: what the shm transport keeps for each of the other ranks of the node.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <deque>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "base/str.hpp"
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
  Fingerprint fingerprint;
  bool request = false;
  std::uint64_t total = 0;
  std::uint32_t token = 0;  // of the sender, to answer a request with
  std::vector<std::byte> data;
};

// A table of transfers that the other side knows by number. Numbers from shared memory are checked.
// A number is a place, and a count of how often that place was given up while the other side might
// still answer: an old number never means another transfer, though its place is used again.
class Tokens {
 public:
  std::uint32_t add(Transfer* t) {
    if (free_.empty()) {
      require(table_.size() < kPlaces - 1, "shm: a million long messages to one rank at once");
      free_.push_back(static_cast<std::uint32_t>(table_.size()));
      table_.emplace_back();
    }
    const std::uint32_t place = free_.back();
    free_.pop_back();
    table_[place].transfer = t;
    return table_[place].times << kPlaceBits | place;
  }
  Transfer* find(std::uint32_t token) const {
    const std::uint32_t place = token & (kPlaces - 1);
    if (place >= table_.size() || table_[place].times != token >> kPlaceBits) return nullptr;
    return table_[place].transfer;
  }
  // The transfer of this number is over.
  void drop(std::uint32_t token) { leave(token & (kPlaces - 1), 0); }
  // The other side may still answer.
  void retire(const Transfer* t) {
    for (std::uint32_t i = 0; i < table_.size(); ++i)
      if (table_[i].transfer == t) leave(i, 1);
  }
  std::size_t places() const { return table_.size(); }

 private:
  static constexpr std::uint32_t kPlaceBits = 20, kPlaces = 1u << kPlaceBits;
  static constexpr std::uint32_t kTimes = 1u << (32 - kPlaceBits);
  struct Place {
    Transfer* transfer = nullptr;
    std::uint32_t times = 0;
  };

  void leave(std::uint32_t place, std::uint32_t times) {
    table_[place].transfer = nullptr;
    table_[place].times += times;
    if (table_[place].times < kTimes) free_.push_back(place);   // else it is worn out
  }

  std::vector<Place> table_;
  std::vector<std::uint32_t> free_;
};

constexpr std::size_t kLongestWord = 4096;   // bytes

// A grant, or an abort with its text, or a part of that.
struct Word {
  Cell64 head{};
  std::string text;
};

struct Peer {
  Ring out, in;
  // Sends to begin, or granted and streaming: the most urgent first, then the oldest.
  std::deque<Transfer*> sends;
  std::deque<Word> words;       // that found the ring full
  Matcher<Early> matcher;
  Tokens requested;           // sends that wait for their grant
  Tokens granted;             // receives that are being streamed to
  std::uint64_t unread = 0;   // bytes of eager messages sent so far
  std::uint64_t known_drained = 0;   // of these, as the peer has said: read only when it matters
  std::uint64_t drained = 0;  // bytes of eager messages matched so far, of this peer's
  bool gone = false;
  std::string heard;          // text so far of an abort that goes on in the next cells

  // An abort that is longer than a cell takes several; each says how much is to follow.
  void say(std::uint64_t context, const std::string& why) {
    const std::string text = shortened(why, kLongestWord);
    std::size_t at = 0;
    do {
      Word& word = words.emplace_back();
      word.text = text.substr(at, out.cell_bytes());
      at += word.text.size();
      word.head.kind = CellKind::abort;
      word.head.context = context;
      word.head.bytes = static_cast<std::uint32_t>(word.text.size());
      word.head.total = text.size() - at;
    } while (at < text.size());
  }
  // Appends the cell's text; true once the text is whole.
  bool hears(Cell64& cell, std::size_t bytes) {
    heard.append(reinterpret_cast<const char*>(Ring::payload(&cell)), bytes);
    return cell.total == 0 || heard.size() >= kLongestWord;
  }

  void enqueue(Transfer* t) {
    const auto goes_first = [&](const Transfer* s) { return s->priority >= t->priority; };
    sends.insert(std::find_if(sends.rbegin(), sends.rend(), goes_first).base(), t);
  }
  bool has_work() { return in.filled_cell() || !sends.empty() || !words.empty(); }
};

}  // namespace paceline::shm
