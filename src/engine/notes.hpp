// Notes: the ranks of a call that sends messages tell each other their arrivals, in some words at
// the end of every message with contributions, without messages of their own.
//
// Notes hold a word of every known rank, which that rank chose, and the time since the last of the
// known ranks entered the call. Words follow contributions: a rank sends the words that it knows
// when a send begins, and knows more once a receive has ended. So a rank that holds a sum of all
// ranks knows all words, which are equal on all ranks: each rank wrote its own once.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "transport/transport.hpp"

namespace paceline {

class Notes {
 public:
  static constexpr std::uint32_t kKnown = 0x80000000;   // in a word: known; set by begin()
  static std::size_t bytes_for(int ranks) {
    return (static_cast<std::size_t>(ranks) + 1) * sizeof(std::uint32_t);
  }

  // `messages`: number that the rank sends or receives in a call.
  Notes(int ranks, int rank, std::size_t messages);

  std::size_t bytes() const { return bytes_for(ranks_); }   // at the end of each
  void begin(std::uint32_t word, double now_s);
  Part to_send(std::size_t message, double now_s);   // as of now; kept until the next call
  Part to_receive(std::size_t message);              // place for the received ones
  void sighted(std::size_t message, double now_s);   // its header is here
  void received(std::size_t message);
  // Ranks of a node, which share a clock, also show their notes in memory, which the others read
  // once this rank has signalled.
  static std::size_t shown_bytes_for(int ranks) {
    return sizeof(double) + static_cast<std::size_t>(ranks) * sizeof(std::uint32_t);
  }
  void show(std::byte* shown) const;
  void look(std::byte* shown, double now_s);
  void end(double now_s);

  // Once the call has ended:
  // True if all words are known; they are if all ranks' values were summed.
  bool is_complete() const;
  const std::vector<std::uint32_t>& words() const { return words_; }   // by position
  double waited_s() const { return last_s_ - entered_s_; }   // until the last rank entered
  // From then on, until calls that shared the links with this one had ended as well.
  double rest_s(double shared_end_s) const { return std::max(ended_s_, shared_end_s) - last_s_; }

 private:
  bool take(int rank, std::uint32_t word);   // returns true if it is new
  std::uint32_t* at(std::size_t message) {
    return room_.data() + message * (static_cast<std::size_t>(ranks_) + 1);
  }

  int ranks_, rank_;
  std::vector<std::uint32_t> words_, room_;
  std::vector<double> sighted_s_;   // 0: not yet, in this call
  double entered_s_ = 0, last_s_ = 0, ended_s_ = 0;
};

}  // namespace paceline
