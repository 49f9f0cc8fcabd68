#include <algorithm>
#include <set>

#include "base/random.hpp"
#include "coll/registry.hpp"
#include "fuzz/program.hpp"

namespace paceline::fuzz {
namespace {

constexpr std::size_t kStageBytes = 16u << 10;   // of a message in a stage of the loop transport

class Generator {
 public:
  Generator(std::uint64_t seed, const Wishes& wishes)
      : wishes_(wishes), random_(draw(seed, 0x70726f67)) {
    program_.seed = seed;
    program_.ranks = wishes.ranks;
    program_.dialect = wishes.dialect;
    program_.numbers = wishes.numbers;
    program_.groups.emplace_back();
    for (int r = 0; r < wishes.ranks; ++r) program_.groups[0].push_back(r);
    is_live_.push_back(true);
    // Every program leaves something out: rare mixtures come up then.
    makes_percent_ = chance(30) ? 0 : 12;
    blocking_percent_ = chance(20) ? 100 : chance(20) ? 0 : 45;
    if (chance(40)) only_type_ = pick_type();
    if (chance(25)) only_collective_ = static_cast<int>(below(kCollectives));
    if (wishes.collective) only_collective_ = static_cast<int>(*wishes.collective);
    if (wishes.plain) makes_percent_ = 0;
  }

  Program take() {
    const std::size_t calls = 3 + below(12);
    while (program_.calls.size() < calls) {
      if (chance(makes_percent_) && program_.makings.size() < 4) make();
      else if (chance(3)) release();
      else if (!open_.empty() && chance(25)) complete(1 + below(open_.size()));
      else begin();
    }
    if (!open_.empty()) complete(open_.size());
    return std::move(program_);
  }

 private:
  std::size_t below(std::size_t limit) { return random_.below(limit); }
  bool chance(std::size_t percent) { return below(100) < percent; }
  bool is_core() const { return wishes_.dialect == Dialect::core; }
  int size_of(int group) const { return size_of_group(program_, group); }

  int pick_group() {
    while (true)
      if (const std::size_t g = below(program_.groups.size()); is_live_[g])
        return static_cast<int>(g);
  }

  Type pick_type() {
    // MPIs have no 16-bit floats, and some sum small integers wrongly (tests/preload).
    const Type known[] = {Type::f64, Type::f32, Type::i32, Type::u32, Type::i64, Type::u64};
    return is_core() ? Type(below(kTypes)) : known[below(std::size(known))];
  }

  void shuffle(std::vector<int>& list) {
    for (std::size_t i = list.size(); i > 1; --i) std::swap(list[i - 1], list[below(i)]);
  }

  void make() {
    Making m{Way(below(4)), pick_group(), static_cast<int>(program_.groups.size()), 1};
    const std::vector<int> parent = program_.groups[std::size_t(m.parent)];
    std::vector<std::vector<int>> made;
    if (m.way == Way::dup) {
      made = {parent};
    } else if (m.way == Way::alone) {
      for (int r : parent) made.push_back({r});
    } else {
      made.resize(1 + below(3));
      for (int r : parent)
        if (const std::size_t to = below(made.size() * 4 + 1); to < made.size() * 4)
          made[to % made.size()].push_back(r);
      std::erase_if(made, [](const auto& members) { return members.empty(); });
      for (auto& members : made) shuffle(members);
    }
    if (made.empty()) return;
    m.groups = static_cast<int>(made.size());
    for (auto& members : made) {
      program_.groups.push_back(std::move(members));
      is_live_.push_back(true);
    }
    program_.actions.push_back({Action::Kind::make, static_cast<int>(program_.makings.size())});
    program_.makings.push_back(m);
  }

  void release() {
    const int group = pick_group();
    const auto in_use = [&](int call) { return program_.calls[std::size_t(call)].group == group; };
    if (group == 0 || std::any_of(open_.begin(), open_.end(), in_use)) return;
    is_live_[std::size_t(group)] = false;
    program_.actions.push_back({Action::Kind::release, group});
  }

  void complete(std::size_t calls) {
    shuffle(open_);
    const auto end = open_.begin() + std::ptrdiff_t(calls);
    program_.actions.push_back({Action::Kind::complete, 0, std::vector<int>(open_.begin(), end)});
    for (int call : program_.actions.back().calls) busy_.erase(owner_[std::size_t(call)]);
    open_.erase(open_.begin(), end);
  }

  void begin() {
    Invocation c;
    const int known = again(c);
    if (known < 0) fresh(c);
    const int number = static_cast<int>(program_.calls.size());
    const int owner = known < 0 ? number : owner_[std::size_t(known)];
    owner_.push_back(owner);
    program_.calls.push_back(c);
    program_.actions.push_back({Action::Kind::begin, number});
    if (c.mode == Mode::blocking) return;
    open_.push_back(number);
    busy_.insert(owner);
  }

  // Another start of a plan, or a call that repeats one; the earlier one, or -1.
  int again(Invocation& c) {
    if (program_.calls.empty() || !chance(25)) return -1;
    const int known = static_cast<int>(below(program_.calls.size()));
    const Invocation& old = program_.calls[std::size_t(known)];
    if (!is_live_[std::size_t(old.group)] || busy_.contains(owner_[std::size_t(known)])) return -1;
    const int planned = old.plan_of >= 0 ? old.plan_of : old.mode == Mode::planned ? known : -1;
    c = old;
    c.plan_of = c.same_as = -1;
    if (planned >= 0) {
      c.plan_of = planned;
      c.data = random_.next();
    } else {
      if (!may_differ(old)) c.same_as = old.same_as >= 0 ? old.same_as : known;
      c.mode = chance(50) ? Mode::blocking : Mode::started;
    }
    return known;
  }

