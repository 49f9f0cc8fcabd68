#include "engine/enqueued.hpp"

#include <algorithm>
#include <map>
#include <numeric>
#include <queue>
#include <tuple>
#include <utility>

#include "base/error.hpp"

namespace paceline {
namespace {

using Number = std::uint32_t;
constexpr Number kNone = ~Number{0};

// One step of the world, or two that belong together: a send with its receive. Positions are those
// of the list of schedules; of a rank with several schedules its first one has the messages.
struct Node {
  int position = 0;
  Number step = 0;
  int receiver = -1;              // of a message
  Number receive = kNone;
  std::vector<Number> after = {}, before = {};
};

class Graph {
 public:
  explicit Graph(std::vector<RankSchedule> world) : world_(std::move(world)) {
    for (int at = 0; at < size_of_world(); ++at)
      node_of_.emplace_back(schedule(at).steps.size(), kNone);
    for (int at = 0; at < size_of_world(); ++at) add_steps(at);
    match();
    for (int at = 0; at < size_of_world(); ++at) add_edges(at);
  }

  // In an order that respects all edges: of what may come next, that after which most messages
  // have to follow one another, then the oldest pipeline segment, the earliest step, the lowest
  // position. With the oldest segment first a linear pipeline would forward results while the last
  // blocks have yet to leave, and take a step more for it.
  std::vector<Number> sorted() const {
    using Urgency = std::tuple<int, int, Number, int, Number>;   // as above, then the node
    std::vector<std::size_t> missing;
    std::priority_queue<Urgency, std::vector<Urgency>, std::greater<>> ready;
    const std::vector<int> ahead = messages_ahead();
    const auto offer = [&](Number n) {
      const Node& node = nodes_[n];
      ready.emplace(-ahead[n], schedule(node.position).segment_of(node.step), node.step,
                    node.position, n);
    };
    for (Number n = 0; n < nodes_.size(); ++n) {
      missing.push_back(nodes_[n].after.size());
      if (missing[n] == 0) offer(n);
    }
    std::vector<Number> order;
    while (!ready.empty()) {
      order.push_back(std::get<4>(ready.top()));
      ready.pop();
      for (Number next : nodes_[order.back()].before)
        if (--missing[next] == 0) offer(next);
    }
    require(order.size() == nodes_.size(), "device: ", schedule(0).algorithm,
            " waits for itself; verify says where");
    return order;
  }

  const Node& node(Number n) const { return nodes_[n]; }
  const std::vector<Number>& nodes_of(std::size_t at) const { return node_of_[at]; }
  std::size_t size() const { return nodes_.size(); }

 private:
  using Message = std::tuple<int, int, int, bool, int>;   // from, to, lane, is a signal, number

  // The most messages on a path from the node to the end, itself among them.
  std::vector<int> messages_ahead() const {
    std::vector<int> ahead(nodes_.size(), 0);
    std::vector<std::size_t> missing(nodes_.size());
    std::vector<Number> todo;
    for (Number n = 0; n < nodes_.size(); ++n) {
      missing[n] = nodes_[n].before.size();
      if (missing[n] == 0) todo.push_back(n);
    }
    while (!todo.empty()) {
      const Number n = todo.back();
      todo.pop_back();
      for (Number next : nodes_[n].before) ahead[n] = std::max(ahead[n], ahead[next]);
      ahead[n] += nodes_[n].receiver >= 0;
      for (Number earlier : nodes_[n].after)
        if (--missing[earlier] == 0) todo.push_back(earlier);
    }
    return ahead;
  }

  int size_of_world() const { return static_cast<int>(world_.size()); }
  int rank(int at) const { return world_[static_cast<std::size_t>(at)].rank; }
  const Schedule& schedule(int at) const {
    return *world_[static_cast<std::size_t>(at)].schedule;
  }

  void add_steps(int at) {
    const Schedule& s = schedule(at);
    for (Number i = 0; i < s.steps.size(); ++i) {
      const Step& step = s.steps[i];
      require(step.kind != Kind::recv_reduce, "device: ", s.algorithm, " is fused");
      if (step.kind == Kind::recv) {
        receives_[{step.peer, rank(at), step.lane, false, step.seq}].emplace_back(at, i);
        continue;
      }
      Number& node = node_of_[static_cast<std::size_t>(at)][i];
      if (step.kind == Kind::send || step.kind == Kind::signal) {
        const bool is_signal = step.kind == Kind::signal;
        const Message key{rank(at), step.peer, step.lane, is_signal, step.seq};
        const auto [known, is_new] = sends_.emplace(key, static_cast<Number>(nodes_.size()));
        node = known->second;
        if (!is_new) continue;
      }
      if (step.kind == Kind::wait)
        waits_[{step.peer, rank(at), step.lane, true, step.seq}].emplace_back(at, i);
      node = static_cast<Number>(nodes_.size());
      nodes_.push_back({at, i});
    }
  }

