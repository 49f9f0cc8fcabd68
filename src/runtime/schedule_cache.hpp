// ScheduleCache: the schedules that a communicator has prepared, by shape of call. Bounded.
#pragma once

#include <list>
#include <memory>
#include <vector>

#include "engine/compiled_schedule.hpp"
#include "runtime/call.hpp"
#include "runtime/progress/session_state.hpp"

namespace paceline {

// A call with its buffers left out: equal shapes share schedules, places and scratch.
struct CallShape {
  Call call;
  bool in_place = false;
  bool shared = false;   // its buffers lie in shared memory
  std::vector<int> late = {};   // positions of the ranks that it takes for late
  bool operator==(const CallShape& other) const;
};

struct Prepared {
  CallShape shape;
  std::shared_ptr<const CompiledSchedule> bound;
  std::uint64_t choice = 0;                      // hash of algorithm, knobs, segments and window
  bool shared = false;                           // its steps access the buffers of peers
  bool load_store = false;                       // it sends nothing
  bool has_notes = false;                        // its messages end with notes
  std::size_t staging_bytes = 0;                 // of a staging buffer, if it stages in the node
  std::vector<std::shared_ptr<ActiveOp>> active_ops;  // some under way, some free to start again
};

class ScheduleCache {
 public:
  // Shapes kept, the last used ones; others are prepared again when they come back.
  static constexpr std::size_t kMost = 128;

  std::shared_ptr<Prepared> find(const CallShape& shape);
  void add(std::shared_ptr<Prepared> prepared);

 private:
  std::list<std::shared_ptr<Prepared>> newest_first_;
};

}  // namespace paceline
