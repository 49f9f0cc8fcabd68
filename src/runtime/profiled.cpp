#include "runtime/profiled.hpp"

#include <algorithm>
#include <cstdio>
#include <exception>
#include <map>
#include <numeric>
#include <optional>
#include <set>

#include "base/error.hpp"
#include "base/str.hpp"
#include "profile/clocks.hpp"
#include "runtime/progress/session.hpp"

namespace paceline {
namespace {

constexpr std::uint64_t kClocks = 0x636c6b << 8;   // groups that compare clocks
constexpr int kClocksMs = 10000;

// One file per process and folder: several worlds of a process write to the same one.
std::shared_ptr<Recorder> recorder_of(const ProfileConfig& config) {
  static std::mutex mutex;
  static std::map<std::string, std::weak_ptr<Recorder>> open;
  const std::lock_guard lock(mutex);
  std::weak_ptr<Recorder>& known = open[str(config.folder, "/", config.rank)];
  if (auto recorder = known.lock()) return recorder;
  auto recorder = std::make_shared<Recorder>(config);
  for (int c = 0; c < kCollectives; ++c)
    recorder->note(str("{\"collective\":", c, ",\"name\":\"", name_of(static_cast<Collective>(c)),
                       "\"}"));
  known = recorder;
  return recorder;
}

std::uint64_t message_bytes(const Call& call, std::size_t ranks) {
  std::size_t elements = call.count;
  switch (call.collective) {
    case Collective::barrier: return 0;
    case Collective::allreduce:
    case Collective::reduce:
    case Collective::broadcast: break;
    default:
      elements = call.uneven ? std::accumulate(call.counts.begin(), call.counts.end(),
                                               std::size_t{0})
                             : elements * ranks;
  }
  return elements * size_of(call.type);
}

// A number from one rank to another is a broadcast between the two.
class PairLink : public PingLink {
 public:
  PairLink(Communicator& world, std::uint64_t tag) : world_(world), tag_(tag) {}
  void send(int peer, std::int64_t value) override { pass(world_.rank(), peer, value); }
  std::int64_t receive(int peer) override {
    std::int64_t value = 0;
    pass(peer, world_.rank(), value);
    return value;
  }

 private:
  void pass(int source, int target, std::int64_t& value) {
    Communicator& pair = pairs_[{source, target}];
    if (!pair.valid()) {
      const auto p = static_cast<std::uint64_t>(world_.size());
      pair = world_.subgroup({source, target}, tag_ + static_cast<std::uint64_t>(source) * p +
                                                   static_cast<std::uint64_t>(target));
    }
    Call call{Collective::broadcast, Type::i64};
    call.output = &value;
    call.count = 1;
    call.timeout_ms = kClocksMs;
    pair.run(call);
  }

