#include "runtime/probe.hpp"

#include <algorithm>
#include <set>

#include "base/error.hpp"
#include "kernels/kernels.hpp"
#include "runtime/clock.hpp"

namespace paceline {
namespace {

// Of ranks in a ring: few, so that a look is short; the last ring takes what is left.
constexpr std::size_t kRing = 4;
constexpr std::uint64_t kTag = 0x6c6f6f6b;
constexpr int kShortCalls = 4, kShortSeries = 8, kLongCalls = 3;
// Of the longest message: from where on a call takes long enough for the clock and for noise.
constexpr std::size_t kFirstBytes = 16u << 10, kMostBytes = 1u << 20, kApart = 4;
constexpr double kLongEnoughS = 4e-3, kBudgetS = 25e-3;
constexpr std::size_t kSumElements = 64u << 10;
constexpr int kSums = 5;

// Once round the ring with blocks of so many bytes: seconds for each of its messages.
class Ring {
 public:
  explicit Ring(Communicator& ring)
      : ring_(ring), memory_((std::size_t(ring.size()) + 1) * kMostBytes) {}

  double message_s(std::size_t bytes, int calls) {
    Call call;
    call.collective = Collective::allgather;
    call.algorithm = "ring";
    call.segments = call.window = 1;
    call.count = bytes;
    call.input = memory_.data();
    call.output = memory_.data() + kMostBytes;
    const double begun_s = now_s();
    for (int i = 0; i < calls; ++i) ring_.run(call);
    return (now_s() - begun_s) / calls / (ring_.size() - 1);
  }

  // Likewise, the least of some looks; ranks agree on when it is enough.
  double least_s(std::size_t bytes) {
    double least = message_s(bytes, 1);
    const double all_s = agreed(least) * (ring_.size() - 1);
    for (int i = 1; i < kLongCalls && all_s * i < kBudgetS; ++i)
      least = std::min(least, message_s(bytes, 1));
    return least;
  }

  // The greatest that any rank says.
  double agreed(double mine) {
    Call call;
    call.collective = Collective::allreduce;
    call.algorithm = "recursive_doubling";
    call.segments = call.window = 1;
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
  double least = 0;
  for (int i = 0; i < kSums; ++i) {
    const double begun_s = now_s();
    sum(a.data(), sources, 2, kSumElements);
    const double took_s = now_s() - begun_s;
    least = i == 0 ? took_s : std::min(least, took_s);
  }
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
  found.alpha_s = look.message_s(1, kShortCalls);
  for (int i = 1; i < kShortSeries; ++i)
    found.alpha_s = std::min(found.alpha_s, look.message_s(1, kShortCalls));
  std::size_t bytes = kFirstBytes;
  while (bytes < kMostBytes &&
         look.agreed(look.message_s(bytes, 1)) * (ring.size() - 1) < kLongEnoughS)
    bytes *= 2;
  const double slope = look.least_s(bytes) - look.least_s(bytes / kApart);
  found.beta_s_per_byte = std::max(slope, 0.0) / double(bytes - bytes / kApart);
  found.gamma_s_per_byte = sum_s_per_byte();
  return found;
}

Assumed agree_on_links(Communicator& all, const Figures& mine) {
  double worst[] = {mine.alpha_s, mine.beta_s_per_byte, mine.gamma_s_per_byte,
                    mine.failed ? 1.0 : 0.0};
  Call call;
  call.collective = Collective::allreduce;
  call.algorithm = "recursive_doubling";
  call.segments = call.window = 1;
  call.type = Type::f64;
  call.op = Op::max;
  call.input = call.output = worst;
  call.count = std::size(worst);
  all.run(call);
  Assumed out = all.assumed();
  if (worst[3] > 0 || worst[0] <= 0 || worst[1] <= 0) {
    out.why = "usual, since measuring at the start failed";
    return out;
  }
  out.machine.name = "probed";
  out.machine.across = {worst[0], worst[1]};
  out.machine.gamma_s_per_byte = worst[2];
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
