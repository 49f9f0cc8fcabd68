#include "base/options.hpp"

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <iterator>
#include <limits>
#include <utility>

#include "base/error.hpp"
#include "base/nearest.hpp"

extern "C" char** environ;   // POSIX has no header for it

namespace paceline {
namespace {

constexpr std::string_view kPrefix = "PACELINE_";
constexpr std::int64_t kDay = 24 * 60 * 60 * 1000;   // 24 days of ms still fit into an int
constexpr std::int64_t kMiB = 1 << 20;
constexpr std::int64_t kLongest = 4095;   // of a text: as long as a path may be

// Those whose algorithm can be named; a misspelt one must not go unseen.
constexpr std::string_view kCollectiveNames =
    "allreduce|broadcast|reduce|reduce_scatter|allgather|alltoall|gather|scatter";

// Those that the drop-in library can serve, by Paceline's names.
constexpr std::string_view kServedNames =
    "allreduce|broadcast|reduce|reduce_scatter|allgather|alltoall|gather|scatter|barrier";

// The tests' own switches; they are no options of the library.
constexpr std::string_view kForTests[] = {"PACELINE_SHORT", "PACELINE_LONG"};

using enum OptionKind;
using enum SetBy;

// In the order of the enumeration.
constexpr OptionRow kRows[] = {
    {"timeout_ms", integer, "1800000", 0, 24 * kDay, "", everybody,
     "A call that has waited this long (ms) for a peer fails on every rank; 0 = no limit. Lower "
     "it so that a hanging job ends sooner."},
    {"start_timeout_ms", integer, "300000", 1, kDay, "", everybody,
     "A start-up that has waited this long (ms) for the other ranks fails. Raise it if ranks "
     "start minutes apart."},
    {"warn_ms", integer, "30000", 0, kDay, "", everybody,
     "A call that has waited this long (ms) names the missing ranks on stderr, once per call; 0 = "
     "never."},
    {"stopped_ms", integer, "5000", 0, kDay, "", everybody,
     "A rank of the same node that a signal has stopped, or that is frozen, for this long (ms) "
     "counts as lost; 0 = never. Set 0 for jobs that are suspended."},
    {"progress", choice, "thread", 0, 0, "caller|thread", everybody,
     "thread = a thread of Paceline's own moves data while the program computes; caller = data "
     "moves only inside wait() and test() of the program."},
    {"shm_dir", path, "/dev/shm", 1, kLongest, "", everybody,
     "Folder in memory (tmpfs) for the files that the ranks of a node share. Change it if "
     "/dev/shm is small or missing."},
    {"shm_bytes", bytes, "32MiB", 1 * kMiB, (1 << 20) * kMiB, "", everybody,
     "Memory for the messages of all ranks of a node together. Lower it if shm_dir is small. "
     "Equal on all ranks of a node."},
    {"stage_bytes", bytes, "8MiB", 1 * kMiB, (1 << 10) * kMiB, "", everybody,
     "Memory for the staging buffers of one communicator, of all ranks of a node together; twice "
     "as much if its calls have different priorities. Lower it if shm_dir is small. Equal on all "
     "ranks of a node."},
    {"huge_pages", choice, "off", 0, 0, "off|on", everybody,
     "on = ask the system for huge pages in shared arrays of 2 MiB and more; `paceline doctor` "
     "shows if it grants them. Equal on all ranks of a node."},
    {"single_copy", choice, "auto", 0, 0, "auto|off", everybody,
     "auto = the system copies straight from one rank's memory into another's where it can; off = "
     "it never does. off on one rank is off for all."},
    {"algorithm", pairs, "", 0, kLongest, kCollectiveNames, everybody,
     "Algorithms by collective in place of Paceline's choice: allreduce=ring,broadcast=chain. Set "
     "it to compare algorithms. Equal on all ranks."},
    {"segments", pieces, "0", 0, 4096, "", everybody,
     "Number of pipeline segments of every message, or with a unit the size of one: 4MiB; 0 = "
     "chosen by the message's size. Equal on all ranks."},
    {"window", integer, "0", 0, 1024, "", everybody,
     "Number of segments under way at a time; 0 = chosen by the message's size. Equal on all "
     "ranks."},
    {"numbers", choice, "stable", 0, 0, "fast|stable|canonical", everybody,
     "Reproducibility of sums. fast: the bits may depend on the order in which ranks arrive. "
     "stable: the same settings give the same bits. canonical: the bits depend on the ranks' "
     "values alone. Equal on all ranks."},
    {"transport", choice, "auto", 0, 0, "auto|shm|mpi", everybody,
     "auto = shared memory inside a node, MPI between nodes; shm = shared memory alone; mpi = MPI "
     "inside nodes, too. Equal on all ranks."},
    {"mpi", text, "", 0, kLongest, "", everybody,
     "Path of the MPI library to load; empty = Paceline looks for one, and `paceline doctor` "
     "shows which it finds."},
    {"node", text, "", 0, kLongest, "", everybody,
     "Name of this rank's node. Ranks with different names count as ranks of different nodes, "
     "even if they share memory: so one machine can stand for several."},
    {"machine", text, "auto", 1, kLongest, "", everybody,
     "Costs of messages between nodes, from which algorithms are chosen. auto = measured at the "
     "first start and kept; probe = measured at every start; usual = assumed, not measured; or a "
     "model as `paceline explain --machine` takes it; or alpha,beta,gamma in s, s/byte and "
     "s/byte. Equal on all ranks."},
    {"machine_dir", text, "", 0, kLongest, "", everybody,
     "Folder in which PACELINE_MACHINE=auto keeps its measurements; empty = the folder paceline "
     "in XDG_CACHE_HOME or ~/.cache."},
    {"cuda_kernels", text, "", 0, kLongest, "", everybody,
     "File of reduce kernels for GPUs, which nvcc -fatbin makes; empty = the kernels of the "
     "build."},
    {"predict", text, "nodes", 1, kLongest, "", everybody,
     "Prediction of late ranks in allreduces. off = none; nodes = learned between nodes; auto = "
     "learned inside nodes, too; static:3,5 = ranks 3 and 5 are always late, 5 the latest. Equal "
     "on all ranks."},
    {"record_dir", text, "", 0, kLongest, "", everybody,
     "Folder into which a rank writes its flight record, its last calls, when a call fails; "
     "`paceline doctor --record` compares them; empty = nothing is written."},
    {"record_signal", integer, "0", 0, 64, "", everybody,
     "Number of a signal, such as 12, on which a process writes its flight record into "
     "record_dir; 0 = none. Set it for runs that hang."},
    {"preload", names, "all", 1, kLongest, kServedNames, everybody,
     "Collectives that the drop-in library serves in MPI programs; the host MPI serves all "
     "others."},
    {"preload_summary", choice, "off", 0, 0, "off|on", everybody,
     "on = rank 0 prints a summary of its collectives at MPI_Finalize: algorithms, times, and the "
     "reasons why the host MPI served some of them."},
    {"profile", text, "", 0, kLongest, "", everybody,
     "Folder in which each rank records when it enters and leaves collectives, for `paceline "
     "profile --read`; empty = nothing is recorded."},
    {"profile_bytes", bytes, "16MiB", 4096, (1 << 20) * kMiB, "", everybody,
     "Memory for the profile of one rank, 56 bytes for each call; calls beyond it are counted but "
     "not recorded."},
    {"replace", choice, "off", 0, 0, "off|gloo|mpi", everybody,
     "Backend of torch.distributed whose place Paceline takes for CPU tensors, in scripts that "
     "name that backend; off = none."},
    {"rank", integer, "0", 0, 65535, "", launcher,
     "Number of this process among the ranks, from 0."},
    {"ranks", integer, "1", 1, 65536, "", launcher,
     "Number of ranks; equal on all of them."},
    {"store", text, "", 0, kLongest, "", launcher,
     "Folder that serves as key-value store, in which the ranks meet at start-up; empty = this "
     "process is alone."},
    {"secret", text, "", 0, 256, "", launcher,
     "Secret that the ranks of this run share; they refuse entries of the store that were sealed "
     "without it."},
};
static_assert(std::size(kRows) == kOptions);
static_assert(kRows[static_cast<int>(Option::secret)].name == "secret");

std::optional<std::int64_t> parse_integer(std::string_view text) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return {};
  return value;
}

// Calls visit(part) for the parts of `text` between separators; an empty text has no parts.
template <class Visit>
void split(std::string_view text, char separator, Visit&& visit) {
  if (text.empty()) return;
  while (true) {
    const std::size_t end = text.find(separator);
    visit(text.substr(0, end));
    if (end == std::string_view::npos) return;
    text.remove_prefix(end + 1);
  }
}

std::pair<std::string_view, std::string_view> halves(std::string_view pair) {
  const std::size_t middle = std::min(pair.find('='), pair.size());
  return {pair.substr(0, middle), pair.substr(std::min(middle + 1, pair.size()))};
}

bool is_word(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_';
  });
}

