// Places of calls' slots in a stage: each beside the last one, for all lengths.
#include <doctest/doctest.h>

#include <new>
#include <vector>

#include "engine/shm/shm_channel.hpp"

using namespace paceline;

namespace {

constexpr std::size_t kBytes = 1u << 20;

// The stage of a rank that is alone.
class Alone : public StagingBuffers {
 public:
  std::size_t bytes() const override { return kBytes; }
  StagingBuffer open(std::uint64_t) override {
    StagingBuffer stage;
    stage.memory = reinterpret_cast<std::byte*>(lines_.data());
    return stage;
  }
  std::optional<StagingBuffer> find(int, std::uint64_t) override { return {}; }
  void reserve(std::uint64_t, std::size_t) override {}
  bool is_found(const StagingBuffer&, int) const override { return true; }
  void close(std::uint64_t) override {}
  const std::string& why_not_attached() const override { return why_; }
  const char* attached_by() const override { return ""; }
  int copy(const PeerCopy&) override { return 0; }
  bool has_ended(int) const override { return false; }

 private:
  struct alignas(64) Line {
    std::byte bytes[64];
  };
  std::vector<Line> lines_ = std::vector<Line>((StagingBuffer::kHead + kBytes) / sizeof(Line));
  std::string why_ = "alone";
};

}  // namespace

TEST_CASE("slots: a call's is apart from the last one's, also where its end is within a line") {
  for (const std::size_t bytes : {24, 500, 4096, 4100, 20000, 65536, 65540, 122880, 122884, 131072,
                                  131076, 200001, 262144, 262148, 500000, 515001}) {
    CAPTURE(bytes);
    Alone stages;
    const std::vector<int> ranks{0};
    ShmChannel view(stages, 7, ranks, 0);
    view.open();
    const std::byte* before = nullptr;
    for (std::uint64_t call = 1; call <= 12; ++call) {
      CHECK(view.enroll() == call);
      view.enter(call, bytes, static_cast<std::uint32_t>(call), {});
      const std::byte* const slot = view.slot(0, call);
      if (before) CHECK((slot + bytes <= before || before + bytes <= slot));
      CHECK(reinterpret_cast<std::uintptr_t>(slot) % (bytes > 32 ? 64 : 8) == 0);
      before = slot;
      view.leave(call);
    }
  }
}
