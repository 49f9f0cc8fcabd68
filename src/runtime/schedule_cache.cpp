#include "runtime/schedule_cache.hpp"

#include <algorithm>

namespace paceline {

bool CallShape::operator==(const CallShape& o) const {
  const Call &a = call, &b = o.call;
  return a.collective == b.collective && a.count == b.count && a.type == b.type && a.op == b.op &&
         a.root == b.root && in_place == o.in_place && shared == o.shared &&
         a.uneven == b.uneven && a.cut == b.cut && a.algorithm == b.algorithm &&
         a.device.end == b.device.end && a.counts == b.counts &&
         a.counts_received == b.counts_received && late == o.late &&
         a.is_one_of_many == b.is_one_of_many;
}

std::shared_ptr<Prepared> ScheduleCache::find(const CallShape& shape) {
  const auto it = std::find_if(newest_first_.begin(), newest_first_.end(),
                               [&](const auto& p) { return p->shape == shape; });
  if (it == newest_first_.end()) return nullptr;
  newest_first_.splice(newest_first_.begin(), newest_first_, it);
  return newest_first_.front();
}

void ScheduleCache::add(std::shared_ptr<Prepared> prepared) {
  newest_first_.push_front(std::move(prepared));
  if (newest_first_.size() > kMost) newest_first_.pop_back();
}

}  // namespace paceline
