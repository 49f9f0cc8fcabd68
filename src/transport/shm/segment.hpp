// SharedFile: memory shared with other processes of this machine that has no name.
//
// The creator makes a file in a memory file system without linking it (O_TMPFILE); peers open it
// through the creator's entry in /proc and check a number that only the store told them. So nothing
// is left behind, nothing can be guessed, and only this user's processes on this machine can
// attach.
#pragma once

#include <cstddef>
#include <string>

namespace paceline {

// Size on most processors and systems; on others nothing is gained or lost.
inline constexpr std::size_t kHugePage = 2u << 20;

class SharedFile {
 public:
  SharedFile() = default;
  SharedFile(SharedFile&& other) noexcept { swap(other); }
  SharedFile& operator=(SharedFile&& other) noexcept {
    swap(other);
    return *this;
  }
  ~SharedFile();

  // Throws a resource error if the file system has no room; never leaves that to a later access.
  static SharedFile create(const std::string& folder, std::size_t bytes);
  // In the folder or, if that is full, in none. Throws a resource error.
  static SharedFile create_or_besides(const std::string& folder, std::size_t bytes);
  // The same in no folder (memfd): only the machine's memory bounds it. Some sandboxes forbid it.
  static SharedFile create_anonymous(std::size_t bytes);
  static bool can_be_anonymous();
  static std::size_t longest();   // bytes that this process may give a file
  // A sparse file, with nothing reserved yet: in no folder if that is allowed, else in this one.
  // Throws a resource error.
  static SharedFile create_sparse(const std::string& folder, std::size_t bytes);
  // Maps the memory of another process, by its address(). Throws a refusal, or a resource error if
  // this process lacks something.
  static SharedFile attach(const std::string& address, std::size_t bytes);
  // True if the creator is there but this process may not open its memory, now or later: one of the
  // two has changed its user (setuid), or the creator is undumpable (PR_SET_DUMPABLE).
  static bool is_withheld(const std::string& address);

  std::string address() const;  // "<pid> <descriptor>", while the creator keeps its descriptor
  int descriptor() const { return descriptor_; }
  void close_descriptor();      // no other process will attach
  int reserve_part(std::size_t offset, std::size_t bytes);   // of a sparse one; 0 or an errno
  void release_part(std::size_t offset, std::size_t bytes);   // what is there is zero after that
  void touch(std::size_t offset, std::size_t bytes);   // maps pages now, not each at first use
  void keep_out_of_dumps();     // which would reserve all of a sparse one
  // Asks the system to put the memory, which becomes zero, on huge pages. Returns 0, or its errno
  // if it will not; the memory is zero and usable either way.
  int use_huge_pages();
  std::byte* data() const { return data_; }
  std::size_t bytes() const { return bytes_; }

 private:
  static int open_in(const std::string& folder);   // throws a resource error
  static int open_anonymous();   // -1: it is not allowed
  void swap(SharedFile& other) noexcept;
  int reserve(std::size_t bytes);   // its pages, all of them; 0 or an errno
  void map();

  int descriptor_ = -1;
  std::byte* data_ = nullptr;
  std::size_t bytes_ = 0;
};

}  // namespace paceline
