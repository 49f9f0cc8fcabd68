// Linear pipelines on rate-limited devices, in model time: what L. Wang, W. Wu, G. Bosilca,
// R. Vuduc and Z. Xu claim of them (arXiv 1611.04255, section 3), emulated and simulated.
#include <doctest/doctest.h>

#include <cmath>
#include <memory>

#include "base/str.hpp"
#include "device/emulation.hpp"
#include "runtime/device_group.hpp"
#include "simulate/simulate.hpp"
#include "world/worlds.hpp"

namespace paceline {
namespace {

constexpr std::size_t kBlock = 64u << 10;   // bytes
const device::Rates kRates{.latency_s = 1e-7, .copy_bytes_per_s = 1e10};

// `share`: all positions are on one device. Without rates.host_s the calls are a graph.
double emulated_s(Collective collective, const char* algorithm, int p, std::size_t bytes,
                  int segments, const device::Rates& rates, bool share = false) {
  auto driver = std::make_shared<device::Emulation>(device::EmulationOptions{
      .devices = share ? 1 : p, .keeps_work = true, .moves = false});
  std::vector<int> devices;
  std::vector<device::Stream> streams;
  for (int at = 0; at < p; ++at) {
    devices.push_back(share ? 0 : at);
    streams.push_back(driver->make_stream(devices.back()));
  }
  const Machine machine = machine_from(
      str("alpha_us=", 1e6 * (rates.latency_s + rates.host_s), ",gbit_per_s=",
          8e-9 * rates.copy_bytes_per_s, ",reduce_gbyte_per_s=", 1e-9 * rates.combine_bytes_per_s));
  DeviceGroup group(driver, devices, machine);
  std::vector<std::unique_ptr<float[]>> data(static_cast<std::size_t>(p));
  std::vector<Call> calls;
  for (auto& mine : data) {
    mine.reset(new float[bytes / sizeof(float)]);   // nothing touches it
    Call call;
    call.collective = collective;
    call.type = Type::f32;
    call.algorithm = algorithm;
    call.cut.segments = call.cut.window = segments;
    call.count = bytes / sizeof(float);
    call.input = call.output = mine.get();
    calls.push_back(call);
  }
  if (rates.host_s > 0) group.enqueue(calls, streams);
  else driver->launch(group.capture(calls, streams.front()), streams.front());
  const device::Event end = driver->make_event(0);
  for (device::Stream stream : streams) {
    driver->record(end, stream);
    driver->synchronize(end);
  }
  return device::makespan_s(device::timing(driver->take_work(), rates));
}

double simulated_s(Collective collective, const char* algorithm, int p, std::size_t bytes,
                   int segments, const char* gbyte_per_s = "0") {
  const World world =
      make_world(find_algorithm(collective, algorithm),
                 {.collective = collective, .ranks = p, .cut = {segments, segments}});
  const Machine machine = machine_from(
      str("alpha_us=0.1,gbit_per_s=80,reduce_gbyte_per_s=", gbyte_per_s));
  double last = 0;
  for (const Event& event : simulate(world, bytes / sizeof(float), sizeof(float), machine).events)
    last = std::max(last, event.end_s);
  return last;
}

// The document's allreduce takes 9 steps. The last device sends 8 blocks, its own and the results:
// fewer cannot be.
TEST_CASE("linear pipeline: 4 blocks on 3 devices take at most 9 steps, and 10 in two calls") {
  const device::Rates step{.copy_bytes_per_s = double(kBlock)};   // a block takes a second
  const auto steps = [&](Collective collective) {
    return emulated_s(collective, "chain", 3, 4 * kBlock, 4, step);
  };
  CHECK(steps(Collective::allreduce) == 8);
  CHECK(steps(Collective::broadcast) + steps(Collective::reduce) == 10);
}

TEST_CASE("linear pipeline: what it takes hardly grows with the devices") {
  for (std::size_t bytes : {std::size_t{4} << 20, std::size_t{16} << 20}) {
    const int blocks = int(bytes / kBlock);
    const auto grows = [&](Collective c, int from) {
      const double emulated = emulated_s(c, "chain", 8, bytes, blocks, kRates) /
                              emulated_s(c, "chain", from, bytes, blocks, kRates);
      const double simulated = simulated_s(c, "chain", 8, bytes, blocks) /
                               simulated_s(c, "chain", from, bytes, blocks);
      MESSAGE(name_of(c) << " of " << (bytes >> 20) << " MiB, 8 devices by " << from << ": "
                         << emulated << " emulated, " << simulated << " simulated");
      return std::max(emulated, simulated);
    };
    CHECK(grows(Collective::broadcast, 2) <= 1.15);
    CHECK(grows(Collective::reduce, 2) <= 1.15);
    // Two devices send both ways at once, and take half as long.
    CHECK(grows(Collective::allreduce, 3) <= 1.15);
  }
}

// Blocks of no given length: those that the model of the machine finds.
TEST_CASE("linear pipeline: the model finds a block with which it takes hardly longer than any") {
  const device::Rates slow{.latency_s = 8e-6, .copy_bytes_per_s = 2.5e10};
  for (Collective c : {Collective::broadcast, Collective::reduce, Collective::allreduce})
    for (int p : {3, 4, 8})
      for (std::size_t bytes : {std::size_t{2} << 20, std::size_t{32} << 20}) {
        double best = emulated_s(c, "chain", p, bytes, 1, slow);
        const double in_one = best;
        for (int segments = 2; segments <= 256; segments *= 2)
          best = std::min(best, emulated_s(c, "chain", p, bytes, segments, slow));
        const double own = emulated_s(c, "chain", p, bytes, 0, slow);
        CHECK_MESSAGE(own <= 1.15 * best, name_of(c) << " on " << p << " of " << bytes << ": "
                                                     << own / best << " of the best");
        CHECK(best < in_one);
      }
}

// Every task costs the process that starts it some microseconds: then few tasks are better, and on
// one device, whose memory all messages pass through, the fewest. Sums are left out there: they
// would share that memory, which the emulation does not know.
TEST_CASE("devices: where one process starts all, the choice takes hardly longer than any") {
  constexpr std::size_t kMiB = 1u << 20;
  const char* const single[][2] = {{"binomial", "scatter_allgather"},
                                   {"binomial", "scatter_gather"},
                                   {"binomial", "rabenseifner"}};
  const Collective collectives[] = {Collective::broadcast, Collective::reduce,
                                    Collective::allreduce};
  for (const bool share : {false, true}) {
    const device::Rates rates{.copy_bytes_per_s = 2.5e11,
                              .combine_bytes_per_s = share ? 0 : 1.2e12, .host_s = 5e-6};
    for (int c = 0; c < 3; ++c)
      for (int p : {2, 4, 8})
        for (std::size_t bytes : {kMiB, 16 * kMiB, 64 * kMiB, 256 * kMiB}) {
          const auto took_s = [&](const char* algorithm, int segments) {
            return emulated_s(collectives[c], algorithm, p, bytes, segments, rates, share);
          };
          double best = std::min(took_s(single[c][0], 1), took_s(single[c][1], 1));
          for (int segments = 1; segments <= 64; segments *= 2)
            best = std::min(best, took_s("chain", segments));
          const double chosen = took_s("", 0);
          CHECK_MESSAGE(chosen <= 1.2 * best,
                        str(name_of(collectives[c]), " of ", bytes / kMiB, " MiB on ", p,
                            share ? " that share a device: " : ": ", chosen / best,
                            " of the best"));
        }
  }
}

// Table 1 of the document. Gamma: of sums, which it takes one after the other with what is sent.
struct Row {
  Collective collective;
  const char* algorithm;
  bool pipelined;
  double (*seconds)(double p, double n, double b, double alpha, double beta, double gamma);
};

const Row kTable[] = {
    {Collective::broadcast, "chain", true,
     [](double p, double n, double b, double alpha, double beta, double) {
       return (p - 1 + n / b) * alpha + (b * (p - 1) + n) * beta;
     }},
    {Collective::reduce, "chain", true,
     [](double p, double n, double b, double alpha, double beta, double gamma) {
       return (p - 1 + n / b) * alpha + (b * (p - 1) + n) * (beta + gamma);
     }},
    {Collective::allreduce, "chain", true,
     [](double p, double n, double b, double alpha, double beta, double gamma) {
       return 2 * (p - 1 + n / b) * alpha + (b * (p - 1) + n) * (2 * beta + gamma);
     }},
    {Collective::broadcast, "binomial", false,
     [](double p, double n, double, double alpha, double beta, double) {
       return std::log2(p) * (alpha + n * beta);
     }},
    {Collective::reduce, "binomial", false,
     [](double p, double n, double, double alpha, double beta, double gamma) {
       return std::log2(p) * (alpha + n * (beta + gamma));
     }},
    {Collective::allreduce, "binomial", false,
     [](double p, double n, double, double alpha, double beta, double gamma) {
       return std::log2(p) * (2 * alpha + n * (2 * beta + gamma));
     }},
    {Collective::broadcast, "scatter_allgather", false,
     [](double p, double n, double, double alpha, double beta, double) {
       return (std::log2(p) + p - 1) * alpha + 2 * (p - 1) / p * n * beta;
     }},
    {Collective::reduce, "scatter_gather", false,
     [](double p, double n, double, double alpha, double beta, double gamma) {
       return 2 * std::log2(p) * alpha + (p - 1) / p * n * (2 * beta + gamma);
     }},
    {Collective::allreduce, "rabenseifner", false,
     [](double p, double n, double, double alpha, double beta, double gamma) {
       return 2 * std::log2(p) * alpha + (p - 1) / p * n * (2 * beta + gamma);
     }},
};

TEST_CASE("linear pipeline: the document's table of costs holds within 2 %") {
  const std::size_t bytes = 16u << 20;
  for (const Row& row : kTable)
    for (int p : {2, 4, 8}) {
      if (row.pipelined && row.collective == Collective::allreduce && p == 2) continue;
      const int segments = row.pipelined ? int(bytes / kBlock) : 1;
      const double formula = row.seconds(p, double(bytes), double(kBlock), kRates.latency_s,
                                         1 / kRates.copy_bytes_per_s, 0);
      const double emulated =
          emulated_s(row.collective, row.algorithm, p, bytes, segments, kRates);
      const double simulated = simulated_s(row.collective, row.algorithm, p, bytes, segments);
      for (double took : {emulated, simulated})
        CHECK_MESSAGE(std::abs(took / formula - 1) <= 0.02,
                      name_of(row.collective) << '/' << row.algorithm << " on " << p << ": "
                                              << took / formula << " of the formula");
    }
}

// The formulas hide no sum behind messages; a pipeline does.
TEST_CASE("linear pipeline: with sums that cost, the document's table is what it takes at most") {
  const std::size_t bytes = 16u << 20;
  struct Speed {
    double bytes_per_s;
    const char* words;
  };
  for (const Speed& sums : {Speed{4e10, "40"}, Speed{1e10, "10"}, Speed{5e9, "5"}}) {
    device::Rates rates = kRates;
    rates.combine_bytes_per_s = sums.bytes_per_s;
    for (const Row& row : kTable)
      for (int p : {2, 4, 8}) {
        if (row.pipelined && row.collective == Collective::allreduce && p == 2) continue;
        const int segments = row.pipelined ? int(bytes / kBlock) : 1;
        const double formula =
            row.seconds(p, double(bytes), double(kBlock), rates.latency_s,
                        1 / rates.copy_bytes_per_s, 1 / sums.bytes_per_s);
        const double emulated =
            emulated_s(row.collective, row.algorithm, p, bytes, segments, rates);
        const double simulated =
            simulated_s(row.collective, row.algorithm, p, bytes, segments, sums.words);
        for (double took : {emulated, simulated}) {
          CAPTURE(sums.words);
          CHECK_MESSAGE(took <= 1.001 * formula,
                        name_of(row.collective) << '/' << row.algorithm << " on " << p << ": "
                                                << took / formula << " of the formula");
          if (!row.pipelined || row.collective == Collective::broadcast) continue;
          const double longer = std::max(1 / rates.copy_bytes_per_s, 1 / sums.bytes_per_s);
          const double least = double(bytes) * longer;
          CHECK(took >= least);   // no sum is left out
        }
      }
  }
}

}  // namespace
}  // namespace paceline
