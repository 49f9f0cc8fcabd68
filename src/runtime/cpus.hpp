// How many processors this process may use, and how long it is wise to spin on one of them.
#pragma once

namespace paceline {

int allowed_cpus();

// Spin, then yield, then sleep. With more ranks than processors spinning only keeps others from
// working.
class Patience {
 public:
  explicit Patience(bool crowded) : spins_(crowded ? 50 : 300), yields_(crowded ? 100 : 1000) {}

  enum class Next { again, sleep };
  Next next();  // call after each fruitless look; pauses or yields by itself
  void reset() { looks_ = 0; }

 private:
  int spins_, yields_;
  int looks_ = 0;
};

}  // namespace paceline
