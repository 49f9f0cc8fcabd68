// Notes: the ranks of a call that sends messages tell each other their arrivals, in some words at
// the end of every message with contributions, without messages of their own.
//
// Notes hold what the known ranks say of an earlier call (arrival/latest.hpp), which of them
// entered this call last, and how long ago. They follow contributions: a rank sends what it knows
// when a send begins, and knows more once a receive has ended. So a rank that holds a sum of all
// ranks knows what all say, which is equal on all ranks.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "arrival/latest.hpp"
#include "transport/transport.hpp"

namespace paceline {

class Notes {
 public:
  // At the end of each message: how long ago the last known rank entered, and the words, of which
  // the first one names that rank.
  static constexpr std::size_t kBytes = (1 + ArrivalWords::kWords) * sizeof(std::uint32_t);

  // `messages`: number that the rank sends or receives in a call.
  Notes(int ranks, int rank, std::size_t messages);

  void say(const ArrivalWords& own) { own_ = own; }   // this rank's words, from the next call on
  void begin(double now_s);
  Part to_send(std::size_t message, double now_s);   // as of now; kept until the next call
  Part to_receive(std::size_t message);              // place for the received ones
  void sighted(std::size_t message, double now_s);   // its header is here
  void received(std::size_t message);
  // Ranks of a node, which share a clock, also show their notes in memory, which the others read
  // once this rank has signalled.
  static constexpr std::size_t kShownBytes =
      sizeof(double) + ArrivalWords::kWords * sizeof(std::uint32_t);
  void show(std::byte* shown) const;
  void look(std::byte* shown, double now_s);
  void end(double now_s);

  // Once the call has ended:
  const ArrivalWords& words() const { return words_; }
  double waited_s() const { return last_s_ - entered_s_; }   // until the last rank entered
  // From then on, until calls that shared the links with this one had ended as well.
  double rest_s(double shared_end_s) const { return std::max(ended_s_, shared_end_s) - last_s_; }

 private:
  std::uint32_t* at(std::size_t message) {
    return room_.data() + message * (1 + ArrivalWords::kWords);
  }
  // Takes the first word; returns true if it tells of the entry of a rank not heard of before.
  bool is_news(std::uint32_t word);
  void entered(int rank, double when_s);

  int rank_, last_;                      // the last known rank
  ArrivalWords own_, words_;
  std::vector<bool> is_heard_of_;        // by rank, in this call
  std::vector<std::uint32_t> room_;
  std::vector<double> sighted_s_;   // 0: not yet, in this call
  double entered_s_ = 0, last_s_ = 0, ended_s_ = 0;
};

}  // namespace paceline
