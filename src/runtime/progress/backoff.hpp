// How long it is wise to spin on a processor.
#pragma once

namespace paceline {

void pause();   // the processor may look after its other threads for a moment

// Yields for a while. To a rank that waits like this one that costs a microsecond; to a program
// that computes it hands a whole time slice, and after two of these it is wiser to sleep: a sleeper
// that is woken runs at once.
class YieldBudget {
 public:
  bool again();   // false: no more
  void reset() { since_s_ = 0; }

 private:
  double since_s_ = 0;
};

// Spin, then yield, then sleep. With more ranks than processors spinning only keeps others from
// working. The session's own thread, beside one that computes, does not yield.
enum class Load { alone, oversubscribed, beside_compute };

class Backoff {
 public:
  explicit Backoff(Load company);

  enum class Next { again, sleep };
  Next next();  // call after each fruitless look; pauses or yields by itself
  void reset() {
    looks_ = 0;
    yielding_.reset();
  }

 private:
  YieldBudget yielding_;
  int spins_, yields_;
  int looks_ = 0;
};

}  // namespace paceline
