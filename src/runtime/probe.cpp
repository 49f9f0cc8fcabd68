#include "runtime/probe.hpp"

#include <algorithm>
#include <set>

#include "base/error.hpp"
#include "kernels/kernels.hpp"
#include "runtime/clock.hpp"

namespace paceline {
namespace {

// Of ranks in a ring: few, so that a look is short; the last ring takes what is left.
constexpr std::size_t kRing = 3;
constexpr std::uint64_t kTag = 0x6c6f6f6b;
constexpr int kShortCalls = 4, kSeries = 3, kMostLooks = 4;
// Of a message that travels with its header; of a block, from where on a call takes long enough for
// the clock and for noise; of a message that any MPI announces before it sends it.
constexpr std::size_t kShortBytes = MpiConfig{}.eager_bytes;
constexpr std::size_t kFirstBytes = 64u << 10, kMostBytes = 1u << 20, kGrows = 4, kApart = 2;
constexpr std::size_t kLongBytes = 128u << 10;
constexpr int kWindow = 6;   // as choose() has it
constexpr double kLongEnoughS = 5e-3, kBudgetS = 20e-3;
// Of the time of a message that travels with its header: what a port spends on it at least.
constexpr double kLeastGap = 0.02;
constexpr double kSlower = 1.2;   // from where on one kind is called slower: noise does less
constexpr std::size_t kSumElements = 64u << 10;
constexpr int kSums = 5;

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
  call.segments = call.window = 1;
  return call;
}

// Once round the ring with blocks of so many bytes: seconds for each of its messages.
class Ring {
 public:
  explicit Ring(Communicator& ring)
      : ring_(ring), memory_((std::size_t(ring.size()) + 1) * kMostBytes) {}

  double message_s(std::size_t bytes, int calls, std::size_t pieces = 1) {
    Call call = prepared(Collective::allgather, "ring");
    call.segments = int(pieces);
    call.window = std::min(int(pieces), kWindow);
    call.count = bytes;
    call.input = memory_.data();
    call.output = memory_.data() + kMostBytes;
    const double begun_s = now_s();
    for (int i = 0; i < calls; ++i) ring_.run(call);
    return (now_s() - begun_s) / calls / (ring_.size() - 1);
  }

  // Likewise in pieces of so many bytes, the least of some looks; ranks agree on when it is enough.
  double least_s(std::size_t bytes, std::size_t piece) {
    double least = message_s(bytes, 1, bytes / piece);
    const double all_s = round_s(agreed(least));
    for (int i = 1; i < kMostLooks && all_s * i < kBudgetS; ++i)
      least = std::min(least, message_s(bytes, 1, bytes / piece));
    return least;
  }

  double round_s(double message_s) const { return message_s * (ring_.size() - 1); }

  // The greatest that any rank says.
  double agreed(double mine) {
    Call call = prepared(Collective::allreduce, "recursive_doubling");
    call.type = Type::f64;
    call.op = Op::max;
    call.input = call.output = &mine;
    call.count = 1;
    ring_.run(call);
    return mine;
  }

 private:
  Communicator& ring_;
  std::vector<std::byte> memory_;
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

}  // namespace

std::vector<int> probing_ring(const std::vector<int>& nodes, int rank) {
  std::set<int> seen;
  std::vector<int> first;   // rank of each node, in order
  std::size_t own = 0;      // its place among them
  for (std::size_t r = 0; r < nodes.size(); ++r) {
    if (!seen.insert(nodes[r]).second) continue;
    if (nodes[r] == nodes[std::size_t(rank)]) own = first.size();
    first.push_back(int(r));
  }
  const std::size_t rings = std::max<std::size_t>(1, first.size() / kRing);
  const std::size_t ring = std::min(own / kRing, rings - 1);
  const auto begin = first.begin() + std::ptrdiff_t(ring * kRing);
  return {begin, ring == rings - 1 ? first.end() : begin + std::ptrdiff_t(kRing)};
}

Figures look_at_links(Communicator& ring) {
  Ring look(ring);
  look.message_s(1, 1);   // connections are made
  Figures found;
  found.alpha_s = least_of(kSeries, [&] { return look.message_s(1, kShortCalls); });
  std::size_t bytes = kFirstBytes;
  double block_s = look.least_s(bytes, kShortBytes);
  while (bytes < kMostBytes && look.round_s(look.agreed(block_s)) < kLongEnoughS)
    block_s = look.least_s(bytes *= kGrows, kShortBytes);
  const double slope = (block_s - look.least_s(bytes / kApart, kShortBytes)) /
                       double(bytes - bytes / kApart);
  const double mean = block_s / double(bytes);   // noise may make the shorter one take longer
  found.beta_s_per_byte = slope > 0 ? std::min(slope, mean) : mean;
  const std::size_t two = std::max(bytes, 2 * kLongBytes);
  const double long_s = look.least_s(two, two / 2);
  found.long_beta_s_per_byte =
      (long_s > found.alpha_s ? long_s - found.alpha_s : long_s) / double(two);
  found.gamma_s_per_byte = sum_s_per_byte();
  return found;
}

Assumed agree_on_links(Communicator& all, const Figures& mine) {
  double worst[] = {mine.alpha_s, mine.beta_s_per_byte, mine.gamma_s_per_byte,
                    mine.long_beta_s_per_byte, mine.failed ? 1.0 : 0.0};
  Call call = prepared(Collective::allreduce, "recursive_doubling");
  call.type = Type::f64;
  call.op = Op::max;
  call.input = call.output = worst;
  call.count = std::size(worst);
  all.run(call);
  Assumed out = all.assumed();
  const auto [alpha_s, beta, gamma, long_beta, failed] = worst;
  if (failed > 0 || alpha_s <= 0 || std::min(beta, long_beta) <= 0) {
    out.why = "usual, since measuring at the start failed";
    return out;
  }
  out.machine.name = "probed";
  const double best = std::min(beta, long_beta), bytes = double(kShortBytes);
  const double gap_s = std::max(bytes * (beta / kSlower - best), kLeastGap * bytes * beta);
  out.machine.across = {alpha_s, best, std::max(0.0, alpha_s - gap_s), bytes,
                        long_beta > kSlower * beta ? long_beta : 0};
  out.machine.gamma_s_per_byte = gamma;
  out.why = str("measured at the start between ", all.nodes(), " nodes");
  return out;
}

Assumed probed(Communicator all, const WorldConfig& config) {
  Figures mine;
  const std::vector<int> members = probing_ring(config.nodes, all.rank());
  if (std::find(members.begin(), members.end(), all.rank()) != members.end()) try {
    Communicator ring = all.subgroup(members, kTag);
    mine = look_at_links(ring);
  } catch (const Error&) {   // whoever is missing is missed by the others, too
    mine.failed = true;
  }
  return agree_on_links(all, mine);
}

}  // namespace paceline
