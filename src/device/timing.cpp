#include "device/timing.hpp"

#include <algorithm>
#include <functional>
#include <optional>
#include <queue>
#include <set>
#include <utility>

#include "base/error.hpp"

namespace paceline::device {
namespace {

enum class Part { out, in, compute };

using Engine = std::pair<int, Part>;

double duration_s(const Work& work, const Rates& rates) {
  const std::size_t messages = work.combines ? std::max(work.from.size(), work.to.size()) : 1;
  const double copied =
      messages > 0 ? rates.latency_s + work.bytes * static_cast<double>(messages) /
                                           rates.copy_bytes_per_s
                   : 0;
  const double combined = work.combines && rates.combine_bytes_per_s > 0
                              ? work.combined / rates.combine_bytes_per_s
                              : 0;
  return std::max(copied, combined);
}

std::vector<Engine> engines_of(const Work& work) {
  std::vector<Engine> held;
  if (work.combines) held.emplace_back(work.device, Part::compute);
  for (int from : work.from) {
    held.emplace_back(from, Part::out);
    held.emplace_back(work.device, Part::in);
  }
  for (int to : work.to) {
    held.emplace_back(work.device, Part::out);
    held.emplace_back(to, Part::in);
  }
  std::sort(held.begin(), held.end());
  held.erase(std::unique(held.begin(), held.end()), held.end());
  return held;
}

class Clock {
 public:
  Clock(const std::vector<Work>& work, const Rates& rates)
      : work_(work), rates_(rates), spans_(work.size()), followers_(work.size()),
        missing_(work.size()) {
    for (std::uint32_t i = 0; i < work.size(); ++i) {
      for (std::uint32_t before : work[i].after) {
        require(before < i, "device: work #", i, " waits for #", before, ", which comes later");
        followers_[before].push_back(i);
      }
      missing_[i] = work[i].after.size();
      if (missing_[i] == 0) ready_.insert(i);
    }
  }

  std::vector<Span> run() {
    start_what_can();
    for (std::optional<double> next_s; (next_s = next()); start_what_can()) {
      now_s_ = *next_s;
      while (!running_.empty() && running_.top().first <= now_s_) {
        const std::uint32_t done = running_.top().second;
        running_.pop();
        end(done);
      }
    }
    require(ready_.empty(), "device: work is left that nothing lets start");
    return std::move(spans_);
  }

 private:
  double enqueued_s(std::uint32_t number) const { return number * rates_.host_s; }

  // Returns the time of the next end, or at which work is enqueued that could start.
  std::optional<double> next() const {
    std::optional<double> at_s;
    if (!running_.empty()) at_s = running_.top().first;
    if (rates_.host_s <= 0) return at_s;
    const auto later = std::ranges::find_if(
        ready_, [&](std::uint32_t number) { return enqueued_s(number) > now_s_; });
    if (later == ready_.end()) return at_s;
    return std::min(enqueued_s(*later), at_s.value_or(enqueued_s(*later)));
  }

  void end(std::uint32_t done) {
    for (const Engine& engine : engines_of(work_[done])) busy_.erase(engine);
    for (std::uint32_t follower : followers_[done])
      if (--missing_[follower] == 0) ready_.insert(follower);
  }

  void start_what_can() {
    for (bool again = true; std::exchange(again, false);)
      for (auto it = ready_.begin(); it != ready_.end();) {
        const std::uint32_t number = *it;
        if (enqueued_s(number) > now_s_) break;
        const std::vector<Engine> held = engines_of(work_[number]);
        const double took = duration_s(work_[number], rates_);
        const bool is_free = std::none_of(held.begin(), held.end(), [&](const Engine& engine) {
          return busy_.contains(engine);
        });
        if (took > 0 && !is_free) {
          ++it;
          continue;
        }
        it = ready_.erase(it);
        spans_[number] = {now_s_, now_s_ + took};
        if (took > 0) {
          busy_.insert(held.begin(), held.end());
          running_.emplace(now_s_ + took, number);
        } else {   // work without duration does not queue
          for (std::uint32_t follower : followers_[number])
            if (--missing_[follower] == 0) again |= ready_.insert(follower).second;
        }
      }
  }

  using Ending = std::pair<double, std::uint32_t>;
  const std::vector<Work>& work_;
  const Rates& rates_;
  std::vector<Span> spans_;
  std::vector<std::vector<std::uint32_t>> followers_;
  std::vector<std::size_t> missing_;
  std::set<std::uint32_t> ready_;   // by number: the order in which they were enqueued
  std::set<Engine> busy_;
  std::priority_queue<Ending, std::vector<Ending>, std::greater<>> running_;
  double now_s_ = 0;
};

}  // namespace

std::vector<Span> timing(const std::vector<Work>& work, const Rates& rates) {
  return Clock(work, rates).run();
}

double makespan_s(const std::vector<Span>& spans) {
  if (spans.empty()) return 0;
  double first = spans.front().begin_s, last = 0;
  for (const Span& span : spans) {
    first = std::min(first, span.begin_s);
    last = std::max(last, span.end_s);
  }
  return last - first;
}

}  // namespace paceline::device
