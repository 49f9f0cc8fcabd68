#include "base/files.hpp"

#include <fcntl.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <sstream>
#include <utility>

#include "base/str.hpp"

namespace paceline {
namespace {

struct Descriptor {
  explicit Descriptor(int opened) : number(opened) {}
  ~Descriptor() {
    if (number >= 0) close(number);
  }
  Descriptor(const Descriptor&) = delete;
  int number;
};

std::string reason() { return std::strerror(errno); }

// Returns why a file is not trusted; empty if it is.
std::string distrust(const struct stat& found, const std::string& path) {
  if (S_ISLNK(found.st_mode)) return "it is a link";
  if (!S_ISREG(found.st_mode)) return "it is no regular file";
  if (found.st_uid == geteuid()) return {};
  struct stat folder{};
  const std::string parent = path.substr(0, path.rfind('/'));
  if (stat(parent.c_str(), &folder) == 0 && folder.st_uid == found.st_uid) return {};
  return str("it belongs to user ", found.st_uid, ", not to ", geteuid());
}

std::string write_all(int file, std::string_view text) {
  while (!text.empty()) {
    const ssize_t wrote = write(file, text.data(), text.size());
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote <= 0) return reason();
    text.remove_prefix(static_cast<std::size_t>(wrote));
  }
  return {};
}

}  // namespace

std::string replace_file(const std::string& path, std::string_view text, unsigned mode) {
  struct stat found{};
  if (lstat(path.c_str(), &found) == 0)
    if (std::string trouble = distrust(found, path); !trouble.empty()) return trouble;
  std::uint64_t random = 0;   // process numbers repeat on other nodes that share the folder
  if (getrandom(&random, sizeof(random), 0) != sizeof(random)) return "there are no random numbers";
  const std::string beside = str(path, ".new-", random, "~");
  const int flags = O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC;
  const int made = open(beside.c_str(), flags, mode);
  if (made < 0) return reason();
  std::string trouble = write_all(made, text);
  // Some file systems report only here that they are full.
  if (close(made) != 0 && trouble.empty()) trouble = reason();
  if (trouble.empty() && std::rename(beside.c_str(), path.c_str()) != 0) trouble = reason();
  if (!trouble.empty()) unlink(beside.c_str());
  return trouble;
}

FileText read_file(const std::string& path) {
  // Without O_NONBLOCK, opening a pipe would wait.
  const Descriptor file(open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  if (file.number < 0 && (errno == ENOENT || errno == ESTALE)) return {};
  if (file.number < 0) return {true, {}, errno == ELOOP ? "it is a link" : reason()};
  FileText out{true, {}, {}};
  struct stat found{};
  out.trouble = fstat(file.number, &found) != 0 ? reason() : distrust(found, path);
  char piece[4096];
  while (out.trouble.empty()) {
    const ssize_t got = read(file.number, piece, sizeof piece);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) out.trouble = reason();
    if (got <= 0) break;
    out.text.append(piece, static_cast<std::size_t>(got));
  }
  return out;
}

// operator<< swallows what a read throws; std::istreambuf_iterator would pass it on.
std::string contents_of(const std::string& path) {
  std::ostringstream all;
  all << std::ifstream(path, std::ios::binary).rdbuf();
  return std::move(all).str();
}

}  // namespace paceline
