#include "series.hpp"

namespace paceline::measure {

std::vector<std::vector<double>> alternate(StartLine& line, const std::vector<Side>& sides,
                                           const Turns& turns, std::int64_t (*clock)()) {
  std::vector<std::vector<double>> times(sides.size());
  for (std::vector<double>& side : times) side.reserve(std::size_t(turns.repeats));
  for (int round = 0; round < turns.warm_up + turns.repeats; ++round) {
    for (std::size_t place = 0; place < sides.size(); ++place) {
      const std::size_t number = (place + std::size_t(round)) % sides.size();
      const Side& side = sides[number];
      if (side.rewrite) side.rewrite();
      line.start_hot();
      const std::int64_t begin = clock();
      for (int i = 0; i < side.batch; ++i) side.call();
      const std::int64_t end = clock();
      if (round >= turns.warm_up)
        times[number].push_back(double(end - begin) * 1e-9 / side.batch);
    }
  }
  return times;
}

}  // namespace paceline::measure
