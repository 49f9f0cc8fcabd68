// Notes: what the ranks of a call that sends messages tell each other of their arrivals, without a
// message of its own: some words at the end of every message that has contributions in it.
//
// A word of every rank that is known, of one's choice, and how long ago the last of the known ranks
// entered the call. Words go wherever contributions go: a rank passes on what it knows when a send
// begins, and knows more once a receive has ended. So who holds a sum of all ranks knows the words
// of all, and they are the same everywhere: each was said once, by its rank.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "transport/transport.hpp"

namespace paceline {

class Notes {
 public:
  static constexpr std::uint32_t kKnown = 0x80000000;   // of a word: that it was said; set by begin
  static std::size_t bytes_for(int ranks) {
    return (static_cast<std::size_t>(ranks) + 1) * sizeof(std::uint32_t);
  }

  // Of a rank that sends or receives so many messages in a call.
  Notes(int ranks, int rank, std::size_t messages);

  std::size_t bytes() const { return bytes_for(ranks_); }   // at the end of each
  void begin(std::uint32_t word, double now_s);
  Part to_send(std::size_t message, double now_s);   // as it is now; kept until the next call
  Part to_receive(std::size_t message);              // where they are to be put
  void sighted(std::size_t message, double now_s);   // its header is here
  void received(std::size_t message);
  // Ranks of a node, whose clocks are one, also show what they know, in memory that the others look
  // at once this rank has signalled.
  static std::size_t shown_bytes_for(int ranks) {
    return sizeof(double) + static_cast<std::size_t>(ranks) * sizeof(std::uint32_t);
  }
  void show(std::byte* shown) const;
  void look(std::byte* shown, double now_s);
  void end(double now_s);

  // Once the call has ended:
  // All words are known: where all ranks' values were summed they are.
  bool is_complete() const;
  const std::vector<std::uint32_t>& words() const { return words_; }   // by position
  double waited_s() const { return last_s_ - entered_s_; }   // until the last rank entered
  // From then on, until calls that shared the links with this one had ended as well.
  double rest_s(double shared_end_s) const { return std::max(ended_s_, shared_end_s) - last_s_; }

 private:
  bool take(int rank, std::uint32_t word);   // whether it is new
  std::uint32_t* at(std::size_t message) {
    return room_.data() + message * (static_cast<std::size_t>(ranks_) + 1);
  }

  int ranks_, rank_;
  std::vector<std::uint32_t> words_, room_;
  std::vector<double> sighted_s_;   // 0: not yet, in this call
  double entered_s_ = 0, last_s_ = 0, ended_s_ = 0;
};

}  // namespace paceline
