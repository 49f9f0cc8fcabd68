// Stands for XPMEM's library where its kernel module is not: maps what a process has in files that
// both reach, and shows the rest as it was when the window was made. What nobody has ends whoever
// looks there with SIGBUS, as it does under XPMEM. Found by LD_LIBRARY_PATH; FAKE_XPMEM=blind maps
// nothing of others.
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <map>
#include <sstream>
#include <string>

namespace {

struct Address {
  std::int64_t permit;
  off_t offset;
};

struct Area {   // a line of /proc/PID/maps
  std::uint64_t begin = 0, end = 0, offset = 0;
  std::string rights, device, inode, path;
};

std::map<void*, std::size_t> windows;
int made = 0;

Area read_area(const std::string& line) {
  Area area;
  char dash = 0;
  std::istringstream words(line);
  words >> std::hex >> area.begin >> dash >> area.end >> area.rights >> area.offset >>
      area.device >> area.inode >> area.path;
  return area;
}

bool map_file(const Area& area, std::byte* to, std::uint64_t begin, std::uint64_t end) {
  const int file = open(area.path.c_str(), O_RDWR);
  if (file < 0) return false;
  void* const found = mmap(to, end - begin, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, file,
                           static_cast<off_t>(area.offset + begin - area.begin));
  close(file);
  return found == to;
}

void show_as_it_is(int memory, std::byte* to, std::uint64_t begin, std::uint64_t end) {
  mmap(to, end - begin, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
  for (std::uint64_t done = begin; done < end;) {
    const ssize_t some = pread(memory, to + (done - begin), end - done, static_cast<off_t>(done));
    if (some <= 0) return;
    done += static_cast<std::uint64_t>(some);
  }
}

// Pages that raise SIGBUS.
std::byte* map_nothing(std::size_t bytes) {
  const int empty = memfd_create("nothing", 0);
  void* const found = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, empty, 0);
  close(empty);
  return static_cast<std::byte*>(found);
}

}  // namespace

extern "C" {

std::int64_t xpmem_make(void*, std::size_t, int, void*) { return getpid(); }
int xpmem_remove(std::int64_t) { return 0; }
std::int64_t xpmem_get(std::int64_t segment, int, int, void*) {
  return kill(static_cast<pid_t>(segment), 0) == 0 ? segment : -1;
}
int xpmem_release(std::int64_t) { return 0; }

void* xpmem_attach(Address from, std::size_t bytes, void*) {
  if (getenv("FAKE_XPMEM")) {
    errno = EACCES;
    return reinterpret_cast<void*>(-1);
  }
  const std::string process = "/proc/" + std::to_string(from.permit);
  const int memory = open((process + "/mem").c_str(), O_RDONLY);
  if (memory < 0) return reinterpret_cast<void*>(-1);
  std::byte* const window = map_nothing(bytes);
  const auto first = static_cast<std::uint64_t>(from.offset), last = first + bytes;
  std::ifstream areas(process + "/maps");
  for (std::string line; std::getline(areas, line);) {
    const Area area = read_area(line);
    const std::uint64_t begin = std::max(area.begin, first), end = std::min(area.end, last);
    if (begin >= end || area.rights[0] != 'r') continue;
    std::byte* const to = window + (begin - first);
    if (area.rights[3] != 's' || !map_file(area, to, begin, end))
      show_as_it_is(memory, to, begin, end);
  }
  close(memory);
  windows[window] = bytes;
  ++made;
  return window;
}

int xpmem_detach(void* window) {
  const auto found = windows.find(window);
  if (found == windows.end()) return -1;
  munmap(window, found->second);
  windows.erase(found);
  return 0;
}

int fake_windows() { return static_cast<int>(windows.size()); }
int fake_windows_made() { return made; }
}
