#include "simulate/simulate.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <queue>
#include <tuple>

#include "base/error.hpp"
#include "simulate/ports.hpp"
#include "simulate/work.hpp"

namespace paceline {
namespace {

// Sums of the same times in another order differ in their last bits. Times so close together are
// one moment; otherwise rounding, not the priority, would decide which message goes first.
constexpr double kOneMoment = 1e-12;

enum class What : std::uint8_t { arrival, message, landing, local, signal };

struct Occurrence {
  double time_s;
  What what;
  std::uint32_t id;   // call and rank, or the item that sends, that computes, that signals
  bool operator>(const Occurrence& other) const {
    return std::tie(time_s, what, id) > std::tie(other.time_s, other.what, other.id);
  }
};

// Node of each rank: as the schedules know it, else by the machine.
std::vector<int> nodes_of(const std::vector<Schedule>& world, const Machine& machine) {
  const Problem& any = world.front().problem;
  if (!any.nodes.empty()) return any.nodes;
  std::vector<int> nodes;
  for (int rank = 0; rank < static_cast<int>(world.size()); ++rank)
    nodes.push_back(machine.node_of(rank));
  return nodes;
}

template <class T>
using Soonest = std::priority_queue<T, std::vector<T>, std::greater<>>;

// A call with its trace, which it fills.
struct Running {
  const std::vector<Schedule>* world;
  Trace* trace;
};

class Simulation {
 public:
  // `calls`: the most urgent first, as in `work`.
  Simulation(std::vector<Running> calls, const Machine& machine, Work work)
      : calls_(std::move(calls)), ranks_(calls_.front().world->size()), machine_(machine),
        node_of_(nodes_of(*calls_.front().world, machine)), work_(std::move(work)),
        ports_(node_of_), missing_(work_.items.size()), begin_s_(work_.items.size()),
        ready_(work_.items.size()), told_(work_.items.size()), waiting_(ranks_),
        computing_(ranks_) {
    for (std::size_t id = 0; id < work_.first.size(); ++id) {
      const Schedule& s = (*calls_[id / ranks_].world)[id % ranks_];
      std::copy(s.indegree.begin(), s.indegree.end(), missing_.begin() + work_.first[id]);
    }
  }

  void run() {
    for (std::uint32_t id = 0; id < work_.first.size(); ++id)
      happens_.push({calls_[id / ranks_].trace->arrival_s[id % ranks_], What::arrival, id});
    while (!happens_.empty()) {
      const double first = happens_.top().time_s;
      while (!happens_.empty() && happens_.top().time_s - first <= kOneMoment * std::abs(first)) {
        const Occurrence now = happens_.top();
        happens_.pop();
        now_s_ = now.time_s;
        happen(now);
      }
      start_all();
    }
    for (std::uint32_t i = 0; i < work_.items.size(); ++i)
      require(missing_[i] == kNobody, "simulate: rank ", work_.items[i].rank, " step ",
              work_.items[i].step, " (", name_of(work_.items[i].kind), ") waits for ever");
  }

 private:
  const Schedule& schedule(const Item& item) const {
    return (*calls_[item.call].world)[std::size_t(item.rank)];
  }
  std::uint32_t first_of(const Item& item) const {
    return work_.first[item.call * ranks_ + std::size_t(item.rank)];
  }
  Trace& trace_of(const Item& item) { return *calls_[item.call].trace; }

  void happen(const Occurrence& now) {
    if (now.what == What::arrival) return arrive(now.id);
    const Item& item = work_.items[now.id];
    switch (now.what) {
      case What::arrival: break;
      case What::message: {
        ports_.release(item.rank, work_.items[item.partner].rank);
        const double latency_s = link(item).latency_s;
        if (latency_s > 0) happens_.push({now_s_ + latency_s, What::landing, now.id});
        else land(now.id);
        break;
      }
      case What::landing: land(now.id); break;
      case What::local:
        computing_[std::size_t(item.rank)] = false;
        idle_.push_back(item.rank);
        end_local(now.id);
        break;
      case What::signal:
        record(item, Activity::signal, begin_s_[now.id], 0);
        end(now.id);
        told_[item.partner] = true;
        if (ready_[item.partner]) end_wait(item.partner);
        break;
    }
    settle();
  }

