// How long it is wise to spin on a processor.
#pragma once

namespace paceline {

void pause();   // the processor may look after its other threads for a moment

// Spin, then yield, then sleep. With more ranks than processors spinning only keeps others from
// working. Beside a thread that computes, yielding hands it a whole time slice, whereas a sleeper
// that is woken runs at once: the session's own thread does not yield.
enum class Company { alone, crowded, beside_compute };

class Patience {
 public:
  explicit Patience(Company company);

  enum class Next { again, sleep };
  Next next();  // call after each fruitless look; pauses or yields by itself
  void reset() { looks_ = 0; }

 private:
  int spins_, yields_;
  int looks_ = 0;
};

}  // namespace paceline
