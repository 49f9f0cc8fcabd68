#include "machine/probe.hpp"

#include <algorithm>
#include <bit>
#include <chrono>
#include <cmath>
#include <condition_variable>
#include <limits>
#include <mutex>
#include <optional>
#include <set>
#include <system_error>
#include <thread>

#include "base/error.hpp"
#include "kernels/kernels.hpp"
#include "runtime/progress/clock.hpp"

namespace paceline {
namespace {

constexpr std::size_t kRing = 3;   // ranks in a ring, or one or two more: few, so a look is short
// Tags of the subgroups, one for each use.
constexpr std::uint64_t kTag = 0x6c6f6f6b, kTagOfAll = 0x6c6f6f6c, kTagOfSamples = 0x6c6f6f6d;
constexpr int kShortCalls = 4;   // in each series
constexpr int kSeries = 10, kFewestSeries = 3;
// Bytes of small, modest and medium messages (link_fit.hpp), without the transport's headers.
constexpr std::array<std::size_t, kLengths - 1> kBytes{8u << 10, 16u << 10, 32u << 10};
// Bytes of the block that a train carries. It grows until it takes kLongEnoughS, long enough for
// clock and noise.
constexpr std::size_t kFirstBytes = 128u << 10, kMostBytes = 1u << 20, kGrows = 2;
constexpr double kLongEnoughS = 5e-3;
// Pause before a lone message, so that queues and buckets of the network are as a call finds them.
constexpr auto kPause = std::chrono::milliseconds(2);
constexpr int kWindow = 6;   // as in tune/choose.cpp
constexpr int kFewestLooks = 2, kMostLooks = 12;   // trains of each length
// Limit of the series of rounds of all nodes, in case other work delays them.
constexpr double kMostSeriesS = 0.06;
// A whole probe may take as long as the link takes for kBudgetBytes, 0.5 s at 200 Mbit/s, within
// these bounds. Trains may take kOfTrains of that; a rank sends at most kMostLookBytes in them.
constexpr double kBudgetBytes = 12.5e6, kLeastBudgetS = 0.5, kMostBudgetS = 2, kOfTrains = 0.6;
constexpr double kMostLookBytes = 64 << 20;
// A sample: seconds once round the ring, and its least number of messages.
constexpr double kSampleS = 2.5e-3, kLeastSample = 2;
// Number of trains, and of one-byte messages, of which the least time counts.
constexpr int kSamples = 2, kShortSamples = 3;
// A sample disagrees if it is kDisagrees times as long or short in all kRounds rounds.
constexpr double kDisagrees = 3;
constexpr int kRounds = 3;
constexpr std::size_t kSumElements = 64u << 10;
constexpr int kSums = 5;
// Time-outs of calls in a ring, and among all first ranks, which wait for a ring that has failed.
constexpr int kRingMs = 10000, kFirstsMs = 20000;
constexpr int kAnswers = 64;   // times that a thread is woken in task_s()

template <class Look>
double least_of(int looks, Look&& look) {
  double least = look();
  for (int i = 1; i < looks; ++i) least = std::min(least, look());
  return least;
}

Call prepared(Collective collective, const char* algorithm) {
  Call call;
  call.collective = collective;
  call.algorithm = algorithm;
  call.cut.segments = call.cut.window = 1;
  return call;
}

// Returns the greatest value that a rank passes.
double greatest(Communicator& ranks, double mine) {
  Call call = prepared(Collective::allreduce, "recursive_doubling");
  call.type = Type::f64;
  call.op = Op::max;
  call.input = call.output = &mine;
  call.count = 1;
  ranks.run(call);
  return mine;
}

// Times messages between the ranks of a ring.
class Ring {
 public:
  explicit Ring(Communicator& ring, std::size_t most_bytes = kMostBytes)
      : ring_(ring), most_(most_bytes), memory_((std::size_t(ring.size()) + 1) * most_) {}

  // Passes every rank's block of `bytes` once round the ring, in trains of `pieces` messages.
  // Returns the seconds from one rank to the next.
  double block_s(std::size_t bytes, int calls, std::size_t pieces = 1) {
    Call call = prepared(Collective::allgather, "ring");
    call.cut.segments = int(pieces);
    call.cut.window = std::min(int(pieces), kWindow);
    call.count = bytes;
    call.input = memory_.data();
    call.output = memory_.data() + most_;
    const double begun_s = now_s();
    for (int i = 0; i < calls; ++i) ring_.run(call);
    return (now_s() - begun_s) / calls / (ring_.size() - 1);
  }

