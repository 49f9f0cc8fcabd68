// Back-off of a waiting thread: it spins, then yields, then sleeps.
#pragma once

namespace paceline {

void pause();   // pauses a spin loop, so that the core's other hardware threads run

// Yields the processor for up to 5 ms. A waiting rank gives it back within a microsecond; a program
// that computes keeps it for a time slice of some 3 ms. After two slices it is better to sleep,
// since a sleeping thread runs as soon as it is woken.
class YieldBudget {
 public:
  bool again();   // yields once and returns true; returns false at once if the time is up
  void reset() { since_s_ = 0; }

 private:
  double since_s_ = 0;   // time of the first again(); 0: none yet
};

// Competition for the processor; it decides how soon a thread yields and sleeps. With more ranks
// than processors a spinning thread keeps others from work. The progress thread runs beside one
// that computes: it sleeps almost at once and does not yield.
enum class Load { alone, oversubscribed, beside_compute };

class Backoff {
 public:
  explicit Backoff(Load load);

  enum class Next { again, sleep };
  // Called after each look that moved nothing: spins or yields, or returns Next::sleep, and the
  // caller sleeps.
  Next next();
  void reset() {   // called after a look that moved something
    looks_ = 0;
    yielding_.reset();
  }

 private:
  bool yields_again();

  const Load load_;
  YieldBudget yielding_;
  int spins_, yields_;   // looks that end with a spin, then with a yield, before a sleep
  int looks_ = 0;        // looks since the last reset()
};

}  // namespace paceline
