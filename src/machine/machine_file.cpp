#include "machine/machine_file.hpp"

#include <fcntl.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>

#include "base/error.hpp"
#include "base/hash.hpp"
#include "base/options.hpp"
#include "base/options_launcher.hpp"
#include "model/machine.hpp"

namespace paceline {
namespace {

constexpr std::string_view kMagic = "paceline-machine ";
constexpr int kVersion = 1;
constexpr const char* kName = "machine";
constexpr std::size_t kMostBytes = 64u << 10, kMostMachines = 32, kMostSettings = 1000;
constexpr int kMostRanks = 1 << 24;

[[noreturn]] void damaged(std::string_view what) {
  fail(Fault::usage, "is damaged (", what, ")");
}

// Takes the text up to `end` off, and `end` as well; fails if there is none.
std::string_view take(std::string_view& text, char end, std::string_view what) {
  const std::size_t at = text.find(end);
  if (at == text.npos) damaged(what);
  const std::string_view taken = text.substr(0, at);
  text.remove_prefix(at + 1);
  return taken;
}

template <class Number>
Number number_from(std::string_view text, Number least, Number most, std::string_view what) {
  Number number{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size() || !(number >= least) ||
      !(number <= most))
    damaged(what);
  return number;
}

bool has_only(std::string_view text, std::string_view characters) {
  return text.find_first_not_of(characters) == text.npos;
}

struct Descriptor {
  int number = -1;
  ~Descriptor() {
    if (number >= 0) close(number);
  }
  Descriptor(int opened) : number(opened) {}
  Descriptor(const Descriptor&) = delete;
};

std::string why(const char* what) { return str(what, ": ", std::strerror(errno)); }

// Makes the folder and those missing above it, for this user alone, but not the user's home.
void make_folder(const std::string& folder) {
  const std::string home = value_of("HOME").value_or("");
  for (std::size_t at = folder.starts_with(home + "/") ? home.size() : 0; at != folder.npos;) {
    at = folder.find('/', at + 1);
    mkdir(folder.substr(0, at).c_str(), 0700);   // a failure shows when the folder is opened
  }
}

// Returns why an open file's contents cannot be trusted; empty: they can.
std::string distrust(const struct stat& found) {
  if (!S_ISREG(found.st_mode)) return "is no regular file";
  if (found.st_uid != geteuid())
    return str("belongs to user ", found.st_uid, ", not to ", geteuid());
  if (found.st_mode & (S_IWGRP | S_IWOTH)) return "can be written by other users";
  if (std::size_t(found.st_size) > kMostBytes) return "is longer than 64 KiB";
  return {};
}

// Returns the bytes of a file of at most kMostBytes.
std::string contents(int file) {
  std::string text(kMostBytes + 1, '\0');
  std::size_t filled = 0;
  while (filled < text.size()) {
    const ssize_t got = read(file, text.data() + filled, text.size() - filled);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) fail(Fault::usage, why("cannot be read"));
    if (got == 0) break;
    filled += std::size_t(got);
  }
  if (filled > kMostBytes) fail(Fault::usage, "is longer than 64 KiB");
  text.resize(filled);
  return text;
}

// Writes a new file and renames it to the old one. Returns why this failed; empty: it did not.
std::string replace_file(int folder, const std::string& text) {
  std::uint64_t random = 0;   // a process id is not unique: nodes may share the folder
  if (getrandom(&random, sizeof(random), 0) != sizeof(random)) return "there are no random numbers";
  const std::string beside = str(kName, ".new-", hex(random));
  const int flags = O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC;
  std::string trouble;
  {
    const Descriptor file(openat(folder, beside.c_str(), flags, 0600));
    if (file.number < 0) return why("cannot be written");
    for (std::size_t done = 0; done < text.size();) {
      const ssize_t wrote = write(file.number, text.data() + done, text.size() - done);
      if (wrote < 0 && errno == EINTR) continue;
      if (wrote <= 0) {
        trouble = why("cannot be written");
        break;
      }
      done += std::size_t(wrote);
    }
    if (trouble.empty() && fsync(file.number) != 0) trouble = why("cannot be written");
  }
  if (trouble.empty() && renameat(folder, beside.c_str(), folder, kName) != 0)
    trouble = why("cannot be replaced");
  if (!trouble.empty()) unlinkat(folder, beside.c_str(), 0);
  return trouble;
}

}  // namespace

std::string machine_folder() {
  if (std::string asked = text_of(Option::machine_dir); !asked.empty()) return asked;
  // The XDG standard ignores relative paths.
  if (const auto cache = value_of("XDG_CACHE_HOME"); cache && cache->starts_with('/'))
    return *cache + "/paceline";
  if (const auto home = value_of("HOME"); home && home->starts_with('/'))
    return *home + "/.cache/paceline";
  return {};
}