  bool is_exact(const Invocation& c) const {
    return !has_op(c.collective) || paceline::is_exact(c.op, c.type);
  }
  // Sums that may follow who comes when have other bits each time.
  bool may_differ(const Invocation& c) const {
    return program_.numbers == Numbers::fast && !is_exact(c);
  }

  void fresh(Invocation& c) {
    c.group = pick_group();
    const auto p = static_cast<std::size_t>(size_of(c.group));
    const bool alone = only_collective_ >= 0 && (wishes_.collective || chance(80));
    c.collective = Collective(alone ? std::size_t(only_collective_) : below(kCollectives));
    c.type = only_type_ && chance(80) ? *only_type_ : pick_type();
    do c.op = Op(below(kOps));
    while (!is_defined(c.op, c.type) || (!is_core() && !is_known_to_mpi(c.op, c.type)));
    c.root = static_cast<int>(below(p));
    c.data = random_.next();
    c.shift = below(4);
    c.mode = chance(blocking_percent_) ? Mode::blocking
             : is_core() && chance(30) ? Mode::planned : Mode::started;
    const std::size_t kinds[] = {50, 80, 100};
    const std::size_t kind = below(is_core() ? 100 : 80);
    while (kind >= kinds[std::size_t(c.values)]) c.values = Values(int(c.values) + 1);
    if (!is_floating(c.type)) c.values = Values::whole;
    // MPICH 4.0 compares unsigned numbers as signed ones, where the call is its own.
    if (!is_core() && (c.op == Op::min || c.op == Op::max))
      c.type = c.type == Type::u32 ? Type::i32 : c.type == Type::u64 ? Type::i64 : c.type;
    // Open MPI's min and max of zeros and NaN are its own.
    if (!is_core() && (c.op == Op::min || c.op == Op::max)) c.values = Values::whole;
    c.count = pick_count(p);
    pick_counts(c, p);
    c.in_place = chance(50) ? 0 : !is_core() || chance(50) ? ~std::uint64_t{0} : random_.next();
    if (c.collective == Collective::alltoall && !c.counts.empty()) c.in_place = 0;
    if (is_core()) pick_algorithm(c, static_cast<int>(p));
    if (is_core() && c.data % 3 == 0) c.priority = static_cast<int>(c.data / 3 % 7) - 3;
    if (c.collective == Collective::barrier) c.count = 0;
  }

  static bool is_known_to_mpi(Op op, Type type) {
    return op != Op::average && (!is_floating(type) || int(op) <= int(Op::max));
  }

  std::size_t pick_count(std::size_t p) {
    const std::size_t kind = below(40);
    if (kind == 0) return 1 + below(wishes_.most_elements);
    if (kind < 4) return 500 + below(3000);
    if (kind < 12) return below(300);
    const std::size_t small[] = {0, 1, p - 1, p, p + 1, 2 * p + 1, 7, 67};
    return small[kind % 8];
  }

  void pick_counts(Invocation& c, std::size_t p) {
    const bool one_unit = units_of({c.collective, 2}) == 1;
    if (one_unit || !chance(25)) return;
    const bool pairs = c.collective == Collective::alltoall;
    for (std::size_t i = 0; i < (pairs ? p * p : p); ++i)
      c.counts.push_back(chance(20) ? 0 : below(2 * c.count + 1));
  }

  void pick_algorithm(Invocation& c, int p) {
    const bool even = c.counts.empty(), message = c.collective != Collective::barrier;
    if (even && message && !wishes_.plain && chance(15)) {
      c.shared = true;
      c.in_place = c.in_place & 1 && c.collective != Collective::alltoall ? ~std::uint64_t{0} : 0;
    }
    const std::size_t bytes = c.count * paceline::size_of(c.type) * std::size_t(p);
    if (chance(40)) {
      std::vector<const Algorithm*> fit;
      for (const Algorithm* a : registry()) {
        if (a->collective != c.collective || a->by_nodes()) continue;
        if (a->uses(Access::symmetric) && !c.shared) continue;
        if (a->uses(Access::staging) && (!even || bytes > kStageBytes)) continue;
        Problem problem{.collective = c.collective, .ranks = p, .root = c.root};
        problem.uneven = !even;
        problem.fast = program_.numbers == Numbers::fast || is_exact(c);
        problem.one_node = a->uses(Access::staging) || a->uses(Access::symmetric);
        problem.symmetric = a->uses(Access::symmetric);
        if (!why_not(*a, problem)) fit.push_back(a);
      }
      const Algorithm& a = *fit[below(fit.size())];
      c.algorithm = a.name;
      if (a.uses(Access::staging) && a.takes.blocks && chance(40))
        c.blocks = 2 + static_cast<int>(below(4));
      if (a.uses(Access::staging) || a.uses(Access::symmetric)) return;
    }
    if (!message || !chance(25) || bytes > kStageBytes) return;
    c.segments = 1 + static_cast<int>(below(5));
    c.window = 1 + static_cast<int>(below(3));
  }

  Wishes wishes_;
  Random random_;
  Program program_;
  std::vector<bool> is_live_;      // groups
  std::vector<int> open_;          // calls to complete
  std::vector<int> owner_;         // whose buffers a call has
  std::set<int> busy_;             // owners whose buffers are in use
  std::size_t makes_percent_ = 0, blocking_percent_ = 0;
  int only_collective_ = -1;
  std::optional<Type> only_type_;
};

}  // namespace

Program generate(std::uint64_t seed, const Wishes& wishes) {
  return Generator(seed, wishes).take();
}

}  // namespace paceline::fuzz