  // A receive becomes one with its send; a wait comes after its signal.
  void match() {
    for (const auto& [key, n] : sends_) {
      const bool is_signal = std::get<3>(key);
      const auto& others = is_signal ? waits_ : receives_;
      const auto found = others.find(key);
      require(found != others.end(), "device: ", schedule(0).algorithm,
              " sends a message that no rank receives");
      for (const auto& [to, i] : found->second) {
        Number& node = node_of_[static_cast<std::size_t>(to)][i];
        if (is_signal) link(n, node);
        else node = n;
      }
      if (is_signal) continue;
      std::tie(nodes_[n].receiver, nodes_[n].receive) = found->second.front();
    }
    require(sends_.size() == receives_.size() + waits_.size(), "device: ", schedule(0).algorithm,
            " receives a message that no rank sends");
  }

  void add_edges(int at) {
    const std::vector<Number>& of = node_of_[static_cast<std::size_t>(at)];
    for (const auto& [from, to] : edges_of(schedule(at))) link(of[from], of[to]);
  }

  void link(Number from, Number to) {
    if (from == to) return;
    nodes_[from].before.push_back(to);
    nodes_[to].after.push_back(from);
  }

  const std::vector<RankSchedule> world_;
  std::vector<Node> nodes_;
  std::vector<std::vector<Number>> node_of_;   // by position and step
  std::map<Message, Number> sends_;
  std::map<Message, std::vector<std::pair<int, Number>>> receives_, waits_;
};

std::vector<RankSchedule> schedules_of(
    const std::vector<std::shared_ptr<const CompiledSchedule>>& world) {
  std::vector<RankSchedule> found;
  for (const auto& compiled : world)
    found.push_back({static_cast<int>(found.size()), compiled->schedule.get()});
  return found;
}

class Lowering {
 public:
  Lowering(const std::vector<std::shared_ptr<const CompiledSchedule>>& world, Op op, int most_lanes)
      : world_(world), graph_(schedules_of(world)) {
    const CompiledSchedule& first = *world.front();
    const Problem& problem = first.schedule->problem;
    program_.type = first.type;
    program_.has_op = has_op(problem.collective);
    program_.op = op;
    element_ = size_of(first.type);
    for (const auto& compiled : world) {
      lanes_ = std::max(lanes_, std::min(compiled->schedule->lanes, most_lanes));
      program_.scratch_bytes.push_back(compiled->scratch_bytes);
      program_.divisor = std::max(program_.divisor, compiled->divisor);
    }
    for (int at = 0; at < problem.ranks; ++at)
      for (const char* kind : {"out ", "combine "})
        for (int lane = 0; lane < lanes_; ++lane) program_.streams.push_back({at, str(kind, lane)});
  }

  DeviceProgram take() {
    known_.resize(graph_.size());
    for (Number n : graph_.sorted()) add(n);
    return std::move(program_);
  }

 private:
  // A vector clock: by stream, one more than the number of the last task that has come before.
  using Known = std::vector<Number>;

  const CompiledSchedule& compiled(int at) const { return *world_[static_cast<std::size_t>(at)]; }

  Number stream_of(int at, bool sends, int lane) const {
    return static_cast<Number>((at * 2 + (sends ? 0 : 1)) * lanes_ + lane % lanes_);
  }

  void add(Number n) {
    const Node& node = graph_.node(n);
    const Step& step = compiled(node.position).schedule->steps[node.step];
    const std::uint32_t first_part = static_cast<std::uint32_t>(program_.parts.size());
    DeviceTask task{.position = node.position, .first = first_part};
    if (step.kind == Kind::send) {
      append_message(node);
    } else if (step.kind == Kind::reduce || step.kind == Kind::copy) {
      task.kind = step.kind == Kind::copy ? DeviceTask::Kind::copy : DeviceTask::Kind::combine;
      append_step(node);
    } else if (step.kind == Kind::finish && program_.divisor > 1) {
      task.kind = DeviceTask::Kind::divide;
      append_step(node);
    }
    task.parts = static_cast<std::uint32_t>(program_.parts.size()) - first_part;
    Known known(program_.streams.size());
    for (Number before : node.after) join(known, known_[before]);
    if (task.parts > 0) {
      task.stream = stream_of(node.position, step.kind == Kind::send, step.lane);
      enqueue(std::move(task), known);
    }
    known_[n] = std::move(known);
  }