bool is_one_of(std::string_view words, std::string_view text) {
  bool found = false;
  split(words, '|', [&](std::string_view word) { found = found || word == text; });
  return found;
}

bool are_pairs(std::string_view words, std::string_view text) {
  std::vector<std::string_view> keys;
  bool good = true;
  split(text, ',', [&](std::string_view pair) {
    const auto [key, word] = halves(pair);
    good = good && is_one_of(words, key) && is_word(word) &&
           !std::count(keys.begin(), keys.end(), key);
    keys.push_back(key);
  });
  return good;
}

bool are_names(std::string_view words, std::string_view text) {
  if (text == "all" || text == "none") return true;
  std::vector<std::string_view> seen;
  bool good = !text.empty();
  split(text, ',', [&](std::string_view name) {
    good = good && is_one_of(words, name) && !std::count(seen.begin(), seen.end(), name);
    seen.push_back(name);
  });
  return good;
}

// Pieces have a unit where it is their size that is asked for.
std::optional<std::string> parse_pieces(const OptionRow& row, std::string_view text) {
  if (const auto number = parse_integer(text))
    return *number < row.least || *number > row.most ? std::nullopt
                                                     : std::optional(std::to_string(*number));
  const auto bytes = parse_bytes(text);
  if (!bytes || *bytes < 1) return {};
  return str(*bytes, "B");
}

