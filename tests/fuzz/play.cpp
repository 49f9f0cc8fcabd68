#include "fuzz/play.hpp"
#include "runtime/shared_memory.hpp"

#include <algorithm>
#include <optional>

#include "coll/registry.hpp"
#include "fuzz/judge.hpp"
#include "tune/choose.hpp"

namespace paceline::fuzz {
namespace {

constexpr int kLooks = 200;   // at a call that is tested, before it is waited for

// A call's memory on this rank, and its request. Repetitions have that of the first one.
struct Held {
  std::vector<unsigned char> own[2];
  std::shared_ptr<SharedMemory> shared[2];
  std::optional<Plan> plan;
  std::optional<Request> request;

  Blocks blocks() {
    Blocks all;
    for (std::size_t b : {0u, 1u})
      all[b] = shared[b] ? std::span(reinterpret_cast<unsigned char*>(shared[b]->data()),
                                     shared[b]->bytes())
                         : std::span(own[b]);
    return all;
  }
};

class Player {
 public:
  Player(const Program& program, Seat& seat)
      : program_(program),
        seat_(seat),
        rank_(seat.world.rank()),
        groups_(program.groups.size()),
        held_(program.calls.size()),
        digests_(program.calls.size(), 0) {
    groups_[0] = seat.world;
  }

  Ending run() {
    try {
      for (std::size_t i = 0; i < program_.actions.size(); ++i) {
        delay(i);
        follow(program_.actions[i], i);
      }
      if (seat_.compares) compare_digests();
    } catch (const Error& error) {
      ending_.error = error.what();
      ending_.fault = error.fault();
    }
    // Calls of other communicators may be under way, in memory that goes now.
    if (!ending_.error.empty()) seat_.world.leave();
    return std::move(ending_);
  }

 private:
  std::uint64_t own_draw(std::uint64_t a, std::uint64_t b = 0) const {
    return draw(program_.seed ^ 0x72616e6b, static_cast<std::uint64_t>(rank_), a, b);
  }

  // Some ranks come late to some calls.
  void delay(std::size_t action) {
    const std::uint64_t x = own_draw(action, 1);
    if (x % 8 == 0) seat_.pause(static_cast<int>(x >> 8) & (x % 64 == 0 ? 2047 : 127));
  }

  void follow(const Action& action, std::size_t number) {
    switch (action.kind) {
      case Action::Kind::make: return make(program_.makings[std::size_t(action.subject)]);
      case Action::Kind::release: groups_[std::size_t(action.subject)] = {}; return;
      case Action::Kind::begin: return begin(action.subject);
      case Action::Kind::complete: return complete(action.calls, number);
    }
  }

  void make(const Making& m) {
    Communicator& parent = groups_[std::size_t(m.parent)];
    if (!parent.valid()) return;
    int mine = -1;
    for (int g = m.first; g < m.first + m.groups; ++g)
      if (position_of(program_, g, rank_) >= 0) mine = g;
    Communicator made;
    if (m.way == Way::dup) {
      made = parent.dup();
    } else if (m.way == Way::subgroup) {
      if (mine < 0) return;
      std::vector<int> ranks;
      for (int r : program_.groups[std::size_t(mine)])
        ranks.push_back(position_of(program_, m.parent, r));
      made = parent.subgroup(ranks, draw(program_.seed, std::uint64_t(mine)));   // a new tag
    } else {
      made = parent.split(mine < 0 ? -1 : mine - m.first,
                          mine < 0 ? 0 : position_of(program_, mine, rank_));
    }
    if (made.valid() != (mine >= 0)) return report("a communicator is missing, or too many");
    if (mine < 0) return;
    groups_[std::size_t(mine)] = made;
    if (made.rank() != position_of(program_, mine, rank_) ||
        made.size() != size_of_group(program_, mine))
      report(str("group ", mine, ": rank ", rank_, " is ", made.rank(), " of ", made.size()));
  }

  int owner_of(int call) const {
    const Invocation& c = program_.calls[std::size_t(call)];
    return c.plan_of >= 0 ? c.plan_of : c.same_as >= 0 ? c.same_as : call;
  }

  void begin(int number) {
    const Invocation& c = program_.calls[std::size_t(number)];
    Communicator& group = groups_[std::size_t(c.group)];
    if (!group.valid()) return;
    Held& held = held_[std::size_t(owner_of(number))];
    Held& mine = held_[std::size_t(number)];
    if (c.collective == Collective::barrier && seat_.entered) ++seat_.entered[number];
    take_memory(number, held, group);
    fill(program_, number, group.rank(), held.blocks());
    const paceline::Call call = call_of(number, held, group);
    if (c.mode == Mode::blocking) {
      group.run(call);
      return judge(number);
    }
    if (c.mode == Mode::planned && !held.plan) held.plan = group.plan(call);
    mine.request = c.mode == Mode::planned ? held.plan->start() : group.start(call);
  }

  void take_memory(int number, Held& held, Communicator& group) {
    const bool is_shared = program_.calls[std::size_t(number)].shared;
    if (!held.own[0].empty() || held.shared[0]) return;
    for (int b : {0, 1}) {
      std::size_t most = 0;
      for (int r = 0; is_shared && r < group.size(); ++r)
        most = std::max(most,
                        block_bytes(program_, number, frame_of(program_, number, r), b));
      const Frame frame = frame_of(program_, number, group.rank());
      if (is_shared) held.shared[b] = group.allocate(most);
      else held.own[b].resize(block_bytes(program_, number, frame, b));
    }
  }

