// How long it is wise to spin on a processor.
#pragma once

namespace paceline {

void pause();   // a spin loop's instruction: lets the core's other hardware threads run

// Yields the processor for up to 5 ms. Where another rank that waits gets it, it is back within a
// microsecond; a program that computes keeps it for a time slice of some 3 ms. After two of these
// it is wiser to sleep: a sleeper that is woken runs at once.
class YieldBudget {
 public:
  bool again();   // yields once; false: the time is up, and it has not
  void reset() { since_s_ = 0; }

 private:
  double since_s_ = 0;   // the first again(); 0: there was none
};

// Spin, then yield, then sleep: how soon depends on who else needs the processor. With more ranks
// than processors spinning only keeps others from working. The progress thread, beside one that
// computes, sleeps almost at once and does not yield.
enum class Load { alone, oversubscribed, beside_compute };

class Backoff {
 public:
  explicit Backoff(Load load);

  enum class Next { again, sleep };
  // After each look that moved nothing. Spins or yields by itself; to sleep is the caller's part.
  Next next();
  void reset() {   // after a look that moved something
    looks_ = 0;
    yielding_.reset();
  }

 private:
  bool yields_again();

  const Load load_;
  YieldBudget yielding_;
  int spins_, yields_;   // how many looks end so, before it says sleep
  int looks_ = 0;        // since the last reset()
};

}  // namespace paceline