  Communicator& world_;
  std::uint64_t tag_;
  std::map<std::pair<int, int>, Communicator> pairs_;
};

// The clock of every rank, as all of them tell in a group of their own.
std::vector<std::uint64_t> clocks_of(Communicator& world, std::uint64_t own, std::uint64_t tag) {
  std::vector<int> all(static_cast<std::size_t>(world.size()));
  std::iota(all.begin(), all.end(), 0);
  std::vector<std::uint64_t> clocks(all.size());
  Communicator apart = world.subgroup(all, tag);
  Call call{Collective::allgather, Type::i64};
  call.input = &own;
  call.output = clocks.data();
  call.count = 1;
  call.timeout_ms = kClocksMs;
  apart.run(call);
  return clocks;
}

// How far this rank's clock is off, where it is to measure that. Where all ranks share a node they
// share its clock. Not to be called while calls are recorded: these are nobody's.
std::optional<ClockOffset> compare_clocks(Communicator& world, const char* when) try {
  if (world.nodes() < 2) return {};
  const std::uint64_t tag = (kClocks + 2 * std::uint64_t{world.profile().turn()} +
                             (std::string_view(when) == "end" ? 1 : 0)) << 32;
  const std::vector<int> leaders = clock_leaders(clocks_of(world, clock_identity(), tag));
  PairLink link(world, tag + 1);
  if (std::count(leaders.begin(), leaders.end(), world.rank()) > 0)
    return measure_offset(link, profile_now_ns);
  if (world.rank() == 0)
    for (const int leader : leaders) answer_pings(link, leader, profile_now_ns);
  return {};
} catch (const Error& error) {
  std::fprintf(stderr, "paceline: profile: clocks were not compared at the %s: %s\n", when,
               error.what());
  return {};
}

}  // namespace

void Profile::begin(const ProfileConfig& config) {
  recorder_ = nullptr;
  ++turn_;   // also where there is no file: it is equal on all ranks
  auto recorder = recorder_of(config);
  const std::lock_guard lock(mutex_);
  site_ = recorder->site(label_);
  kept_.push_back(std::move(recorder));
  recorder_ = kept_.back().get();
}

void Profile::end() {
  if (Recorder* const recorder = recorder_.exchange(nullptr)) recorder->finish();
}

void Profile::label(std::string text) {
  const std::lock_guard lock(mutex_);
  label_ = std::move(text);
  if (Recorder* const recorder = recorder_) site_ = recorder->site(label_);
}

std::uint32_t Profile::site_for(Recorder& recorder, const Call& call) {
  return call.label.empty() ? site_.load(std::memory_order_relaxed) : recorder.site(call.label);
}

std::uint32_t Profile::communicator_for(Recorder& recorder, Group& group) {
  const std::uint32_t turn = turn_;
  if (group.profile_turn.load(std::memory_order_acquire) == turn) return group.profile_id;
  const std::lock_guard lock(mutex_);
  if (group.profile_turn == turn) return group.profile_id;
  group.profile_id = recorder.communicator(group.ranks, group.context);
  group.profile_calls = 0;
  group.profile_turn.store(turn, std::memory_order_release);
  return group.profile_id;
}

CallRecord* Profile::enter(Group& group, const Call& call, bool nonblocking) {
  Recorder* const recorder = this->recorder();
  if (!recorder) return nullptr;
  const std::uint32_t communicator = communicator_for(*recorder, group);
  const std::uint32_t number = group.profile_calls.fetch_add(1, std::memory_order_relaxed);
  return recorder->enter({static_cast<int>(call.collective), communicator, number,
                          site_for(*recorder, call), message_bytes(call, group.ranks.size()),
                          nonblocking});
}

Profiled::Profiled(Session& session, Group& group, const Call& call, bool nonblocking) {
  if (!session.profile().recorder()) return;
  exceptions_ = std::uncaught_exceptions();
  record_ = session.profile().enter(group, call, nonblocking);
}

Profiled::~Profiled() {
  if (record_) Recorder::leave(*record_, std::uncaught_exceptions() == exceptions_);
}

void Profiled::follow(ActiveOp& active) const { active.profiled = record_; }

void begin_profile(Communicator& world, ProfileConfig config) {
  config.source = "paceline";
  config.rank = world.rank();
  config.ranks = world.size();
  world.profile().end();
  const std::optional<ClockOffset> offset = compare_clocks(world, "start");
  world.profile().begin(config);
  if (offset) world.profile().recorder()->note(clock_note("start", *offset));
}

void begin_profile(Communicator& world, const WorldConfig& config) try {
  if (config.profile_dir.empty()) return;
  begin_profile(world, {.folder = config.profile_dir,
                        .node = config.node,
                        .bytes = config.profile_bytes});
} catch (const Error& error) {
  std::fprintf(stderr, "paceline: rank %d: %s Nothing is recorded there.\n", world.rank(),
               error.what());
}

// The recorder stays: a call of another thread may still write to it.
void end_profile(Communicator& world) {
  Recorder* const recorder = world.profile().recorder();
  if (!recorder) return;
  world.profile().end();
  if (!world.broken().empty()) return;
  if (const auto offset = compare_clocks(world, "end")) recorder->note(clock_note("end", *offset));
}

}  // namespace paceline
