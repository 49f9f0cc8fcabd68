#include "ir/lower.hpp"

#include <utility>

#include "ir/fuse.hpp"
#include "ir/in_step.hpp"
#include "ir/pipeline.hpp"
#include "ir/load_store.hpp"

namespace paceline {

Schedule lower(const Algorithm& algorithm, const Problem& problem, const Cut& cut, Reader reader) {
  return lower(algorithm, build(algorithm, problem, cut.knobs), cut, reader);
}

Schedule lower(const Algorithm& algorithm, Schedule schedule, const Cut& cut, Reader reader) {
  const auto at_least_one = [](int number) { return number == 0 ? 1 : number; };
  if (reader == Reader::host) schedule = fuse(std::move(schedule));
  if (cut.in_step) schedule = in_step(schedule);
  schedule = pipeline(std::move(schedule), at_least_one(cut.segments), at_least_one(cut.window),
                      cut.whole_tail ? Tail::whole : Tail::cut);
  // The Builder has put one segment in its author's order; several must be put in it together.
  const bool by_memory = schedule.problem.one_node && algorithm.is_load_store();
  if (by_memory && schedule.pipeline > 1 && reader != Reader::device)
    schedule = in_order(std::move(schedule));
  return schedule;
}

}  // namespace paceline