std::string line_of(const MeasuredMachine& m) {
  std::array<char, 32> sample;
  const auto end = std::to_chars(sample.data(), sample.data() + sample.size(), m.sample_s_per_byte);
  return str(m.layout, ' ', m.hardware, ' ', m.ranks, ' ', m.nodes, ' ', m.day, ' ',
             std::string_view(sample.data(), std::size_t(end.ptr - sample.data())), ' ',
             m.settings);
}

MeasuredMachine from_line(std::string_view line) {
  MeasuredMachine m;
  for (std::string* digits : {&m.layout, &m.hardware}) {
    *digits = take(line, ' ', "a fingerprint");
    if (digits->size() != 16 || !has_only(*digits, "0123456789abcdef")) damaged("a fingerprint");
  }
  m.ranks = number_from(take(line, ' ', "ranks"), 2, kMostRanks, "ranks");
  m.nodes = number_from(take(line, ' ', "nodes"), 2, m.ranks, "nodes");
  m.day = take(line, ' ', "a day");
  if (m.day.size() != 10 || !has_only(m.day, "0123456789-")) damaged("a day");
  m.sample_s_per_byte = number_from(take(line, ' ', "a sample"), 0.0, 1.0, "a sample");
  m.settings = line;
  if (m.settings.size() > kMostSettings) damaged("settings");
  try {
    if (machine_from(m.settings).across.beta_s_per_byte > 0) return m;
  } catch (const Error&) {
  }
  damaged("settings");
}

std::string text_of(const std::vector<MeasuredMachine>& machines) {
  std::string text = str(kMagic, kVersion, '\n');
  for (const MeasuredMachine& one : machines) text += line_of(one) + '\n';
  return text + str("end ", hex(hash_of(text)), '\n');
}

std::vector<MeasuredMachine> machines_from(std::string_view text, bool& newer) {
  newer = false;
  std::string_view rest = text;
  std::string_view first = take(rest, '\n', "its first line");
  if (!first.starts_with(kMagic)) damaged("its first line");
  first.remove_prefix(kMagic.size());
  newer = number_from(first, 1, 1 << 30, "its version") > kVersion;
  if (newer) fail(Fault::usage, "is of version ", first, "; this Paceline knows ", kVersion);
  std::vector<MeasuredMachine> machines;
  while (true) {
    const std::size_t begin = text.size() - rest.size();
    const std::string_view line = take(rest, '\n', "it has no end");
    if (line.starts_with("end ")) {
      if (line.substr(4) != hex(hash_of(text.substr(0, begin))) || !rest.empty())
        damaged("its checksum");
      return machines;
    }
    if (machines.size() == kMostMachines) damaged("too many lines");
    machines.push_back(from_line(line));
  }
}

MachineFile read_machine_file(const std::string& folder) {
  MachineFile out;
  if (folder.empty()) {
    out.trouble = "there is no folder for figures: neither PACELINE_MACHINE_DIR nor HOME is set";
    out.replaceable = false;
    return out;
  }
  out.path = folder + "/" + kName;
  // O_NONBLOCK, since opening a pipe could block for ever.
  const Descriptor file(open(out.path.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  if (file.number < 0) {
    if (errno == ENOENT || errno == ENOTDIR) return out;
    out.replaceable = false;
    out.trouble = str(out.path, errno == ELOOP ? std::string(" is a symbolic link")
                                               : why(" cannot be opened"));
    return out;
  }
  struct stat found;
  std::string trouble = fstat(file.number, &found) ? why("cannot be looked at") : distrust(found);
  out.replaceable = trouble.empty();
  bool newer = false;
  if (trouble.empty()) try {
      out.machines = machines_from(contents(file.number), newer);
    } catch (const Error& error) {
      trouble = error.what();
      out.replaceable = !newer;
    }
  if (!trouble.empty()) out.trouble = str(out.path, " ", trouble);
  return out;
}

std::string keep_machine(const std::string& folder, const MeasuredMachine& measured) {
  MachineFile file = read_machine_file(folder);   // keeps entries that other jobs have written
  if (!file.replaceable) return file.trouble;
  std::erase_if(file.machines, [&](const MeasuredMachine& one) {
    return one.layout == measured.layout && one.hardware == measured.hardware;
  });
  file.machines.insert(file.machines.begin(), measured);
  if (file.machines.size() > kMostMachines) file.machines.resize(kMostMachines);
  make_folder(folder);
  const Descriptor opened(open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (opened.number < 0) return str(folder, " ", why("cannot be opened"));
  const std::string trouble = replace_file(opened.number, text_of(file.machines));
  return trouble.empty() ? trouble : str(file.path, " ", trouble);
}

}  // namespace paceline
