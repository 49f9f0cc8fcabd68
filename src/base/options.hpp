// Options: everything that can be set from outside, one row each.
//
// The rows are the only definition of the options. The environment variables, the Python keywords,
// the command-line flags, `paceline options` and docs/options.md all come from them. Apart from
// base/options_launcher.hpp, which finds the launcher, nothing else in the library reads the
// environment.
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
  bytes,     // a whole number, also with a unit: "32MiB"
  pieces,    // how many, or with a unit how long each may be: "8", "4MiB"
  choice,    // one of a few words
  path,      // an absolute path of a folder
  text,      // anything
  names,     // "all", "none", or some of the words: "allreduce,barrier"; each once
  pairs      // "key=word,key=word"; each key once
};

// Intended setter of an option: users (by variable, keyword or flag), or the launcher, such as
// `paceline run`.
enum class SetBy { everybody, launcher };

struct OptionRow {
  std::string_view name;
  OptionKind kind;
  std::string_view fallback;   // the default, as one would write it
  std::int64_t least, most;    // of the number, or of the text's length
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

// The value in force, in its one spelling (bytes as a plain number), and its origin: the
// environment variable or the default. An empty variable counts as not set.
struct OptionValue {
  std::string text;
  bool is_default = true;
};

// Throws a usage error that names the variable, its value and the range.
OptionValue value_of(const OptionRow& row);
std::int64_t number_of(Option option);      // integer and bytes rows
std::string text_of(Option option);         // all rows
// Returns the word for `key` in a row of pairs; empty if there is none.
std::string word_for(Option option, std::string_view key);
// True if a row of names has `name` in it.
bool is_named(Option option, std::string_view name);

// Checks a value from elsewhere in the same way and returns its one spelling. `where` names it in
// the error: "--timeout-ms".
std::string checked(const OptionRow& row, std::string_view text, std::string_view where);

// Number of pieces, or the most bytes of one; the other is 0. Both are 0 if neither is asked for.
struct Pieces {
  int number = 0;
  std::size_t bytes = 0;
};
Pieces pieces_from(std::string_view checked);   // the one spelling of a row of pieces

// Returns the variables that begin with PACELINE_ but match no row, most often misspelt ones.
std::vector<std::string> unknown_variables();

// Parses "32MiB", "32 MiB", "32MB", "512B" or a plain number; nothing if it is none, or too large.
std::optional<std::int64_t> parse_bytes(std::string_view text);

}  // namespace paceline
