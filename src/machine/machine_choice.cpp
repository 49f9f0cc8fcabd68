#include "machine/machine_choice.hpp"

#include <algorithm>
#include <cstdio>
#include <ctime>
#include <mutex>

#include "base/error.hpp"
#include "base/hash.hpp"
#include "base/random.hpp"
#include "machine/hardware.hpp"
#include "machine/probe.hpp"
#include "runtime/progress/clock.hpp"

namespace paceline {
namespace {

constexpr std::string_view kAuto = "auto";
constexpr std::size_t kMostKept = 32;

// Figures that worlds of this process have measured or sampled: a program with many communicators
// of MPI makes many worlds of one layout, and its folder may be read-only.
struct Kept {
  std::mutex mutex;
  std::vector<MeasuredMachine> machines;

  static Kept& get() {
    static Kept* const one = new Kept;
    return *one;
  }
};

bool is_same(const MeasuredMachine& one, const MeasuredMachine& other) {
  return one.layout == other.layout && one.hardware == other.hardware;
}

void remember(const MeasuredMachine& measured) {
  Kept& kept = Kept::get();
  const std::lock_guard lock(kept.mutex);
  std::erase_if(kept.machines, [&](const auto& one) { return is_same(one, measured); });
  kept.machines.insert(kept.machines.begin(), measured);
  if (kept.machines.size() > kMostKept) kept.machines.pop_back();
}

// Returns a hash of the node of every rank, and of whether ranks of a node use MPI as well.
std::string layout_of(const WorldConfig& config) {
  std::string text = config.only_mpi ? "mpi" : "shm";
  for (const int node : config.nodes) text += str(' ', node);
  return hex(hash_of(text));
}

std::string one_line(std::string text) {
  std::replace(text.begin(), text.end(), '\n', ' ');
  return text;
}

std::string line(std::string_view& text) {
  const std::size_t end = std::min(text.find('\n'), text.size());
  std::string out(text.substr(0, end));
  text.remove_prefix(std::min(end + 1, text.size()));
  return out;
}

// Returns rank 0's part of the note: its file, and the entries with this layout.
std::string what_is_known(const WorldConfig& config) {
  const std::string layout = layout_of(config);
  const MachineFile file = read_machine_file(config.machine_dir);
  std::string entries;
  {
    Kept& kept = Kept::get();
    const std::lock_guard lock(kept.mutex);
    for (const MeasuredMachine& one : kept.machines)
      if (one.layout == layout) entries += str("sampled ", line_of(one), '\n');
  }
  for (const MeasuredMachine& one : file.machines)
    if (one.layout == layout) entries += str("read ", line_of(one), '\n');
  return str('\n', one_line(file.path), '\n', one_line(file.trouble), '\n',
             file.machines.empty() ? "none" : "some", '\n', entries);
}

std::string today() {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  gmtime_r(&now, &parts);
  char text[16];
  return {text, std::strftime(text, sizeof(text), "%Y-%m-%d", &parts)};
}

Assumed taken(const MeasuredMachine& found, const std::string& path) {
  Assumed out{machine_from(found.settings), {}};
  out.machine.name = "probed";
  out.why = str("measured on ", found.day, " between ", found.nodes, " nodes",
                path.empty() ? "" : ", kept in " + path);
  return out;
}

// Returns the reason for which this start measures.
std::string reason(const KnownMachine& known, bool disagrees) {
  if (disagrees)
    return str("a sample disagrees with the figures of ", known.found->day, " in ", known.path);
  if (!known.trouble.empty()) return known.trouble;
  if (known.other)
    return str(known.path, " has no figures for these processors, network, MPI and layout");
  return str("there are no figures in ", known.path, " yet");
}

// Measures, and writes the figures to the machine file.
Assumed measured(Communicator all, const WorldConfig& config, bool disagrees) {
  const KnownMachine& known = *config.known;
  const double begun_s = now_s();
  Assumed found = probed(all, config);
  MeasuredMachine entry{known.layout, known.hardware, all.size(), all.nodes(), today(), 0,
                        settings_of(found.machine)};
  const bool failed = found.machine.name != "probed";
  if (!failed) {
    entry.sample_s_per_byte = sample_links(all, config, found.machine.across.beta_s_per_byte);
    found = taken(entry, known.path);   // rounded as later starts will read it
    remember(entry);
  }
  if (all.rank() != 0) return found;
  const double took_s = now_s() - begun_s;
  std::string kept = "nothing is kept, since measuring failed";
  if (!failed) {
    const std::string trouble = keep_machine(config.machine_dir, entry);
    kept = trouble.empty() ? "kept for later starts in " + known.path
                           : str("not kept: ", trouble, ". Set PACELINE_MACHINE_DIR to a folder ",
                                 "of yours, or PACELINE_MACHINE to probe or usual");
  }
  std::fprintf(stderr, "paceline: start-up: measured the links between %d nodes in %.2f s, since "
               "%s; %s.\n", all.nodes(), took_s, reason(known, disagrees).c_str(), kept.c_str());
  return found;
}

}  // namespace

std::string machine_note(const WorldConfig& config, const std::string& mpi) {
  if (config.machine != kAuto) return {};
  const std::string own = hex(hash_of(str(describe_hardware(), "; ", mpi)));
  return config.rank == 0 ? own + what_is_known(config) : own;
}

std::shared_ptr<const KnownMachine> agree_on_machine(const std::vector<std::string>& notes,
                                                     const WorldConfig& config) {
  if (config.machine != kAuto || notes.empty() || notes[0].empty()) return nullptr;
  auto known = std::make_shared<KnownMachine>();
  known->layout = layout_of(config);
  std::string all;
  for (std::string_view note : notes) all += line(note) + ' ';
  known->hardware = hex(hash_of(all));
  std::string_view said = notes[0];
  line(said);
  known->path = line(said);
  known->trouble = line(said);
  known->other = line(said) == "some";
  while (!said.empty() && !known->found) {
    std::string_view entry = said.substr(0, said.find('\n'));
    known->sampled = entry.starts_with("sampled ");
    entry.remove_prefix(entry.find(' ') + 1);
    MeasuredMachine one = from_line(entry);
    if (one.layout == known->layout && one.hardware == known->hardware) known->found = one;
    line(said);
  }
  known->sampled = known->sampled && known->found;
  return known;
}

bool asks_links(const WorldConfig& config) {
  return (config.machine == "probe" || config.known) && first_ranks(config.nodes).size() > 1;
}

Assumed machine_between_nodes(Communicator all, const WorldConfig& config) {
  all.set_timeout(config.start_timeout_ms);
  if (config.machine == "probe") return probed(all, config);
  const KnownMachine& known = *config.known;
  bool agrees = known.sampled;
  if (known.found && !known.sampled) {
    const Machine machine = machine_from(known.found->settings);
    agrees = agrees_with(all, config, machine.across, known.found->sample_s_per_byte);
  }
  if (!agrees) return measured(all, config, known.found.has_value());
  if (!known.sampled) remember(*known.found);
  return taken(*known.found, known.path);
}

}  // namespace paceline