  // Times `looks` trains of each length in turn, or fewer if they take too long: blocks of `bytes`,
  // or of one large message. A barrier before each train empties the queues.
  LinkSamples in_turn(std::size_t bytes, std::size_t large, int looks, double begun_s,
                      double budget_s) {
    LinkSamples found;
    double took_s = 0;   // time of the last turn
    for (int i = 0; i < looks; ++i) {
      const double at_s = now_s();
      if (i >= kFewestLooks && agreed(at_s - begun_s + took_s) > budget_s) break;
      for (std::size_t k = 0; k < kLengths; ++k) {
        const std::size_t block = k < kBytes.size() ? bytes : large;
        ring_.run(prepared(Collective::barrier, "dissemination"));
        const std::size_t pieces = k < kBytes.size() ? block / kBytes[k] : 1;
        found.s_per_byte[k].push_back(block_s(block, 1, pieces) / double(block));
      }
      took_s = now_s() - at_s;
    }
    return found;
  }

  // Returns the seconds per byte of a short train, the least of kSamples.
  double sample_s(std::size_t bytes) {
    ring_.run(prepared(Collective::barrier, "dissemination"));
    return least_of(kSamples, [&] { return block_s(bytes, 1, bytes / kBytes.front()); }) /
           double(bytes);
  }

  // Returns the seconds of a one-byte message, the least of kShortSamples.
  double one_byte_s() {
    return least_of(kShortSamples, [&] { return block_s(1, kShortCalls); });
  }

  // Returns the seconds of one message from each rank, after a pause.
  double lone_message_s(std::size_t bytes) {
    std::this_thread::sleep_for(kPause);
    ring_.run(prepared(Collective::barrier, "dissemination"));
    return block_s(bytes, 1);
  }

  // Passes a byte along the chain of all ranks; the next call goes on from its last rank, so that
  // one message is under way at a time. Returns the seconds of each message.
  double alone_s(int calls) {
    Call call = prepared(Collective::broadcast, "chain");
    call.output = memory_.data();
    call.count = 1;
    const double begun_s = now_s();
    for (int i = 0; i < calls; ++i) {
      call.root = last_;
      last_ = (last_ + ring_.size() - 1) % ring_.size();
      ring_.run(call);
    }
    return (now_s() - begun_s) / calls / (ring_.size() - 1);
  }

  double around_s(double block_s) const { return block_s * (ring_.size() - 1); }

  double agreed(double mine) { return greatest(ring_, mine); }

