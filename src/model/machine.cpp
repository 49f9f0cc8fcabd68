#include "model/machine.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <optional>

#include "base/error.hpp"
#include "base/nearest.hpp"

namespace paceline {
namespace {

constexpr double kMicro = 1e-6, kGbit = 1e9 / 8, kGbyte = 1e9, kKib = 1024;

double per_byte(double rate) { return rate > 0 ? 1 / rate : 0; }

double rate_of(double s_per_byte, double unit) {
  return s_per_byte > 0 ? 1 / s_per_byte / unit : 0;
}

struct Setting {
  std::string_view key;
  void (*set)(Machine&, double);
  double (*get)(const Machine&);
};

constexpr std::array<Setting, 15> kSettings{{
    {"alpha_us", [](Machine& m, double v) { m.across.alpha_s = v * kMicro; },
     [](const Machine& m) { return m.across.alpha_s / kMicro; }},
    {"latency_us", [](Machine& m, double v) { m.across.latency_s = v * kMicro; },
     [](const Machine& m) { return m.across.latency_s / kMicro; }},
    {"gbit_per_s", [](Machine& m, double v) { m.across.beta_s_per_byte = per_byte(v * kGbit); },
     [](const Machine& m) { return rate_of(m.across.beta_s_per_byte, kGbit); }},
    {"short_kib", [](Machine& m, double v) { m.across.short_bytes = v * kKib; },
     [](const Machine& m) { return m.across.short_bytes / kKib; }},
    {"lone_gbit_per_s",
     [](Machine& m, double v) { m.across.lone_beta_s_per_byte = per_byte(v * kGbit); },
     [](const Machine& m) { return rate_of(m.across.lone_beta_s_per_byte, kGbit); }},
    {"long_gbit_per_s",
     [](Machine& m, double v) { m.across.long_beta_s_per_byte = per_byte(v * kGbit); },
     [](const Machine& m) { return rate_of(m.across.long_beta_s_per_byte, kGbit); }},
    {"long_kib", [](Machine& m, double v) { m.across.long_bytes = v * kKib; },
     [](const Machine& m) { return m.across.long_bytes / kKib; }},
    {"alpha_loaded_us", [](Machine& m, double v) { m.across.alpha_loaded_s = v * kMicro; },
     [](const Machine& m) { return m.across.alpha_loaded_s / kMicro; }},
    {"contention_percent", [](Machine& m, double v) { m.across.contention = v / 100; },
     [](const Machine& m) { return m.across.contention * 100; }},
    {"inside_alpha_us", [](Machine& m, double v) { m.inside.alpha_s = v * kMicro; },
     [](const Machine& m) { return m.inside.alpha_s / kMicro; }},
    {"inside_gbit_per_s",
     [](Machine& m, double v) { m.inside.beta_s_per_byte = per_byte(v * kGbit); },
     [](const Machine& m) { return rate_of(m.inside.beta_s_per_byte, kGbit); }},
    {"reduce_gbyte_per_s", [](Machine& m, double v) { m.gamma_s_per_byte = per_byte(v * kGbyte); },
     [](const Machine& m) { return rate_of(m.gamma_s_per_byte, kGbyte); }},
    {"copy_gbyte_per_s", [](Machine& m, double v) { m.copy_s_per_byte = per_byte(v * kGbyte); },
     [](const Machine& m) { return rate_of(m.copy_s_per_byte, kGbyte); }},
    {"task_us", [](Machine& m, double v) { m.task_s = v * kMicro; },
     [](const Machine& m) { return m.task_s / kMicro; }},
    {"ranks_per_node", [](Machine& m, double v) { m.ranks_per_node = static_cast<int>(v); },
     [](const Machine& m) { return double(m.ranks_per_node); }},
}};

void apply(Machine& machine, std::string_view text) {
  const std::size_t equals = text.find('=');
  const std::string_view key = text.substr(0, equals), value = text.substr(equals + 1);
  double number = 0;
  const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), number);
  const bool whole = key != "ranks_per_node" || (number >= 1 && number == std::floor(number) &&
                                                 number <= 1e6);
  if (error != std::errc() || end != value.data() + value.size() || !std::isfinite(number) ||
      number < 0 || !whole)
    fail(Fault::usage, "machine: '", text, "' is no setting; write key=number, at least ",
         key == "ranks_per_node" ? 1 : 0, ".");
  std::string known;
  for (const Setting& setting : kSettings) {
    if (setting.key == key) return setting.set(machine, number);
    known += str(known.empty() ? "" : ", ", setting.key);
  }
  fail(Fault::usage, "machine: setting '", key, "' is not known; use one of: ", known, ".",
       did_you_mean(key, known));
}

// Parses "3e-5,4e-8,1e-10": alpha in seconds, beta and gamma in seconds per byte; nothing if it is
// no numbers. Fewer than three numbers are an error.
std::optional<Machine> from_numbers(std::string_view text) {
  double numbers[3] = {};
  std::size_t count = 0;
  for (std::size_t from = 0; from <= text.size(); ++count) {
    const std::size_t comma = std::min(text.find(',', from), text.size());
    double number = 0;
    const auto [end, error] = std::from_chars(text.data() + from, text.data() + comma, number);
    if (error != std::errc() || end != text.data() + comma) return {};
    if (count < 3) numbers[count] = number;
    if (!std::isfinite(number) || number < 0) count = 3;
    from = comma + 1;
  }
  if (count != 3)
    fail(Fault::usage, "machine: '", text, "' is not three numbers from 0 on; write alpha (s), ",
         "beta (s per byte), gamma (s per byte), such as 3e-5,4e-8,1e-10.");
  Machine machine;
  machine.across.alpha_s = numbers[0];
  machine.across.beta_s_per_byte = numbers[1];
  machine.gamma_s_per_byte = numbers[2];
  return machine;
}

