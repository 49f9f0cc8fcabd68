// Ranks as fibers of one thread: blocking calls of many ranks, in an order that a seed decides, by
// a clock of their own. The same seed gives the same run.
//
// A fiber runs until it lets others run, which the transport does wherever it is called. Time goes
// by as they do so, and jumps to where it matters when all of them sleep: no test waits for it.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "base/random.hpp"

namespace paceline::fuzz {

class Fibers {
 public:
  explicit Fibers(std::uint64_t seed);
  ~Fibers();
  void add(std::function<void()> body);   // its number is the number of those before it
  // Until all have ended, except those that are held for ever: they are unwound. False where some
  // do not end within so many turns; they are unwound, too.
  bool run(long most_turns);

  // Does not let a fiber run from a time on, until another.
  void hold(int fiber, double from_s, double until_s);
  double now_s() const { return now_s_; }
  static Fibers* active();   // whose fiber is running; null outside of fibers

  // Of the fiber that is running:
  int current() const { return current_; }
  void yield(bool moved);      // `moved`: something has gone on since the last time
  void sleep(double seconds);
  bool is_ending() const;      // it is being unwound: nobody will come any more
  void leave();                // nothing is thrown through it from now on: it may be in destructors

 private:
  struct Fiber;
  struct Ended {};   // unwinds a fiber
  static void enter(unsigned high, unsigned low);
  int pick();        // the next fiber; -1: none will ever run
  void resume(int fiber);
  void suspend();
  void unwind();

  Random random_;
  std::vector<std::unique_ptr<Fiber>> fibers_;
  int current_ = -1;
  double now_s_ = 1;
  int still_ = 0;    // turns in which nothing moved
};

}  // namespace paceline::fuzz
