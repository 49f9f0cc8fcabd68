// The machine file: figures that earlier starts of this user measured between nodes, one line for
// each fingerprint, the newest first.
//
// It is text, bounded and versioned. Its checksum at the end shows damage. A new file is written
// beside the old one and renamed, so that no reader sees half of it. If two jobs write at the same
// time, one line is lost and measured again later.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace paceline {

struct MeasuredMachine {
  std::string layout, hardware;   // 16 hexadecimal digits each: the fingerprint
  int ranks = 0, nodes = 0;
  std::string day;                // day of the measurement: "2026-11-23" (UTC)
  double sample_s_per_byte = 0;   // sample that later starts compare theirs with; 0: none
  std::string settings;           // as machine_from() reads them
};

struct MachineFile {
  std::string path;               // empty: no folder for it is known
  std::vector<MeasuredMachine> machines;
  std::string trouble;            // why nothing was read; empty: read, or there is no file yet
  bool replaceable = true;        // false: a start must not write it: another user's, or newer
};

// Returns PACELINE_MACHINE_DIR, else paceline in $XDG_CACHE_HOME or ~/.cache; empty: none of these
// is set.
std::string machine_folder();

// Reads the file. Sets `trouble` instead of throwing, for wrong contents or another owner.
MachineFile read_machine_file(const std::string& folder);

// Puts `measured` first, in place of an entry with its fingerprint. Makes the folder. Returns why
// it was not written; empty: it was.
std::string keep_machine(const std::string& folder, const MeasuredMachine& measured);

// Converts one entry to its line, without a newline, and back. from_line throws a usage error.
std::string line_of(const MeasuredMachine& measured);
MeasuredMachine from_line(std::string_view line);

// Convert the entries to the file's text, and back. machines_from throws a usage error; `newer`:
// a later version of Paceline wrote the file.
std::string text_of(const std::vector<MeasuredMachine>& machines);
std::vector<MeasuredMachine> machines_from(std::string_view text, bool& newer);

}  // namespace paceline