 private:
  Communicator& ring_;
  std::size_t most_;   // bytes of a block
  std::vector<std::byte> memory_;
  int last_ = 0;   // the rank at which the last chain of alone_s() ended
};

double sum_s_per_byte() {
  std::vector<float> a(kSumElements, 1), b(kSumElements, 2);
  const Reduce sum = reduce_kernel(Type::f32, Op::sum);
  const void* sources[] = {a.data(), b.data()};
  const double least = least_of(kSums, [&] {
    const double begun_s = now_s();
    sum(a.data(), sources, 2, kSumElements);
    return now_s() - begun_s;
  });
  return least / double(kSumElements * sizeof(float));
}

// Returns the seconds in which a thread wakes another and is woken by it, as for a task of the task
// graph: the least of kAnswers; 0 if no thread can be started.
double task_s() {
  std::mutex mutex;
  std::condition_variable turns;
  int turn = 0;   // even: this thread's
  const auto wait_for = [&](int mine) {
    std::unique_lock lock(mutex);
    turns.wait(lock, [&] { return turn == mine; });
  };
  const auto pass_on = [&] {
    const std::lock_guard lock(mutex);
    ++turn;
    turns.notify_one();
  };
  try {
    std::thread other([&] {
      for (int i = 0; i < kAnswers; ++i) {
        wait_for(2 * i + 1);
        pass_on();
      }
    });
    double least = std::numeric_limits<double>::infinity();
    for (int i = 0; i < kAnswers; ++i) {
      const double begun_s = now_s();
      pass_on();
      wait_for(2 * i + 2);
      least = std::min(least, now_s() - begun_s);
    }
    other.join();
    return least;
  } catch (const std::system_error&) {
    return 0;
  }
}

}  // namespace

std::vector<int> first_ranks(const std::vector<int>& nodes) {
  std::set<int> seen;
  std::vector<int> first;
  for (std::size_t r = 0; r < nodes.size(); ++r)
    if (seen.insert(nodes[r]).second) first.push_back(int(r));
  return first;
}

std::vector<int> probing_ring(const std::vector<int>& nodes, int rank) {
  const std::vector<int> first = first_ranks(nodes);
  const auto of_node = [&](int r) { return nodes[std::size_t(r)] == nodes[std::size_t(rank)]; };
  const auto own = std::size_t(std::find_if(first.begin(), first.end(), of_node) - first.begin());
  const std::size_t rings = std::max<std::size_t>(1, first.size() / kRing);
  // Rings differ in length by one at most.
  const auto begin = [&](std::size_t ring) { return ring * first.size() / rings; };
  std::size_t ring = 0;
  while (own >= begin(ring + 1)) ++ring;
  return {first.begin() + std::ptrdiff_t(begin(ring)),
          first.begin() + std::ptrdiff_t(begin(ring + 1))};
}

LinkFit look_at_links(Communicator& ring) {
  const double begun_s = now_s();
  Ring look(ring);
  look.block_s(1, 1);   // makes the connections
  const double alpha_s = least_of(kSeries, [&] { return look.block_s(1, kShortCalls); });
  const double lone_s = least_of(kSeries, [&] { return look.lone_message_s(kBytes.front()); });
  std::size_t bytes = kFirstBytes;
  double around_s = 0;
  for (;; bytes *= kGrows) {
    around_s = look.around_s(look.agreed(look.block_s(bytes, 1, bytes / kBytes.front())));
    if (around_s >= kLongEnoughS || bytes == kMostBytes) break;
  }
  const double hops = ring.size() - 1, s_per_byte = around_s / hops / double(bytes);
  const std::size_t large = std::min(large_bytes(s_per_byte), kMostBytes);
  const double budget_s =
      kOfTrains * std::clamp(kBudgetBytes * s_per_byte, kLeastBudgetS, kMostBudgetS);
  // Bytes that each rank sends in a turn.
  const double sent = hops * double(kBytes.size() * bytes + large);
  const double most = std::min(budget_s / s_per_byte, kMostLookBytes) / sent;
  const int looks = int(std::clamp<double>(most, kFewestLooks, kMostLooks));
  LinkFit found = fit_link(look.in_turn(bytes, large, looks, begun_s, budget_s), alpha_s);
  found.gamma_s_per_byte = sum_s_per_byte();
  found.task_s = task_s();
  found.lone_s = lone_s;
  return found;
}

void look_at_contention(Communicator& firsts, Communicator* ring, LinkFit& found) {
  const Call meet = prepared(Collective::barrier, "dissemination");
  const int rounds = std::bit_width(unsigned(firsts.size() - 1));   // of this barrier
  firsts.run(meet);
  const double first_s = now_s();
  for (int i = 0; i < kSeries; ++i) {
    if (i >= kFewestSeries && greatest(firsts, now_s() - first_s) > kMostSeriesS) break;
    const double begun_s = now_s();
    for (int k = 0; k < kShortCalls; ++k) firsts.run(meet);
    const double round_s = (now_s() - begun_s) / kShortCalls / rounds;
    found.together_s = i == 0 ? round_s : std::min(found.together_s, round_s);
  }
  if (ring) {
    Ring look(*ring);
    found.alone_s = least_of(kSeries, [&] { return look.alone_s(kShortCalls); });
  }
  firsts.run(meet);
}

Assumed agree_on_links(Communicator& all, const LinkFit& mine) {
  double worst[] = {mine.alpha_s,      mine.beta_s_per_byte, mine.modest_ratio,
                    mine.medium_ratio, mine.large_ratio,     mine.gamma_s_per_byte,
                    mine.lone_s,       mine.together_s,      mine.alone_s,
                    mine.task_s,       mine.failed ? 1.0 : 0.0};
  Call call = prepared(Collective::allreduce, "recursive_doubling");
  call.type = Type::f64;
  call.op = Op::max;
  call.input = call.output = worst;
  call.count = std::size(worst);
  all.run(call);
  Assumed out = all.assumed();
  const auto [alpha_s, beta, modest, medium, large, gamma, lone, together, alone, task,
              failed] = worst;
  if (failed > 0 || std::min({alpha_s, beta, modest, medium, large}) <= 0) {
    out.why = "usual, since measuring at the start failed";
    return out;
  }
  out.machine.name = "probed";
  out.machine.across = link_of({alpha_s, beta, modest, medium, large, gamma, lone, together, alone},
                               {double(kBytes[0]), double(kBytes[1]), double(kBytes[2])},
                               all.nodes());
  out.machine.gamma_s_per_byte = gamma;
  if (task > 0) out.machine.task_s = task;
  out.why = str("measured at the start between ", all.nodes(), " nodes");
  return out;
}

namespace {

// Returns this rank's ring, if it is in one. Each use of a ring has its own tag.
std::optional<Communicator> ring_of(Communicator& all, const WorldConfig& config,
                                    std::uint64_t tag) {
  const std::vector<int> members = probing_ring(config.nodes, all.rank());
  if (std::find(members.begin(), members.end(), all.rank()) == members.end()) return {};
  Communicator ring = all.subgroup(members, tag);
  ring.set_timeout(kRingMs);
  return ring;
}

// Returns the bytes of a block that takes about kSampleS round the ring.
std::size_t sample_bytes(double beta, int ranks) {
  const double most = kSampleS / beta / (ranks - 1) / double(kBytes.front());
  const std::size_t pieces = kMostBytes / kBytes.front();
  return kBytes.front() * std::size_t(std::clamp(most, kLeastSample, double(pieces)));
}

// Returns the longest time that a rank has found in its ring; infinity if one has failed.
template <class Look>
double longest_of_all(Communicator& all, std::optional<Communicator>& ring, double beta,
                      Look&& look) {
  double longest = 0;
  if (ring) try {
      const std::size_t bytes = sample_bytes(beta, ring->size());
      Ring found(*ring, bytes);
      longest = look(found, bytes);
    } catch (const Error&) {
      longest = std::numeric_limits<double>::infinity();
    }
  return greatest(all, longest);
}

double sample_of_all(Communicator& all, std::optional<Communicator>& ring, double beta) {
  return longest_of_all(all, ring, beta,
                        [](Ring& found, std::size_t bytes) { return found.sample_s(bytes); });
}

// True if alpha is much longer than a one-byte message takes now: then the machine was busy when
// alpha was measured. A longer message shows nothing.
bool is_too_long(double alpha_s, Communicator& all, std::optional<Communicator>& ring,
                 double beta) {
  const auto one_byte_s = [](Ring& found, std::size_t) { return found.one_byte_s(); };
  return alpha_s > kDisagrees * longest_of_all(all, ring, beta, one_byte_s);
}

}  // namespace

double sample_links(Communicator& all, const WorldConfig& config, double beta) {
  std::optional<Communicator> ring = ring_of(all, config, kTagOfSamples);
  const double sample = sample_of_all(all, ring, beta);
  return std::isfinite(sample) ? sample : 0;
}

bool agrees_with(Communicator& all, const WorldConfig& config, const Link& link, double sample) {
  if (sample <= 0) return true;
  const double beta = link.beta_s_per_byte;
  std::optional<Communicator> ring = ring_of(all, config, kTagOfSamples + 1);
  for (int round = 0; round < kRounds; ++round) {
    const double ratio = sample_of_all(all, ring, beta) / sample;
    if (ratio > 1 / kDisagrees && ratio < kDisagrees)
      return !is_too_long(link.alpha_s, all, ring, beta);
  }
  return false;
}

Assumed probed(Communicator all, const WorldConfig& config) {
  LinkFit mine;
  if (std::optional<Communicator> ring = ring_of(all, config, kTag)) {
    try {
      mine = look_at_links(*ring);
    } catch (const Error&) {   // the other ranks of the ring fail as well
      mine.failed = true;
    }
    try {   // also after a failed ring, since the other rings' ranks wait here
      Communicator firsts = all.subgroup(first_ranks(config.nodes), kTagOfAll);
      firsts.set_timeout(kFirstsMs);
      const bool is_first = std::ranges::count(probing_ring(config.nodes, 0), all.rank()) > 0;
      look_at_contention(firsts, is_first && !mine.failed ? &*ring : nullptr, mine);
    } catch (const Error&) {
      mine.failed = true;
    }
  }
  return agree_on_links(all, mine);
}

}  // namespace paceline
