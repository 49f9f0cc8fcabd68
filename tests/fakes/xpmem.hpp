// What a test asks of the library that stands for XPMEM's, and memory that it can map.
#pragma once

#include <dlfcn.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>

namespace paceline::test {

// How many windows there are, and how many have been made; negative: that library is not found.
inline int fake_count(const char* function) {
  void* const file = dlopen("libxpmem.so.0", RTLD_NOW);
  const auto count = file ? reinterpret_cast<int (*)()>(dlsym(file, function)) : nullptr;
  return count ? count() : -1;
}
inline int fake_windows() { return fake_count("fake_windows"); }
inline int fake_windows_made() { return fake_count("fake_windows_made"); }

// In a file, so that another process can map it too.
class FileMemory {
 public:
  explicit FileMemory(std::size_t bytes) : bytes_(bytes) {
    file_ = mkstemp(path_);
    if (ftruncate(file_, static_cast<off_t>(bytes)) == 0)
      data_ = static_cast<std::byte*>(
          mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file_, 0));
  }
  ~FileMemory() {
    munmap(data_, bytes_);
    close(file_);
    unlink(path_);
  }
  FileMemory(const FileMemory&) = delete;
  FileMemory& operator=(const FileMemory&) = delete;

  std::byte* data() const { return data_; }
  bool lose() const { return ftruncate(file_, 0) == 0; }   // no page is left

 private:
  char path_[32] = "/tmp/paceline-test-XXXXXX";
  int file_ = -1;
  std::size_t bytes_;
  std::byte* data_ = nullptr;
};

}  // namespace paceline::test
