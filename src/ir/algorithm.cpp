#include "ir/algorithm.hpp"

#include "base/error.hpp"

namespace paceline {

Schedule build(const Algorithm& algorithm, const Problem& problem, const Knobs& knobs) {
  if (const auto reason = algorithm.rejects(problem))
    fail(Fault::refusal, name_of(problem.collective), "/", algorithm.name, ": ", reason->why, ". ",
         reason->instead.empty() ? "No other algorithm here can."
                                 : str("Use algorithm=", reason->instead, ", or auto."));
  Builder builder(problem, algorithm.cuts(problem, knobs));
  algorithm.build(problem, knobs, builder);
  return std::move(builder).take(algorithm.name);
}

}  // namespace paceline
