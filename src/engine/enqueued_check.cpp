// The check of a device program: streams and events must order all accesses to the same memory.
#include <algorithm>
#include <map>

#include "base/str.hpp"
#include "engine/enqueued.hpp"

namespace paceline {
namespace {

struct Touch {
  std::size_t begin = 0, end = 0;   // bytes
  std::uint32_t task = 0;
  bool writes = false;
};

using Known = std::vector<std::uint32_t>;   // by stream, one more than the last task before

class Check {
 public:
  explicit Check(const DeviceProgram& program) : program_(program) {
    std::vector<Known> streams(program.streams.size(), Known(program.streams.size()));
    for (std::uint32_t i = 0; i < program.tasks.size(); ++i) {
      const DeviceTask& task = program.tasks[i];
      Known& known = streams[task.stream];
      for (std::uint32_t before : task.waits)
        for (std::size_t s = 0; s < known.size(); ++s)
          known[s] = std::max(known[s], after_[before][s]);
      before_.push_back(known);
      known[task.stream] = i + 1;
      after_.push_back(known);
      note(task, i);
    }
  }

  std::string fault() const {
    for (const auto& [where, touches] : touches_)
      for (std::size_t a = 0; a < touches.size(); ++a)
        for (std::size_t b = 0; b < a; ++b)
          if (conflict(touches[b], touches[a]) && !ordered(touches[b].task, touches[a].task))
            return str("tasks #", touches[b].task, " and #", touches[a].task,
                       " touch bytes ", touches[a].begin, " to ", touches[a].end, " of position ",
                       where.first, ", and nothing orders them");
    return {};
  }

 private:
  using Where = std::pair<int, Space>;

  void note(const DeviceTask& task, std::uint32_t number) {
    const std::size_t element = size_of(program_.type);
    for (std::uint32_t p = task.first; p < task.first + task.parts; ++p) {
      const DevicePart& part = program_.parts[p];
      for (std::uint32_t k = 0; k < part.places; ++k) {
        const Place& place = program_.places[part.first_place + k];
        touches_[{place.owner, place.space}].push_back(
            {place.offset, place.offset + part.elements * element, number, k == 0});
      }
    }
  }

  static bool conflict(const Touch& a, const Touch& b) {
    return a.task != b.task && (a.writes || b.writes) && a.begin < b.end && b.begin < a.end;
  }

  bool ordered(std::uint32_t first, std::uint32_t second) const {
    return before_[second][program_.tasks[first].stream] > first;
  }

  const DeviceProgram& program_;
  std::vector<Known> before_, after_;
  std::map<Where, std::vector<Touch>> touches_;
};

}  // namespace

std::string unordered_conflict(const DeviceProgram& program) { return Check(program).fault(); }

}  // namespace paceline
