// The core inside a simulator of MPI (SimGrid SMPI): what a collective takes there, by its clock.
//
// The first argument is the seconds that combining a byte takes: the simulator is told of them,
// since it does not time what a program computes. Every further one is
// collective/algorithm/count/segments/window/blocks/in_step; rank 0 prints it with the seconds that
// the slowest rank took.
#include <mpi.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "coll/registry.hpp"
#include "engine/message_operation.hpp"
#include "ir/lower.hpp"
#include "transport/mpi/abi/header.hpp"

namespace paceline {
namespace {

// Short beside a message: what is under way at the same time shares a link evenly here.
constexpr std::size_t kChunk = 64u << 10;
constexpr double kFlopsPerSecond = 1e9;   // of the hosts in platform.xml
double gamma_s_per_byte = 0;
Reduce add = nullptr;

// Combines, and lets the simulated time pass that it takes: source_count - 1 combinations.
void add_slowly(void* target, const void* const* sources, int source_count, std::size_t count) {
  add(target, sources, source_count, count);
  const double bytes = static_cast<double>(count) * sizeof(float);
  smpi_execute_flops(gamma_s_per_byte * bytes * (source_count - 1) * kFlopsPerSecond);
}

// Nobody disagrees, leaves or dies here; if a message does not fit, the run has failed.
struct Strict : Listener {
  bool arrives(int, const Key&, const Fingerprint&) override { return true; }
  void misfits(int, const Key&, std::size_t, std::size_t) override { std::abort(); }
  void aborted(int, std::uint64_t, const std::string&) override { std::abort(); }
  void lost(int, const std::string&) override {}
};

struct Wanted {
  std::string collective, algorithm;
  std::size_t count = 0;
  int segments = 1, window = 1, blocks = 0, in_step = 0;
};

Wanted parse(std::string text) {
  Wanted w;
  std::replace(text.begin(), text.end(), '/', ' ');
  std::istringstream words(text);
  words >> w.collective >> w.algorithm >> w.count >> w.segments >> w.window;
  words >> w.blocks >> w.in_step;
  return w;
}

Problem problem_of(const Wanted& w, Transport& transport) {
  Problem problem;
  problem.collective = collective_from(w.collective);
  problem.ranks = transport.ranks();
  problem.rank = transport.rank();
  problem.in_place = problem.collective == Collective::allreduce;
  return problem;
}

// Element i of what rank r has: sums of them are exact.
float value(int rank, std::size_t i) { return float(rank + 1) * float(i % 97); }

bool is_right(const Problem& problem, const std::vector<float>& x) {
  const float ranks = float(problem.ranks);
  for (std::size_t i = 0; i < x.size(); ++i) {
    const float sum = ranks * (ranks + 1) / 2 * float(i % 97);
    const bool moves = problem.collective == Collective::broadcast;
    if (x[i] != (moves ? value(problem.root, i) : sum)) return false;
  }
  return true;
}

// All ranks leave it at the same simulated moment, which is returned.
double start_together() {
  double now = PMPI_Wtime(), latest = 0;
  PMPI_Allreduce(&now, &latest, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
  const double moment = latest + 1e-3;
  smpi_execute_flops((moment - PMPI_Wtime()) * kFlopsPerSecond);
  return moment;
}

// Seconds from the start on all ranks to the end on this one.
double run(const Wanted& w, Transport& transport, std::uint32_t number) {
  const Problem problem = problem_of(w, transport);
  const Algorithm& algorithm = find_algorithm(problem.collective, w.algorithm);
  auto schedule = std::make_shared<Schedule>(lower(
      algorithm, problem,
      {.segments = w.segments, .window = w.window, .knobs = {.blocks = w.blocks},
       .in_step = w.in_step != 0},
      Reader::proof));   // not fused: both simulators then combine what has come
  auto bound = std::make_shared<CompiledSchedule>(
      resolve(schedule, even_layout(problem, w.count), Type::f32, Op::sum));
  if (bound->reduce) {
    add = bound->reduce;
    bound->reduce = add_slowly;
  }
  std::vector<int> everybody;
  for (int r = 0; r < problem.ranks; ++r) everybody.push_back(r);
  MessageOperation operation(bound, Channel{1, &everybody});
  std::vector<float> x(w.count), out(w.count);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = value(problem.rank, i);
  const bool one_buffer = problem.in_place || problem.collective == Collective::broadcast;
  std::vector<float>& result = one_buffer ? x : out;
  std::vector<std::byte> scratch(operation.scratch_bytes());
  const double begin_s = start_together();
  operation.start({x.data(), result.data(), scratch.data()}, number, {});
  while (!operation.done())
    if (!operation.advance(transport) && !transport.progress()) transport.rest(1, {});
  const double taken_s = PMPI_Wtime() - begin_s;
  const bool has_result = problem.collective != Collective::reduce || problem.rank == problem.root;
  if (has_result && !is_right(problem, result)) {
    std::fprintf(stderr, "rank %d: wrong result\n", problem.rank);
    std::abort();
  }
  return taken_s;
}

}  // namespace
}  // namespace paceline

int main(int argc, char** argv) {
  using namespace paceline;
  MPI_Init(&argc, &argv);
  if (argc > 1) gamma_s_per_byte = std::atof(argv[1]);
  {
    const std::shared_ptr<MpiLibrary> library = mpi::make_from_header();
    const std::shared_ptr<MpiWorld> world = library->open(nullptr);
    const auto transport = world->transport({.chunk_bytes = kChunk, .blocking_sleep = true});
    Strict listener;
    transport->listen(&listener);
    for (int i = 2; i < argc; ++i) {
      double mine = run(parse(argv[i]), *transport, std::uint32_t(i)), slowest = 0;
      PMPI_Reduce(&mine, &slowest, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
      if (world->rank() == 0) std::printf("%s: %.12f\n", argv[i], slowest);
    }
    transport->leave(Leaving::ended);
  }
  MPI_Finalize();
}