  void land(std::uint32_t id) {
    const Item& item = work_.items[id];
    const Item& receiver = work_.items[item.partner];
    record(item, Activity::send, begin_s_[id], item.message_bytes);
    end(id);
    record(receiver, Activity::recv, begin_s_[id], item.message_bytes);
    if (receiver.kind == Kind::recv_reduce) compute(item.partner);
    else end(item.partner);
  }

  void arrive(std::uint32_t id) {
    const Running& call = calls_[id / ranks_];
    const Schedule& s = (*call.world)[id % ranks_];
    call.trace->exit_s[id % ranks_] = now_s_;
    for (std::uint32_t i = 0; i < s.steps.size(); ++i)
      if (s.indegree[i] == 0) freed_.push_back(work_.first[id] + i);
    settle();
  }

  // Lets the steps begin whose predecessors have ended, and what those release by taking no time.
  void settle() {
    while (!freed_.empty()) {
      const std::uint32_t id = freed_.back();
      freed_.pop_back();
      begin(id);
    }
  }

  void begin(std::uint32_t id) {
    const Item& item = work_.items[id];
    ready_[id] = true;
    begin_s_[id] = now_s_;
    switch (item.kind) {
      case Kind::send:
        if (ready_[item.partner]) offer(id);
        break;
      case Kind::recv:
      case Kind::recv_reduce:
        if (ready_[item.partner]) offer(item.partner);
        break;
      case Kind::signal:
        happens_.push({now_s_ + link(item).alpha_s, What::signal, id});
        break;
      case Kind::wait:
        if (told_[id]) end_wait(id);
        break;
      default: compute(id);
    }
  }

  const Link& link(const Item& item) const {
    const auto node = [&](const Item& one) { return node_of_[std::size_t(one.rank)]; };
    return node(item) == node(work_.items[item.partner]) ? machine_.inside : machine_.across;
  }

  void offer(std::uint32_t id) {
    const Item& item = work_.items[id];
    const Item& receiver = work_.items[item.partner];
    ports_.offer({item.call, item.segment, item.step, receiver.step, id}, item.rank, receiver.rank);
  }

  double local_s(const Item& item) const {
    if (item.kind == Kind::finish) return 0;
    const bool copies = item.kind == Kind::copy;
    const double cost = copies ? machine_.copy_s_per_byte : machine_.gamma_s_per_byte;
    return cost * static_cast<double>(item.local_bytes) +
           machine_.inside.beta_s_per_byte * static_cast<double>(item.mates_bytes);
  }

  void compute(std::uint32_t id) {
    const Item& item = work_.items[id];
    begin_s_[id] = now_s_;
    if (local_s(item) <= 0) return end_local(id);
    waiting_[std::size_t(item.rank)].push(urgency_of(item, id));
    idle_.push_back(item.rank);
  }

  void start_all() {
    for (int rank : idle_) {
      auto& waiting = waiting_[std::size_t(rank)];
      if (computing_[std::size_t(rank)] || waiting.empty()) continue;
      const std::uint32_t id = waiting.top().item;
      waiting.pop();
      computing_[std::size_t(rank)] = true;
      begin_s_[id] = now_s_;
      happens_.push({now_s_ + local_s(work_.items[id]), What::local, id});
    }
    idle_.clear();
    for (std::uint32_t id = ports_.next(); id != kNobody; id = ports_.next()) {
      const Item& item = work_.items[id];
      begin_s_[id] = now_s_;
      const Link& over = link(item);
      const double takes = over.time_s(static_cast<double>(item.message_bytes));
      happens_.push({now_s_ + takes - over.latency_s, What::message, id});
    }
  }

  void end_local(std::uint32_t id) {
    const Item& item = work_.items[id];
    const Activity activity = item.kind == Kind::copy ? Activity::copy : Activity::reduce;
    record(item, activity, begin_s_[id], item.local_bytes);
    end(id);
  }

  void end_wait(std::uint32_t id) {
    record(work_.items[id], Activity::wait, begin_s_[id], 0);
    end(id);
  }

  void end(std::uint32_t id) {
    const Item& item = work_.items[id];
    const Schedule& s = schedule(item);
    const std::uint32_t first = first_of(item);
    missing_[id] = kNobody;
    trace_of(item).exit_s[std::size_t(item.rank)] = now_s_;
    for (std::uint32_t e = s.edge_begin[item.step]; e < s.edge_begin[item.step + 1]; ++e)
      if (--missing_[first + s.edges[e]] == 0) freed_.push_back(first + s.edges[e]);
  }

