#include "measure/series.hpp"

#include "kernels/kernels.hpp"

namespace paceline::measure {

// A kernel's stores are ordinary ones. Those of memcpy go past the cache where it is long, and a
// gradient that was just computed does not.
void Side::rewrite() const {
  static const Reduce copy = reduce_kernel(Type::u8, Op::max);
  if (input) copy(input, &pattern, 1, bytes);
}

std::vector<std::vector<double>> alternate(StartLine& line, const std::vector<Side>& sides,
                                           const Turns& turns, std::int64_t (*clock)()) {
  std::vector<std::vector<double>> times(sides.size());
  for (std::vector<double>& side : times) side.reserve(std::size_t(turns.repeats));
  for (int round = 0; round < turns.warm_up + turns.repeats; ++round) {
    for (std::size_t place = 0; place < sides.size(); ++place) {
      const std::size_t number = (place + std::size_t(round)) % sides.size();
      const Side& side = sides[number];
      side.rewrite();
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
