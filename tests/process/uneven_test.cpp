// Gather, scatter and alltoall of ranks that share memory, with units of differing length: short
// ones go through slots, long ones are messages (UnevenCopy).
#include <algorithm>
#include <vector>

#include "bootstrap/join.hpp"
#include "process/ranks.hpp"

using namespace paceline;
using test::expect_fault;
using test::join;
using test::run_ranks;

namespace {

// Units of 4080 bytes fill a slot of up to 64 ranks.
constexpr std::size_t kLengths[] = {0, 1, 1020, 1021, 7, 30000};

struct Exchange {
  int ranks, rank, round;
  Collective collective;
  bool in_place;
  int root() const { return round % ranks; }

  // Elements that `from` has for `to`. In place both have equally many for each other.
  std::size_t length(int from, int to) const {
    if (in_place && from > to) std::swap(from, to);
    return kLengths[std::size_t(3 * from + 5 * to + round) % std::size(kLengths)];
  }
  static int value(int from, int to, std::size_t i) {
    return from * 10000000 + to * 1000000 + int(i);
  }
  std::vector<std::size_t> lengths(bool are_sent) const {
    std::vector<std::size_t> all;
    for (int r = 0; r < ranks; ++r) all.push_back(are_sent ? length(rank, r) : length(r, rank));
    return all;
  }
  std::vector<int> filled(bool are_sent) const {
    std::vector<int> data;
    for (int r = 0; r < ranks; ++r) {
      const std::size_t n = are_sent ? length(rank, r) : length(r, rank);
      for (std::size_t i = 0; i < n; ++i)
        data.push_back(are_sent ? value(rank, r, i) : value(r, rank, i));
    }
    return data;
  }

  std::string run(Communicator& world) const {
    Call call{.collective = collective, .type = Type::i32, .root = root(), .uneven = true};
    const bool is_root = rank == root();
    std::vector<int> in, out, wanted;
    if (collective == Collective::alltoall) {
      in = filled(true), wanted = filled(false);
      call.counts = lengths(true), call.counts_received = lengths(false);
    } else if (collective == Collective::gather) {
      for (std::size_t i = 0; i < length(rank, root()); ++i) in.push_back(value(rank, root(), i));
      call.count = in.size();
      if (is_root) wanted = filled(false), call.counts = lengths(false);
    } else {
      for (std::size_t i = 0; i < length(root(), rank); ++i)
        wanted.push_back(value(root(), rank, i));
      call.count = wanted.size();
      if (is_root) in = filled(true), call.counts = lengths(true);
    }
    out.assign(wanted.size() + 1, -1);
    if (in_place) out.assign(in.begin(), in.end()), out.push_back(-1);
    call.input = in_place ? out.data() : in.data();
    call.output = out.data();
    if (ranks > 1 && world.explain(call).find("staged") != 0) return "says " + world.explain(call);
    if (round % 3 == 2) world.start(call).wait();
    else world.run(call);
    wanted.push_back(-1);
    if (out == wanted) return {};
    return str(name_of(collective), in_place ? " in place" : "", ", round ", round, ", rank ", rank,
               ": wrong");
  }
};

}  // namespace

TEST_CASE("units of any lengths arrive whole") {
  for (const int ranks : {1, 2, 3, 5}) {
    const std::string bad =
        run_ranks(ranks, 60, [&](int rank, const std::string& folder) -> std::string {
          Communicator world = join(rank, ranks, folder, 20000);
          for (int round = 0; round < 40; ++round)
            for (const auto& [collective, in_place] :
                 {std::pair{Collective::gather, false}, {Collective::alltoall, false},
                  {Collective::scatter, false}, {Collective::alltoall, true}}) {
              const Exchange one{ranks, rank, round, collective, in_place};
              if (const std::string wrong = one.run(world); !wrong.empty()) return wrong;
            }
          return {};
        });
    CHECK_MESSAGE(bad.empty(), ranks, " ranks: ", bad);
  }
}

TEST_CASE("two ranks that expect different lengths are a mismatch") {
  for (const std::size_t sent : {std::size_t{7}, std::size_t{5000}}) {
    const std::string bad =
        run_ranks(2, 30, [&](int rank, const std::string& folder) -> std::string {
          Communicator world = join(rank, 2, folder, 5000);
          std::vector<int> in(sent, 1), out(8 + 8);
          Call call{.collective = Collective::gather, .type = Type::i32, .uneven = true};
          call.count = rank == 0 ? 8 : sent;
          if (rank == 0) call.counts = {8, 8};
          in.resize(std::max<std::size_t>(sent, 8));
          call.input = in.data();
          call.output = out.data();
          return expect_fault(Fault::mismatch,
                              {"rank 1", str("sends ", 4 * sent, " bytes"), "expects 32"}, [&] {
                                for (int n = 0; n < 4; ++n) world.run(call);   // one may be ahead
                              });
        });
    CHECK_MESSAGE(bad.empty(), sent, " elements: ", bad);
  }
}