Machine named(std::string_view name) {
  std::string known;
  for (const Machine& machine : known_machines()) {
    if (machine.name == name) return machine;
    known += str(known.empty() ? "" : ", ", machine.name);
  }
  fail(Fault::usage, "machine '", name, "' is not known; use one of: ", known,
       "; or settings such as alpha_us=5,gbit_per_s=10.", did_you_mean(name, known));
}

std::string text(const Link& link) {
  const double rate = link.beta_s_per_byte > 0 ? 1 / link.beta_s_per_byte / kGbit : 0;
  std::string more = link.latency_s > 0 ? str(link.latency_s / kMicro, " in flight") : "";
  if (link.contention > 0)
    more += str(more.empty() ? "" : "; ", std::max(link.alpha_s, link.alpha_loaded_s) / kMicro,
                " while all send, ", 100 * link.contention, " % of it for that");
  return str("alpha ", link.alpha_s / kMicro, " us", more.empty() ? "" : " (" + more + ")", ", ",
             rate > 0 ? str(rate, " Gbit/s") : std::string("no limit of bandwidth"),
             link.long_beta_s_per_byte > 0 ? str(" (", rate_of(link.long_beta_s_per_byte, kGbit),
                                        " in messages of more than ",
                                        human_bytes(link.long_from()), ")") : "");
}

}  // namespace

// Round numbers for typical hardware, for comparison; not measurements of a machine.
const std::vector<Machine>& known_machines() {
  static const std::vector<Machine> machines = [] {
    const Link memory{0.5 * kMicro, per_byte(80 * kGbit)};
    const double reduce = per_byte(10 * kGbyte);
    return std::vector<Machine>{
        {"ethernet-10g", 1, memory, {20 * kMicro, per_byte(10 * kGbit)}, reduce, 0},
        {"edr-100g", 1, memory, {1.5 * kMicro, per_byte(100 * kGbit)}, reduce, 0},
        {"lab-200mbit", 1, memory, {30 * kMicro, per_byte(0.2 * kGbit)}, reduce, 0},
        // One node: no message ever goes across.
        {"shm", 1'000'000, memory, memory, reduce, reduce},
    };
  }();
  return machines;
}

Machine machine_from(std::string_view text) {
  if (auto machine = from_numbers(text)) return *machine;
  Machine machine;
  machine.name = text;
  for (std::size_t from = 0; from <= text.size();) {
    const std::size_t comma = std::min(text.find(',', from), text.size());
    const std::string_view part = text.substr(from, comma - from);
    if (from == 0 && part.find('=') == part.npos) machine = named(part);
    else apply(machine, part);
    from = comma + 1;
  }
  if (machine.across.latency_s > machine.across.alpha_s)
    fail(Fault::usage, "machine: latency_us is more than alpha_us, of which it is a part.");
  if (machine.across.contention > 1)
    fail(Fault::usage, "machine: contention_percent is more than 100, all of alpha.");
  return machine;
}

std::string describe(const Machine& m) {
  const bool one_node = m.ranks_per_node >= 1'000'000;
  std::string out = str(m.name.empty() || m.name.find('=') != m.name.npos ? "" : m.name + ": ",
                        text(one_node ? m.inside : m.across));
  if (!one_node && m.ranks_per_node > 1)
    out += str("; inside nodes of ", m.ranks_per_node, " ranks ", text(m.inside));
  if (m.gamma_s_per_byte > 0) out += str(", reduce ", 1 / m.gamma_s_per_byte / kGbyte, " GB/s");
  if (m.copy_s_per_byte > 0) out += str(", copy ", 1 / m.copy_s_per_byte / kGbyte, " GB/s");
  return out;
}

std::string settings_of(const Machine& machine) {
  std::string out;
  for (const Setting& setting : kSettings) {
    char number[32];
    const auto [end, error] = std::to_chars(std::begin(number), std::end(number),
                                            setting.get(machine));
    out += str(out.empty() ? "" : ",", setting.key, "=",
               std::string_view(number, std::size_t(end - number)));
  }
  return out;
}

double bound_s(const Machine& machine, Collective collective, int ranks, double bytes) {
  // Seen from outside, a node is one big rank: the bytes that must cross its border bound the time.
  // If all ranks share a node, the border is each rank's.
  const bool one_node = machine.ranks_per_node >= ranks;
  const double p = ranks, r = one_node ? 1 : machine.ranks_per_node, nodes = std::ceil(p / r);
  const double whole = bytes * (one_node ? machine.inside : machine.across).beta_s_per_byte;
  if (ranks == 1) return 0;
  switch (collective) {
    case Collective::allreduce: return 2 * (nodes - 1) / nodes * whole;
    case Collective::broadcast:
    case Collective::reduce: return whole;
    case Collective::barrier: return 0;
    case Collective::alltoall: return r * (p - r) / p * whole;   // every rank of a full node
    default: return (p - r) / p * whole;                         // lacked or sent by a full node
  }
}

}  // namespace paceline
