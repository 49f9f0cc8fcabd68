// The machine file: what earlier starts of this user measured between nodes, one line for each
// fingerprint, the newest first.
//
// Text, bounded and versioned. It ends with a checksum: what is damaged is not believed. It is
// written beside itself and renamed, so no reader sees half of it; of two jobs that write at the
// same time one wins, and the other's line is measured again when it is needed.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace paceline {

struct MeasuredMachine {
  std::string layout, hardware;   // 16 hexadecimal digits each: the fingerprint
  int ranks = 0, nodes = 0;
  std::string day;                // when it was measured: "2026-11-23" (UTC)
  double sample_s_per_byte = 0;   // what a start compares its sample with; 0: with nothing
  std::string settings;           // as machine_from() reads them
};

struct MachineFile {
  std::string path;               // empty: no folder for it is known
  std::vector<MeasuredMachine> machines;
  std::string trouble;            // why nothing was read; empty: it was, or there is no file yet
  bool replaceable = true;        // whether a start may write it; not another user's or a newer one
};

// PACELINE_MACHINE_DIR, else paceline in $XDG_CACHE_HOME or ~/.cache; empty: none of these is set.
std::string machine_folder();

// Never throws for what the file holds or whose it is: it says so as `trouble`.
MachineFile read_machine_file(const std::string& folder);

// Puts `measured` first, in place of an entry with its fingerprint. Makes the folder. Returns why
// it was not kept; empty: it was.
std::string keep_machine(const std::string& folder, const MeasuredMachine& measured);

// One entry as its line, and back. line_of never holds a newline; from_line throws a usage error.
std::string line_of(const MeasuredMachine& measured);
MeasuredMachine from_line(std::string_view line);

// Whole files, without the system. The reader throws a usage error; `newer` says that a later
// version of Paceline wrote it.
std::string text_of(const std::vector<MeasuredMachine>& machines);
std::vector<MeasuredMachine> machines_from(std::string_view text, bool& newer);

}  // namespace paceline