  static void join(Known& known, const Known& other) {
    for (std::size_t i = 0; i < known.size(); ++i) known[i] = std::max(known[i], other[i]);
  }

  // `known`: what must come before the task; afterwards also the task itself.
  void enqueue(DeviceTask task, Known& known) {
    const Number number = static_cast<Number>(program_.tasks.size());
    stream_knows_.resize(program_.streams.size(), Known(program_.streams.size()));
    Known& has = stream_knows_[task.stream];
    for (Number other = 0; other < known.size(); ++other) {
      if (other == task.stream || known[other] <= has[other]) continue;
      task.waits.push_back(known[other] - 1);
    }
    drop_implied(task);
    for (Number before : task.waits) ++program_.tasks[before].waiters;
    join(has, known);
    for (Number before : task.waits) join(has, after_[before]);
    has[task.stream] = number + 1;
    known = has;
    after_.push_back(has);
    program_.tasks.push_back(std::move(task));
  }

  // Drops waits for tasks for which another task of the list has waited.
  void drop_implied(DeviceTask& task) {
    std::erase_if(task.waits, [&](Number before) {
      const Number stream = program_.tasks[before].stream;
      return std::any_of(task.waits.begin(), task.waits.end(), [&](Number other) {
        return other != before && program_.tasks[other].stream != stream &&
               after_[other][stream] > before;
      });
    });
  }

  Place owned(const Place& place, int at) const {
    return {place.space, place.owner == kOwn ? at : place.owner, place.offset};
  }

  void append_step(const Node& node) {
    const CompiledSchedule& b = compiled(node.position);
    const CompiledStep& step = b.steps[node.step];
    for (std::uint32_t i = 0; i < step.stretches; ++i) {
      const Stretch& stretch = b.stretches[step.first + i];
      begin_part(stretch.elements, step.places);
      for (std::uint32_t k = 0; k < step.places; ++k)
        program_.places.push_back(owned(b.places[stretch.first_place + k], node.position));
    }
  }

  // The stretches of the send and those of the receive may end at different places.
  void append_message(const Node& node) {
    const CompiledSchedule &from = compiled(node.position), &to = compiled(node.receiver);
    const CompiledStep &sent = from.steps[node.step], &received = to.steps[node.receive];
    require(sent.bytes == received.bytes, "device: a message of ", sent.bytes, " bytes for ",
            received.bytes);
    std::uint32_t i = 0, k = 0;
    std::size_t sent_before = 0, received_before = 0;   // elements of the stretches at i and k
    while (i < sent.stretches) {
      const Stretch& out = from.stretches[sent.first + i];
      const Stretch& in = to.stretches[received.first + k];
      const std::size_t now =
          std::min(out.elements - sent_before, in.elements - received_before);
      Place source = owned(from.places[out.first_place], node.position);
      Place target = owned(to.places[in.first_place], node.receiver);
      source.offset += sent_before * element_;
      target.offset += received_before * element_;
      begin_part(now, 2);
      program_.places.push_back(target);
      program_.places.push_back(source);
      if ((sent_before += now) == out.elements) ++i, sent_before = 0;
      if ((received_before += now) == in.elements) ++k, received_before = 0;
    }
  }

  void begin_part(std::size_t elements, std::uint32_t places) {
    program_.parts.push_back(
        {elements, static_cast<std::uint32_t>(program_.places.size()), places});
  }

  const std::vector<std::shared_ptr<const CompiledSchedule>>& world_;
  Graph graph_;
  DeviceProgram program_;
  std::size_t element_ = 1;
  int lanes_ = 1;
  std::vector<Known> known_;          // by node: what has come before its end
  std::vector<Known> stream_knows_;   // by stream: what has come before its last task's end
  std::vector<Known> after_;          // by task
};

}  // namespace

std::vector<std::uint32_t> steps_in_order(const std::vector<RankSchedule>& world, std::size_t own) {
  const Graph graph(world);
  std::vector<Number> place(graph.size());
  Number next = 0;
  for (Number n : graph.sorted()) place[n] = next++;
  const std::vector<Number>& nodes = graph.nodes_of(own);
  std::vector<std::uint32_t> steps(nodes.size());
  std::iota(steps.begin(), steps.end(), 0);
  std::ranges::sort(steps, {}, [&](std::uint32_t step) { return place[nodes[step]]; });
  return steps;
}

DeviceProgram lower_to_devices(const std::vector<std::shared_ptr<const CompiledSchedule>>& world,
                               Op op,
                               int most_lanes) {
  require(!world.empty(), "device: a world without ranks");
  return Lowering(world, op, most_lanes).take();
}

}  // namespace paceline