// Returns the value in its one spelling; nothing if the row does not allow it.
std::optional<std::string> parse(const OptionRow& row, std::string_view text) {
  const bool is_number = row.kind == integer || row.kind == bytes;
  if (is_number) {
    const auto value = row.kind == bytes ? parse_bytes(text) : parse_integer(text);
    if (!value || *value < row.least || *value > row.most) return {};
    return std::to_string(*value);
  }
  if (row.kind == pieces) return parse_pieces(row, text);
  bool good = static_cast<std::int64_t>(text.size()) >= row.least &&
              static_cast<std::int64_t>(text.size()) <= row.most;
  if (row.kind == choice) good = is_one_of(row.words, text);
  if (row.kind == path) good = good && text.starts_with('/');
  if (row.kind == names) good = are_names(row.words, text);
  if (row.kind == pairs) good = good && are_pairs(row.words, text);
  if (!good) return {};
  return std::string(text);
}

}  // namespace

std::span<const OptionRow> option_rows() { return kRows; }

const OptionRow& row_of(Option option) { return kRows[static_cast<std::size_t>(option)]; }

const OptionRow& find_option(std::string_view name) {
  std::string known;
  for (const OptionRow& row : kRows) {
    if (row.name == name) return row;
    known += str(known.empty() ? "" : ", ", row.name);
  }
  fail(Fault::usage, "option '", name, "' is not known; use one of: ", known, ".",
       did_you_mean(name, known));
}

std::string variable_of(const OptionRow& row) {
  std::string name = str(kPrefix, row.name);
  for (char& c : name)
    if (c >= 'a' && c <= 'z') c = static_cast<char>(c - 'a' + 'A');
  return name;
}

std::string_view name_of(OptionKind kind) {
  static constexpr std::string_view kNames[] = {"integer", "bytes", "pieces", "choice",
                                                "path",    "text",  "names",  "pairs"};
  return kNames[static_cast<std::size_t>(kind)];
}

std::string_view name_of(SetBy set_by) { return set_by == everybody ? "everybody" : "launcher"; }

