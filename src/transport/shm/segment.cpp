#include "transport/shm/segment.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <sstream>
#include <utility>

#include "base/error.hpp"

namespace paceline {
namespace {

bool is_number(const std::string& text) {
  return !text.empty() && text.size() <= 10 && std::ranges::all_of(text, [](unsigned char c) {
    return c >= '0' && c <= '9';
  });
}

// True if a limit of the process or the system is the cause, whatever the file.
bool is_limit(int error) {
  return error == EMFILE || error == ENFILE || error == EFBIG || error == ENOMEM;
}

std::string explained(int error) {
  const char* advice = "";
  if (error == EMFILE) advice = " Close files, or raise their limit (ulimit -n).";
  if (error == ENFILE) advice = " Raise the machine's limit of open files (fs.file-max).";
  if (error == EFBIG) advice = " Raise the limit of the length of files (ulimit -f).";
  if (error == ENOMEM)
    advice = " There is no memory, or a limit: of addresses (ulimit -v), of the control group, "
             "or of mappings (vm.max_map_count).";
  return str(std::strerror(error), ".", advice);
}

// Past this limit a call does not only fail: SIGXFSZ would end the program.
bool is_too_long(std::size_t bytes) { return bytes > SharedFile::longest(); }

int lengthen(int descriptor, std::size_t bytes) {
  if (is_too_long(bytes)) return EFBIG;
  return ftruncate(descriptor, static_cast<off_t>(bytes)) == 0 ? 0 : errno;
}

// A signal may interrupt it, on older kernels each time that one is pending.
int allocate(int descriptor, std::size_t offset, std::size_t bytes) {
  if (is_too_long(offset + bytes)) return EFBIG;
  int error = 0;
  do error = posix_fallocate(descriptor, static_cast<off_t>(offset), static_cast<off_t>(bytes));
  while (error == EINTR);
  return error;
}

struct Address {
  std::string process, descriptor;
  std::string path() const { return str("/proc/", process, "/fd/", descriptor); }
};

// Another process has sent the address: anything but two numbers is refused.
Address parsed(const std::string& address) {
  const std::size_t space = std::min(address.find(' '), address.size());
  Address found{address.substr(0, space), address.substr(std::min(space + 1, address.size()))};
  if (!is_number(found.process) || !is_number(found.descriptor))
    fail(Fault::refusal, "shm: '", address.substr(0, 60), "' is no address of a rank's memory");
  return found;
}

// A rank's memory has no name, and is of one user alone.
bool is_of_a_rank(const struct stat& file) {
  return S_ISREG(file.st_mode) && file.st_nlink == 0 && (file.st_mode & 0777) == 0600;
}

// True if the process ends or is a zombie: its descriptors cannot be opened then, either.
bool is_ending(const std::string& process) {
  constexpr unsigned kExiting = 4;   // PF_EXITING
  std::ifstream file("/proc/" + process + "/stat");
  std::string text, state;
  std::getline(file, text);
  const std::size_t name_ends = text.rfind(')');
  if (name_ends == std::string::npos) return true;   // it is gone
  std::istringstream rest(text.substr(name_ends + 1));
  unsigned flags = 0;
  std::string skipped;
  rest >> state;
  for (int field = 4; field < 9; ++field) rest >> skipped;
  rest >> flags;
  return state == "Z" || state == "X" || (flags & kExiting) != 0;
}

}  // namespace

std::size_t SharedFile::longest() {
  rlimit limit{};
  const bool is_bounded = getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY;
  return is_bounded ? static_cast<std::size_t>(limit.rlim_cur) : ~std::size_t{0};
}

SharedFile::~SharedFile() {
  if (data_) munmap(data_, bytes_);
  close_descriptor();
}

void SharedFile::swap(SharedFile& other) noexcept {
  std::swap(descriptor_, other.descriptor_);
  std::swap(data_, other.data_);
  std::swap(bytes_, other.bytes_);
}

// Maps a file of whole huge pages at the boundary of one, whether or not they will be used, so that
// peers that attach need not be told.
void SharedFile::map() {
  const std::size_t spare = bytes_ % kHugePage == 0 ? kHugePage : 0;
  void* memory = mmap(nullptr, bytes_ + spare, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor_, 0);
  auto* at = static_cast<std::byte*>(memory);
  if (memory != MAP_FAILED && spare > 0) {
    const std::size_t past = reinterpret_cast<std::uintptr_t>(at) % kHugePage;
    const std::size_t before = past > 0 ? kHugePage - past : 0;
    // The start of the file moves to where the huge page begins.
    memory = mmap(at + before, bytes_, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, descriptor_,
                  0);
    if (before > 0) munmap(at, before);
    if (before < spare) munmap(at + before + bytes_, spare - before);
    at += before;
  }
  if (memory == MAP_FAILED)
    fail(Fault::resource, "shm: ", human_bytes(double(bytes_)),
         " of shared memory cannot be mapped: ", explained(errno));
  data_ = at;
}

int SharedFile::use_huge_pages() {
  constexpr int kCollapse = 25;   // MADV_COLLAPSE of Linux 6.1, which older headers do not name
  madvise(data_, bytes_, MADV_HUGEPAGE);
  std::memset(data_, 0, bytes_);   // only what is there can be collapsed
  return madvise(data_, bytes_, kCollapse) == 0 ? 0 : errno;
}

// Without it a full file system, or memory, shows as a SIGBUS in the middle of a collective.
int SharedFile::reserve(std::size_t bytes) {
  bytes_ = bytes;
  return allocate(descriptor_, 0, bytes);
}

int SharedFile::open_in(const std::string& folder) {
  const int descriptor = open(folder.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
  if (descriptor < 0 && is_limit(errno))
    fail(Fault::resource, "shm: no unnamed file can be made in '", folder, "': ", explained(errno));
  if (descriptor < 0)
    fail(Fault::resource, "shm: no unnamed file can be made in '", folder,
         "': ", std::strerror(errno),
         ". It must be a writable memory file system; set PACELINE_SHM_DIR to one.");
  return descriptor;
}

int SharedFile::open_anonymous() {
  const int descriptor = memfd_create("paceline", MFD_CLOEXEC);
  if (descriptor >= 0 && fchmod(descriptor, 0600) == 0) return descriptor;
  if (descriptor >= 0) close(descriptor);
  return -1;
}

SharedFile SharedFile::create(const std::string& folder, std::size_t bytes) {
  SharedFile file;
  file.descriptor_ = open_in(folder);
  if (const int error = file.reserve(bytes); is_limit(error)) {
    fail(Fault::resource, "shm: no file of ", human_bytes(double(bytes)), " can be made in '",
         folder, "': ", explained(error));
  } else if (error != 0) {
    struct statvfs found{};
    fstatvfs(file.descriptor_, &found);
    fail(Fault::resource, "shm: '", folder, "' is full: this rank needs ",
         human_bytes(double(bytes)), ", ",
         human_bytes(double(found.f_bavail) * double(found.f_frsize)), " are free (",
         std::strerror(error),
         "). Make room, enlarge it (docker run --shm-size), or lower PACELINE_SHM_BYTES.");
  }
  file.map();
  return file;
}

SharedFile SharedFile::create_or_besides(const std::string& folder, std::size_t bytes) {
  {
    SharedFile file;
    file.descriptor_ = open_in(folder);
    if (file.reserve(bytes) == 0) {
      file.map();
      return file;
    }
  }
  return can_be_anonymous() ? create_anonymous(bytes) : create(folder, bytes);
}

SharedFile SharedFile::create_anonymous(std::size_t bytes) {
  SharedFile file;
  file.descriptor_ = open_anonymous();
  if (file.descriptor_ < 0)
    fail(Fault::resource, "shm: memfd_create: ", explained(errno));
  if (const int error = file.reserve(bytes); error != 0)
    fail(Fault::resource, "shm: no memory for ", human_bytes(double(bytes)), ": ",
         explained(error));
  file.map();
  return file;
}

bool SharedFile::can_be_anonymous() {
  SharedFile probe;
  probe.descriptor_ = open_anonymous();
  return probe.descriptor_ >= 0;
}

SharedFile SharedFile::create_sparse(const std::string& folder, std::size_t bytes) {
  SharedFile file;
  file.descriptor_ = open_anonymous();
  if (file.descriptor_ < 0) file.descriptor_ = open_in(folder);
  file.bytes_ = bytes;
  if (const int error = lengthen(file.descriptor_, bytes); error != 0)
    fail(Fault::resource, "shm: a file of ", human_bytes(double(bytes)), ": ", explained(error));
  file.map();
  file.keep_out_of_dumps();
  return file;
}

SharedFile SharedFile::attach(const std::string& address, std::size_t bytes) {
  SharedFile file;
  file.bytes_ = bytes;
  const Address where = parsed(address);
  file.descriptor_ = open(where.path().c_str(), O_RDWR | O_CLOEXEC);
  if (file.descriptor_ < 0 && is_limit(errno))
    fail(Fault::resource, "shm: ", where.path(), " cannot be opened: ", explained(errno));
  struct stat found{};
  if (file.descriptor_ < 0 || fstat(file.descriptor_, &found) != 0)
    fail(Fault::refusal, "shm: ", where.path(), " cannot be opened: ", std::strerror(errno));
  if (!is_of_a_rank(found) || found.st_uid != geteuid() ||
      found.st_size != static_cast<off_t>(bytes))
    fail(Fault::refusal, "shm: ", where.path(), " is not the shared memory of a rank of this job");
  file.map();
  file.close_descriptor();
  return file;
}

bool SharedFile::is_withheld(const std::string& address) {
  const Address where = parsed(address);
  const int descriptor = open(where.path().c_str(), O_RDWR | O_CLOEXEC);
  if (descriptor < 0) return (errno == EACCES || errno == EPERM) && !is_ending(where.process);
  struct stat found{};
  const bool another = fstat(descriptor, &found) == 0 && is_of_a_rank(found) &&
                       found.st_uid != geteuid();
  close(descriptor);
  return another;
}

int SharedFile::reserve_part(std::size_t offset, std::size_t bytes) {
  return allocate(descriptor_, offset, bytes);
}

void SharedFile::release_part(std::size_t offset, std::size_t bytes) {
  fallocate(descriptor_, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, static_cast<off_t>(offset),
            static_cast<off_t>(bytes));   // where a system refuses: it stays
}

void SharedFile::touch(std::size_t offset, std::size_t bytes) {
#if defined(MADV_POPULATE_WRITE)
  constexpr std::size_t kPage = 4096;   // longer ones may refuse: then at first use after all
  const std::size_t begin = offset / kPage * kPage;
  madvise(data_ + begin, offset + bytes - begin, MADV_POPULATE_WRITE);
#endif
}

void SharedFile::keep_out_of_dumps() { madvise(data_, bytes_, MADV_DONTDUMP); }

std::string SharedFile::address() const { return str(getpid(), " ", descriptor_); }

void SharedFile::close_descriptor() {
  if (descriptor_ >= 0) close(std::exchange(descriptor_, -1));
}

}  // namespace paceline
