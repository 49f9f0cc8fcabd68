#include "transport/shm/xpmem.hpp"

#include <dlfcn.h>
#include <sys/types.h>

#include <algorithm>
#include <cerrno>
#include <type_traits>

#include "transport/shm/guarded_copy.hpp"

namespace paceline {
namespace {

// Of a peer's addresses, aligned to it. The pages of a window come as they are touched, which takes
// long, and stay: so windows are kept for the next call. As many cover a GiB of each peer.
constexpr std::uint64_t kWindow = 16u << 20;
constexpr std::size_t kWindows = 64;

constexpr std::size_t kWholeProcess = ~std::size_t{0};
constexpr int kReadWrite = 2, kByMode = 1;
void* const kOwnersMode = reinterpret_cast<void*>(0600);

int last_error() { return errno ? errno : EIO; }

}  // namespace

struct Xpmem::Library {
  struct Address {
    std::int64_t permit;
    off_t offset;
  };
  std::int64_t (*make)(void*, std::size_t, int, void*);
  int (*remove)(std::int64_t);
  std::int64_t (*get)(std::int64_t, int, int, void*);
  int (*release)(std::int64_t);
  void* (*attach)(Address, std::size_t, void*);
  int (*detach)(void*);

  // Loaded once and for all; null where there is none.
  static const Library* find() {
    static Library found;
    static const bool is_whole = [] {
      void* const file = dlopen("libxpmem.so.0", RTLD_NOW | RTLD_LOCAL);
      if (!file) return false;
      const auto take = [&](auto& function, const char* name) {
        function = reinterpret_cast<std::decay_t<decltype(function)>>(dlsym(file, name));
        return function != nullptr;
      };
      return take(found.make, "xpmem_make") && take(found.remove, "xpmem_remove") &&
             take(found.get, "xpmem_get") && take(found.release, "xpmem_release") &&
             take(found.attach, "xpmem_attach") && take(found.detach, "xpmem_detach");
    }();
    return is_whole ? &found : nullptr;
  }
};

Xpmem::Xpmem(bool is_wanted) {
  library_ = is_wanted ? Library::find() : nullptr;
  if (library_)
    segment_ = std::max<std::int64_t>(
        0, library_->make(nullptr, kWholeProcess, kByMode, kOwnersMode));
}

Xpmem::~Xpmem() {
  for (auto& [segment, permit] : permits_) {
    for (auto& [address, window] : permit.windows) library_->detach(window.here);
    library_->release(permit.number);
  }
  if (segment_) library_->remove(segment_);
}

Xpmem::Permit* Xpmem::permit_of(std::int64_t segment) {
  const auto known = permits_.find(segment);
  if (known != permits_.end()) return &known->second;
  errno = 0;
  const std::int64_t number = library_->get(segment, kReadWrite, kByMode, kOwnersMode);
  return number > 0 ? &permits_.emplace(segment, Permit{number, {}}).first->second : nullptr;
}

void Xpmem::give_up_oldest(Permit& permit) {
  const auto oldest = std::ranges::min_element(
      permit.windows, {}, [](const auto& window) { return window.second.turn; });
  library_->detach(oldest->second.here);
  permit.windows.erase(oldest);
}

std::byte* Xpmem::window_at(Permit& permit, std::uint64_t address) {
  const auto known = permit.windows.find(address);
  if (known == permit.windows.end()) {
    if (permit.windows.size() == kWindows) give_up_oldest(permit);
    errno = 0;
    void* const here =
        library_->attach({permit.number, static_cast<off_t>(address)}, kWindow, nullptr);
    if (here == reinterpret_cast<void*>(-1)) return nullptr;
    permit.windows[address] = {static_cast<std::byte*>(here), 0};
  }
  Window& window = permit.windows[address];
  window.turn = ++turn_;
  return window.here;
}

int Xpmem::copy(std::int64_t segment, const PeerCopy& wanted) {
  const std::lock_guard lock(mutex_);
  Permit* const permit = permit_of(segment);
  if (!permit) return last_error();
  for (std::size_t done = 0; done < wanted.bytes;) {
    const std::uint64_t there = wanted.there + done, within = there % kWindow;
    const std::size_t bytes = std::min<std::size_t>(kWindow - within, wanted.bytes - done);
    std::byte* const window = window_at(*permit, there - within);
    if (!window) return last_error();
    std::byte* const theirs = window + within;
    std::byte* const own = wanted.here + done;
    if (!(wanted.writes ? copy_guarded(theirs, own, bytes) : copy_guarded(own, theirs, bytes)))
      return EFAULT;
    done += bytes;
  }
  return 0;
}

}  // namespace paceline