std::string range_of(const OptionRow& row) {
  switch (row.kind) {
    case integer: return str("a whole number from ", row.least, " to ", row.most);
    case bytes:
      return str("bytes from ", human_bytes(double(row.least)), " to ",
                 human_bytes(double(row.most)), ", such as ", row.fallback);
    case pieces:
      return str("a whole number from ", row.least, " to ", row.most,
                 ", or the size of one with its unit, such as 4MiB");
    case choice: {
      std::string words;
      split(row.words, '|',
            [&](std::string_view word) { words += str(words.empty() ? "" : " or ", word); });
      return words;
    }
    case path: return str("a folder that begins with '/', of at most ", row.most, " characters");
    case text: return str("at most ", row.most, " characters");
    case names: return "all, none, or a list like allreduce,barrier, each name once";
    case pairs: return "a list like allreduce=ring,broadcast=chain, each collective once";
  }
  return {};
}

std::string checked(const OptionRow& row, std::string_view text, std::string_view where) {
  if (auto value = parse(row, text)) return *std::move(value);
  // A value can be anything; an error message must stay readable.
  constexpr std::size_t kShown = 60;
  const std::string shown = str(text.substr(0, kShown), text.size() > kShown ? "..." : "");
  fail(Fault::usage, where, " is '", shown, "'; it must be ", range_of(row), ".");
}

OptionValue value_of(const OptionRow& row) {
  const std::string variable = variable_of(row);
  const char* set = std::getenv(variable.c_str());
  const bool is_default = set == nullptr || *set == '\0';
  return {checked(row, is_default ? row.fallback : std::string_view(set), variable), is_default};
}

std::int64_t number_of(Option option) {
  const OptionRow& row = row_of(option);
  require(row.kind == integer || row.kind == bytes, "option ", row.name, " is no number");
  return parse_integer(value_of(row).text).value();
}

Pieces pieces_from(std::string_view checked) {
  if (const auto number = parse_integer(checked)) return {.number = static_cast<int>(*number)};
  return {.bytes = static_cast<std::size_t>(parse_bytes(checked).value())};
}

std::string text_of(Option option) { return value_of(row_of(option)).text; }

std::string word_for(Option option, std::string_view key) {
  const std::string all = text_of(option);
  std::string found;
  split(all, ',', [&](std::string_view pair) {
    const auto [name, word] = halves(pair);
    if (name == key) found = word;
  });
  return found;
}

bool is_named(Option option, std::string_view name) {
  const std::string all = text_of(option);
  if (all == "all" || all == "none") return all == "all";
  bool found = false;
  split(all, ',', [&](std::string_view one) { found = found || one == name; });
  return found;
}

std::vector<std::string> unknown_variables() {
  std::vector<std::string> unknown;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    const std::string_view name = halves(*entry).first;
    if (!name.starts_with(kPrefix)) continue;
    const bool known = std::any_of(std::begin(kRows), std::end(kRows),
                                   [&](const OptionRow& row) { return variable_of(row) == name; });
    const bool for_tests = std::count(std::begin(kForTests), std::end(kForTests), name) > 0;
    if (!known && !for_tests) unknown.emplace_back(name);
  }
  std::sort(unknown.begin(), unknown.end());
  return unknown;
}

std::optional<std::int64_t> parse_bytes(std::string_view text) {
  static constexpr std::pair<std::string_view, std::int64_t> kUnits[] = {
      {"B", 1},
      {"KiB", 1 << 10}, {"MiB", 1 << 20}, {"GiB", 1 << 30}, {"TiB", std::int64_t{1} << 40},
      {"kB", 1000}, {"KB", 1000}, {"MB", 1000000}, {"GB", 1000000000}, {"TB", 1000000000000},
  };
  const std::size_t digits = std::min(text.find_first_not_of("0123456789"), text.size());
  const auto number = parse_integer(text.substr(0, digits));
  std::string_view unit = text.substr(digits);
  if (!number) return {};
  if (unit.empty()) return number;
  if (unit.starts_with(' ')) unit.remove_prefix(1);
  const auto found = std::find_if(std::begin(kUnits), std::end(kUnits),
                                  [&](const auto& row) { return row.first == unit; });
  if (found == std::end(kUnits)) return {};
  const std::int64_t factor = found->second;
  if (*number > std::numeric_limits<std::int64_t>::max() / factor) return {};
  return *number * factor;
}

}  // namespace paceline
