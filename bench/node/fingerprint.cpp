// Times calls of all ranks of a node in one thread, which only show themselves in their staging
// buffers and look at their peers' calls. fingerprint.py compiles it twice.
#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <numeric>
#include <vector>

#include "engine/shm/shm_channel.hpp"

using namespace paceline;

namespace {

constexpr std::size_t kStageBytes = 64u << 10;

struct alignas(64) Line {
  std::byte bytes[64];
};
using Memory = std::vector<std::vector<Line>>;   // by rank

class HeapStages : public StagingBuffers {
 public:
  HeapStages(Memory& memory, int rank) : memory_(memory), rank_(rank) {}
  std::size_t bytes() const override { return kStageBytes; }
  StagingBuffer open(std::uint64_t context) override { return *find(rank_, context); }
  std::optional<StagingBuffer> find(int peer, std::uint64_t) override {
    return StagingBuffer{memory_[std::size_t(peer)].data()->bytes};
  }
  void close(std::uint64_t) override {}
  const std::string& why_not_attached() const override { return why_; }
  int copy(const PeerCopy&) override { return 0; }
  bool has_ended(int) const override { return false; }

 private:
  Memory& memory_;
  int rank_;
  std::string why_;
};

}  // namespace

int main(int argc, char** argv) {
  const int calls = argc > 1 ? std::atoi(argv[1]) : 1000000;
  const int ranks = argc > 2 ? std::atoi(argv[2]) : 2;
  Memory memory(std::size_t(ranks), std::vector<Line>((StagingBuffer::kHead + kStageBytes) / 64));
  std::vector<int> all(std::size_t(ranks), 0);
  std::iota(all.begin(), all.end(), 0);
  std::vector<std::unique_ptr<HeapStages>> stages;
  std::vector<std::unique_ptr<ShmChannel>> views;
  for (int rank = 0; rank < ranks; ++rank) {
    stages.push_back(std::make_unique<HeapStages>(memory, rank));
    views.push_back(std::make_unique<ShmChannel>(*stages.back(), 1, all, rank));
    views.back()->open();
  }
  std::array<Fingerprint, 256> history{};   // of as many calls as Session keeps
  std::uint64_t seen = 0;
  const auto begin = std::chrono::steady_clock::now();
  for (int number = 1; number <= calls; ++number) {
    const Fingerprint fingerprint{std::uint64_t(number % 7), 1000};
    std::uint64_t call = 0;
    for (auto& view : views) {
      std::optional<CallMismatch> stranger;
      call = view->enroll();
      seen += view->occupied(call, 8, stranger).has_value() + stranger.has_value();
#if KEEPS_FINGERPRINT
      history[std::size_t(number) % history.size()] = fingerprint;   // as Session::launch does
#endif
      view->enter(call, 8, std::uint32_t(number), fingerprint);
      view->signal(call, 1);
    }
    for (int rank = 0; rank < ranks; ++rank) {
      ShmChannel& view = *views[std::size_t(rank)];
      for (int peer = 0; peer < ranks; ++peer)
        if (peer != rank)
          seen += !view.has_come(peer, call, 1) + view.stranger(peer, call).has_value();
      view.leave(call);
    }
  }
  const std::chrono::duration<double, std::nano> took = std::chrono::steady_clock::now() - begin;
  std::printf("%.4f %llu\n", took.count() / calls / ranks,
              static_cast<unsigned long long>(seen + history[0].what * 0));
  return seen != 0;
}
