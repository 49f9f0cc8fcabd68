#include "world/cases.hpp"

namespace paceline::test {

std::set<std::size_t> awkward_counts(int p) {
  const auto n = static_cast<std::size_t>(p);
  return {0, 1, n - 1, n, n + 1, 2 * n + 1, 67, 257};
}

bool is_load_store(const Case& c) {
  return c.ranks > 1 && find_algorithm(c.collective, c.algorithm).is_load_store();
}
bool is_attached(const Case& c) {
  return c.ranks > 1 && find_algorithm(c.collective, c.algorithm).uses(Access::single_copy);
}

void for_each_case(int p, bool few, const std::function<void(const Case&)>& visit) {
  for (const Algorithm* a : registry()) {
    if (a->uses(Access::symmetric)) continue;   // other buffers: process/shared_test.cpp
    if (a->by_nodes()) continue;    // they need several: see mixed_test.cpp, nodes_run_test.cpp
    if (a->uses(Access::staging) && a->rejects({.collective = a->collective, .ranks = p})) continue;
    const std::set<int> roots =
        has_root(a->collective) ? std::set<int>{0, std::min(1, p - 1), p - 1} : std::set<int>{0};
    int turn = 0;
    for (std::size_t n :
         few ? std::set<std::size_t>{0, 1, std::size_t(p) + 1, 257} : awkward_counts(p))
      for (int root : roots)
        for (bool in_place : {false, true}) {
          if (in_place && a->rejects({.collective = a->collective, .ranks = p, .in_place = true}))
            continue;
          Case c{a->collective, a->name, p, n, root, in_place};
          const Op ops[] = {Op::sum, Op::max, Op::min, Op::sum};
          c.op = ops[turn % 4];
          // Sums in order of arrival are for numbers=fast: see process/claimed_test.cpp.
          if (a->claims() && c.op == Op::sum) c.op = Op::max;
          visit(c);
          if (++turn % 3 == 0 && a->uses(Access::staging)) {
            c.knobs.blocks = a->takes.blocks ? 2 + turn % 4 : 0;
            visit(c);
          } else if (turn % 3 == 0) {
            c.segments = 2 + turn % 4;
            c.window = 1 + turn % 3;
            visit(c);
          }
          const bool one_unit = units_of({a->collective, 2}) == 1;
          const bool symmetric = a->collective != Collective::alltoall || !in_place;
          c.uneven = true;
          const Problem uneven{.collective = a->collective, .ranks = p, .uneven = true};
          if (!one_unit && symmetric && !a->is_load_store() && !a->rejects(uneven)) visit(c);
        }
  }
}

}  // namespace paceline::test
