// Options: everything that can be set from outside, one row each.
//
// The rows are the only place where an option is written down. The environment variables, the
// Python keywords, the command-line flags, `paceline options` and docs/options.md all come from
// them, and nothing else in the library reads the environment, but for who has started the process
// (base/options_launcher.hpp).
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace paceline {

// In the order of the rows.
enum class Option {
  timeout_ms, start_timeout_ms, warn_ms, stopped_ms, progress, shm_dir, shm_bytes, stage_bytes,
  huge_pages, single_copy, algorithm, segments, window, numbers, transport, mpi, node, machine,
  machine_dir, cuda_kernels, predict, record_dir, record_signal, preload, preload_summary, profile,
  profile_bytes, replace, rank, ranks, store, secret
};
inline constexpr int kOptions = 32;

enum class OptionKind {
  integer,   // a whole number
  bytes,     // likewise, or with a unit: "32MiB"
  choice,    // one of a few words
  path,      // a folder, from the root on
  text,      // anything
  names,     // "all", "none", or some of the words: "allreduce,barrier"; each once
  pairs      // "key=word,key=word"; each key once
};

// Who is meant to set an option: everybody (by variable, keyword or flag), or whatever starts the
// ranks, such as `paceline run`.
enum class SetBy { everybody, launcher };

struct OptionRow {
  std::string_view name;
  OptionKind kind;
  std::string_view fallback;   // the default, as one would write it
  std::int64_t least, most;    // of the number; where it is no number, of the length of the text
  std::string_view words;      // of a choice: "caller|thread"; of pairs: the keys; of names: all
  SetBy set_by;
  std::string_view sentence;
};

std::span<const OptionRow> option_rows();
const OptionRow& row_of(Option option);
const OptionRow& find_option(std::string_view name);   // throws a usage error that lists the names

std::string variable_of(const OptionRow& row);   // "PACELINE_TIMEOUT_MS"
std::string range_of(const OptionRow& row);      // "a whole number from 1 to 86400000"
std::string_view name_of(OptionKind kind);
std::string_view name_of(SetBy set_by);

// A value that is in force, in its one spelling (bytes as a plain number), and where it comes from:
// the environment variable, or the default. A variable that is set to nothing counts as not set.
struct OptionValue {
  std::string text;
  bool is_default = true;
};

// Throws a usage error that names the variable, its value and the range.
OptionValue value_of(const OptionRow& row);
std::int64_t number_of(Option option);      // integer and bytes rows
std::string text_of(Option option);         // all rows
// What a row of pairs says about `key`; empty where it says nothing.
std::string word_for(Option option, std::string_view key);
// Whether a row of names has `name` in it.
bool is_named(Option option, std::string_view name);

// The same checks for a value from elsewhere; `where` names it in the error: "--timeout-ms".
// Returns its one spelling.
std::string checked(const OptionRow& row, std::string_view text, std::string_view where);

// Variables that begin with PACELINE_ and that no row owns: most often misspelt ones.
std::vector<std::string> unknown_variables();

// "32MiB", "32 MiB", "512B" or a plain number; nothing where it is none of these or too large.
std::optional<std::int64_t> parse_bytes(std::string_view text);

}  // namespace paceline