  void record(const Item& item, Activity activity, double begin_s, std::uint64_t bytes) {
    const bool talks = activity != Activity::reduce && activity != Activity::copy;
    Event event;
    event.rank = item.rank;
    event.activity = activity;
    event.peer = talks ? work_.items[item.partner].rank : -1;
    event.step = static_cast<int>(item.step);
    event.segment = static_cast<int>(item.segment);
    event.begin_s = begin_s;
    event.end_s = now_s_;
    event.bytes = bytes;
    trace_of(item).events.push_back(event);
  }

  std::vector<Running> calls_;
  std::size_t ranks_;
  const Machine& machine_;
  std::vector<int> node_of_;                    // by rank
  Work work_;
  Ports ports_;
  std::vector<std::uint32_t> missing_;          // by item: predecessors; kNobody once it has ended
  std::vector<double> begin_s_;                 // by item
  std::vector<bool> ready_, told_;              // by item: may start; its signal has come
  std::vector<Soonest<Urgency>> waiting_;       // by rank: for the compute unit
  std::vector<bool> computing_;                 // by rank
  std::vector<int> idle_;                       // ranks whose compute unit may start something
  std::vector<std::uint32_t> freed_;            // items without missing predecessors, not begun
  Soonest<Occurrence> happens_;
  double now_s_ = 0;
};

std::string late_of(const Problem& problem) {
  std::string out;
  for (int rank : problem.late) out += str(out.empty() ? ", late: " : " ", rank);
  return out;
}

std::string title_of(const Schedule& s, double bytes) {
  return str(name_of(s.problem.collective), "/", s.algorithm, ", ", s.problem.ranks,
             s.problem.ranks == 1 ? " rank" : " ranks",
             s.problem.collective == Collective::barrier ? "" : ", " + human_bytes(bytes),
             late_of(s.problem),
             s.pipeline > 1 ? str(", ", s.pipeline, " segments, window ", s.lanes) : "");
}

Trace begin_trace(const SimulatedCall& call, const Machine& machine) {
  const std::size_t ranks = call.world->size();
  if (!call.arrivals.empty() && call.arrivals.size() != ranks)
    fail(Fault::usage, "simulate: ", call.arrivals.size(), " arrival times for ", ranks,
         " ranks; give one per rank, or none.");
  Trace trace;
  const Schedule& any = call.world->front();
  trace.ranks = static_cast<int>(ranks);
  trace.title =
      title_of(any, static_cast<double>(call.count) * any.units * double(call.element_bytes));
  trace.provenance = str("simulated: ", describe(machine));
  trace.arrival_s = call.arrivals.empty() ? std::vector<double>(ranks) : call.arrivals;
  trace.exit_s = trace.arrival_s;
  return trace;
}

}  // namespace

std::vector<Trace> simulate(const std::vector<SimulatedCall>& calls, const Machine& machine) {
  std::vector<Trace> traces;
  std::vector<std::size_t> order(calls.size());
  for (const SimulatedCall& call : calls) {
    if (!call.world || call.world->empty())
      fail(Fault::usage, "simulate: no ranks; a world has at least one schedule.");
    if (call.world->size() != calls.front().world->size())
      fail(Fault::usage, "simulate: calls of ", calls.front().world->size(), " and of ",
           call.world->size(), " ranks; calls under way at a time are of the same ranks.");
    order[traces.size()] = traces.size();
    traces.push_back(begin_trace(call, machine));
  }
  if (calls.empty()) return traces;
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return calls[a].priority > calls[b].priority;
  });
  Work work;
  std::vector<Running> running;
  for (std::size_t i : order) {
    gather_work(*calls[i].world, calls[i].count, calls[i].element_bytes, work);
    running.push_back({calls[i].world, &traces[i]});
  }
  Simulation(std::move(running), machine, std::move(work)).run();
  return traces;
}

Trace simulate(const std::vector<Schedule>& world, std::size_t count, std::size_t element_bytes,
               const Machine& machine, const std::vector<double>& arrivals) {
  const std::vector<SimulatedCall> one{{&world, count, element_bytes, 0, arrivals}};
  return std::move(simulate(one, machine).front());
}

}  // namespace paceline