  paceline::Call call_of(int number, Held& held, const Communicator& group) const {
    const Invocation& c = program_.calls[std::size_t(number)];
    const Frame frame = frame_of(program_, number, group.rank());
    const auto place = [&](const Extent& extent) {
      return held.blocks()[std::size_t(extent.block)].data() + kEdge +
             (c.shift + extent.at) * size_of(c.type);
    };
    paceline::Call call;
    call.collective = c.collective;
    call.type = c.type;
    call.op = c.op;
    call.root = c.root;
    const bool all = frame.in_place || c.shared;   // also those of no elements
    call.input = all || frame.input.count > 0 ? place(frame.input) : nullptr;
    call.output = all || frame.output.count > 0 ? place(frame.output) : nullptr;
    call.count = c.count;
    call.priority = c.priority;
    call.cut.segments = c.segments;
    call.cut.window = c.window;
    set_counts(c, call, group);
    const bool named = !c.algorithm.empty();
    const Algorithm* a = named ? &find_algorithm(c.collective, c.algorithm) : nullptr;
    if (a && (!a->uses(Access::staging) || seat_.near) &&
        (!a->uses(Access::symmetric) || is_reached(held))) {
      call.algorithm = c.algorithm;
      call.cut.knobs.blocks = c.blocks;
    }
    return call;
  }

  bool is_reached(const Held& held) const {
    return seat_.near && held.shared[0] && held.shared[0]->is_shared();
  }

  static void set_counts(const Invocation& c, paceline::Call& call, const Communicator& group) {
    if (c.counts.empty()) return;
    const int p = group.size(), me = group.rank();
    call.uneven = true;
    const bool rooted =
        c.collective == Collective::gather || c.collective == Collective::scatter;
    if (rooted) call.count = unit_count(c, p, me);
    if (rooted && me != c.root) return;
    for (int r = 0; r < p; ++r) {
      const bool pairs = c.collective == Collective::alltoall;
      call.counts.push_back(pairs ? unit_count(c, p, me, r) : unit_count(c, p, r));
      if (pairs) call.counts_received.push_back(unit_count(c, p, r, me));
    }
  }

  // In an order of this rank's own; sometimes by looking at all of them in turn.
  void complete(const std::vector<int>& calls, std::size_t action) {
    std::vector<int> open;
    for (int call : calls)
      if (held_[std::size_t(call)].request) open.push_back(call);
    for (std::size_t i = open.size(); i > 1; --i)
      std::swap(open[i - 1], open[own_draw(action, 100 + i) % i]);
    const bool tests = own_draw(action, 2) % 2;
    for (int look = 0; tests && !open.empty() && look < kLooks; ++look) {
      for (std::size_t i = 0; i < open.size();) {
        if (!held_[std::size_t(open[i])].request->test()) {
          ++i;
          continue;
        }
        judge(open[i]);
        open.erase(open.begin() + std::ptrdiff_t(i));
      }
      if (seat_.idle) seat_.idle();
    }
    for (int call : open) {
      held_[std::size_t(call)].request->wait();
      judge(call);
    }
  }

  void judge(int number) {
    const Invocation& c = program_.calls[std::size_t(number)];
    const int position = position_of(program_, c.group, rank_);
    const Blocks blocks = held_[std::size_t(owner_of(number))].blocks();
    held_[std::size_t(number)].request.reset();
    report(flaw(program_, number, position, blocks));
    if (c.collective == Collective::barrier && seat_.entered)
      if (const int in = seat_.entered[number]; in != size_of_group(program_, c.group))
        report(str("rank ", rank_, ", ", text_of(program_, number), ": is over with ", in,
                   " ranks inside"));
    const std::uint64_t bits = digest(program_, number, position, blocks);
    if (c.same_as >= 0 && bits != digests_[std::size_t(c.same_as)])
      report(str("rank ", rank_, ", ", text_of(program_, number), ": other bits than call ",
                 c.same_as, " gave for the same numbers"));
    digests_[std::size_t(number)] = bits;
    ++ending_.calls;
  }

  // Whether ranks that must have the same bits do.
  void compare_digests() {
    const std::size_t n = digests_.size(), p = std::size_t(program_.ranks);
    std::vector<std::uint64_t> all(n * p);
    paceline::Call call;
    call.collective = Collective::allgather;
    call.type = Type::u64;
    call.input = digests_.data();
    call.output = all.data();
    call.count = n;
    seat_.world.run(call);
    for (std::size_t i = 0; i < n; ++i) {
      const Invocation& c = program_.calls[i];
      if (!same_everywhere(c)) continue;
      const std::vector<int>& members = program_.groups[std::size_t(c.group)];
      for (int r : members)
        if (all[std::size_t(r) * n + i] != all[std::size_t(members[0]) * n + i])
          report(str("rank ", r, " has other bits than rank ", members[0], " from ",
                     text_of(program_, int(i))));
    }
  }

  void report(const std::string& what) {
    if (ending_.flaw.empty()) ending_.flaw = what;
  }

  const Program& program_;
  Seat& seat_;
  int rank_;
  std::vector<Communicator> groups_;
  std::vector<Held> held_;
  std::vector<std::uint64_t> digests_;
  Ending ending_;
};

}  // namespace

Ending play(const Program& program, Seat& seat) { return Player(program, seat).run(); }

}  // namespace paceline::fuzz
