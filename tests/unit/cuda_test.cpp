// CUDA: the driver and the reduce kernels, on a GPU or on the feigned driver of tests/fakes.
#include <doctest/doctest.h>

#include <dlfcn.h>

#include <cstring>

#include "base/error.hpp"
#include "device/cuda/cuda.hpp"
#include "skip.hpp"
#include "unit/kernels_reference.hpp"

namespace paceline::device {
namespace {

using numbers::Bytes;

// Returns null and skips the case if there is no driver.
std::shared_ptr<Cuda> driver_or_skip() {
  if (const std::string why = trouble_with_cuda(); !why.empty()) {
    test::skip("no CUDA here: " + why);
    return nullptr;
  }
  return cuda_driver();
}

template <class Function>
std::string thrown_by(Function&& function) {
  try {
    function();
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

// Memory of a device, reached by copies alone.
class OnDevice {
 public:
  OnDevice(Cuda& driver, int device, std::size_t bytes)
      : driver_(driver), device_(device), bytes_(bytes), data(driver.allocate(device, bytes)),
        host_(driver.allocate(kHost, bytes)), stream_(driver.make_stream(device)),
        end_(driver.make_event(device)) {}
  ~OnDevice() {
    driver_.release(stream_);
    driver_.release(end_);
    driver_.release(device_, data);
    driver_.release(kHost, host_);
  }
  OnDevice(const OnDevice&) = delete;

  void put(const void* from, std::size_t bytes, std::size_t offset = 0) {
    std::memcpy(host_, from, bytes);
    driver_.copy(stream_, {{device_, data + offset}, {kHost, host_}, bytes});
    wait();
  }
  void get(void* to, std::size_t bytes, std::size_t offset = 0) {
    driver_.copy(stream_, {{kHost, host_}, {device_, data + offset}, bytes});
    wait();
    std::memcpy(to, host_, bytes);
  }
  Memory at(std::size_t offset = 0) const { return {device_, data + offset}; }
  Stream stream() const { return stream_; }
  void wait() {
    driver_.record(end_, stream_);
    driver_.synchronize(end_);
  }

 private:
  Cuda& driver_;
  int device_;
  std::size_t bytes_;

 public:
  std::byte* data;

 private:
  std::byte* host_;
  Stream stream_;
  Event end_;
};

std::string first_difference(const numbers::Data& data, Op op, const Bytes& got) {
  const std::size_t size = size_of(data.type);
  for (std::size_t i = 0; i < data.count; ++i) {
    const std::uint64_t mine = numbers::bits_at(got, i, size),
                        wanted = numbers::bits_at(data.expected, i, size);
    if (mine != wanted)
      return str(name_of(op), " of ", name_of(data.type), ", ", data.sources.size(),
                 " sources, element ", i, " of ", data.count, ": ", mine, " for ", wanted);
  }
  return "";
}

// Runs a kernel into two targets, `shift` bytes from an aligned address; returns what is wrong.
std::string wrong_in(Cuda& driver, numbers::Data data, Op op, std::size_t shift, int divisor) {
  const std::size_t bytes = data.count * size_of(data.type);
  if (divisor > 1)
    for (std::size_t i = 0; i < data.count; ++i) {
      const std::size_t size = size_of(data.type);
      const std::uint64_t sum = numbers::bits_at(data.expected, i, size);
      const std::uint64_t bits = numbers::quotient(data.type, sum, divisor);
      std::memcpy(data.expected.data() + i * size, &bits, size);
    }
  const std::size_t apart = (bytes + shift + 31) / 16 * 16;
  const std::size_t places = data.sources.size() + 1;
  OnDevice memory(driver, 0, places * apart);
  Combine combine{.target = memory.at(shift), .sources = {}, .count = data.count,
                  .type = data.type, .op = op, .divisor = divisor};
  combine.copies = {memory.at(data.sources.size() * apart + shift)};
  for (std::size_t k = 0; k < data.sources.size(); ++k) {
    memory.put(data.sources[k].data(), bytes, k * apart + shift);
    combine.sources.push_back(memory.at(k * apart + shift));
  }
  driver.combine(memory.stream(), combine);
  memory.wait();
  for (const Memory& target : {combine.target, combine.copies.front()}) {
    Bytes got(bytes);
    memory.get(got.data(), bytes, static_cast<std::size_t>(target.data - memory.data));
    if (std::string bad = first_difference(data, op, got); !bad.empty()) return bad;
  }
  return "";
}

TEST_CASE("cuda: kernels combine every type and operation as the reference does, bit for bit") {
  const auto driver = driver_or_skip();
  if (!driver) return;
  for (int t = 0; t < kTypes; ++t)
    for (int o = 0; o <= static_cast<int>(Op::logical_xor); ++o) {
      const Type type = Type(t);
      const Op op = Op(o);
      if (!is_defined(op, type)) continue;
      for (const numbers::Shape shape : {numbers::Shape{2, 1}, {2, 1003}, {3, 257}, {5, 64}}) {
        const int divisor = op == Op::average ? shape.sources : 1;
        const std::size_t shift = shape.count == 257 ? size_of(type) : 0;
        const std::string bad =
            wrong_in(*driver, numbers::with_expected(numbers::drawn(type, shape), op), op, shift,
                     divisor);
        CHECK_MESSAGE(bad.empty(), bad);
      }
    }
}

TEST_CASE("cuda: a kernel with one block for many packs, and 64 sources") {
  const auto driver = driver_or_skip();
  if (!driver) return;
  for (const numbers::Shape shape : {numbers::Shape{2, 200003}, {64, 33}}) {
    const auto data = numbers::with_expected(numbers::drawn(Type::bf16, shape), Op::sum);
    const std::string bad = wrong_in(*driver, data, Op::sum, 0, 1);
    CHECK_MESSAGE(bad.empty(), bad);
  }
  Combine many{.target = {}, .sources = std::vector<Memory>(65), .count = 1};
  const Stream stream = driver->make_stream(0);
  CHECK(thrown_by([&] { driver->combine(stream, many); }).find("at most 64") != std::string::npos);
  driver->release(stream);
}

TEST_CASE("cuda: events and words order streams of several devices") {
  const auto driver = driver_or_skip();
  if (!driver) return;
  const int last = driver->devices() - 1;
  OnDevice a(*driver, 0, 4096), b(*driver, last, 4096);
  Word* const word = reinterpret_cast<Word*>(driver->allocate(kHost, sizeof(Word)));
  word->store(0);
  const Event copied = driver->make_event(0);
  std::vector<int> numbers(1024), got(1024);
  for (int turn = 1; turn <= 20; ++turn) {
    for (int& number : numbers) number = turn;
    a.put(numbers.data(), 4096);
    driver->wait(a.stream(), word, static_cast<std::uint32_t>(2 * turn - 1));
    driver->copy(a.stream(), {b.at(), a.at(), 4096});
    driver->record(copied, a.stream());
    driver->wait(b.stream(), copied);
    driver->write(b.stream(), word, static_cast<std::uint32_t>(2 * turn));
    CHECK_FALSE(driver->is_done(copied));
    word->store(static_cast<std::uint32_t>(2 * turn - 1));
    b.get(got.data(), 4096);
    CHECK(got == numbers);
    CHECK(word->load() == static_cast<std::uint32_t>(2 * turn));
  }
  driver->release(copied);
  driver->release(kHost, reinterpret_cast<std::byte*>(word));
}

TEST_CASE("cuda: a captured graph runs as often as it is launched; a failed one leaves nothing") {
  const auto driver = driver_or_skip();
  if (!driver) return;
  OnDevice a(*driver, 0, 64), b(*driver, 0, 64);
  const Stream side = driver->make_stream(0);
  const Event fork = driver->make_event(0), join = driver->make_event(0);
  const Graph graph = driver->capture(a.stream(), [&] {
    driver->record(fork, a.stream());
    driver->wait(side, fork);
    driver->combine(side, {a.at(), {a.at(), b.at()}, 16, Type::f32, Op::sum, 1});
    driver->record(join, side);
    driver->wait(a.stream(), join);
  });
  std::vector<float> ones(16, 1.0f), got(16);
  a.put(ones.data(), 64);
  b.put(ones.data(), 64);
  for (int turn = 0; turn < 3; ++turn) driver->launch(graph, a.stream());
  a.get(got.data(), 64);
  CHECK(got[3] == 4.0f);
  driver->release(graph);
  CHECK_FALSE(thrown_by([&] { driver->launch(graph, a.stream()); }).empty());

  const auto lost = thrown_by([&] {
    driver->capture(a.stream(), [&] { fail(Fault::usage, "something else"); });
  });
  CHECK(lost == "something else");
  a.get(got.data(), 64);   // the stream is usable
  CHECK(got[3] == 4.0f);
  driver->release(side);
  driver->release(fork);
  driver->release(join);
}

TEST_CASE("cuda: bad input is an error that says what is wrong, and streams stay usable") {
  const auto driver = driver_or_skip();
  if (!driver) return;
  const int count = driver->devices();
  OnDevice a(*driver, 0, 64);
  const auto has = [](const std::string& text, const char* words) {
    return text.find(words) != std::string::npos;
  };
  CHECK(has(thrown_by([&] { driver->make_stream(count); }), "there are 0 to"));
  CHECK(has(thrown_by([&] { driver->record(Event{999}, a.stream()); }), "there is no event 999"));
  CHECK(has(thrown_by([&] { driver->wait(Stream{998}, Event{1}); }), "there is no stream 998"));
  CHECK(has(thrown_by([&] {
    driver->combine(a.stream(), {a.at(), {a.at(), a.at()}, 1, Type::f32, Op::bit_and, 1});
  }), "is not defined for float32"));
  CHECK(has(thrown_by([&] { driver->allocate(0, std::size_t{1} << 50); }), "bytes left of"));
  std::vector<int> numbers(16, 7), got(16);
  a.put(numbers.data(), 64);
  a.get(got.data(), 64);
  CHECK(got == numbers);
  CHECK(driver->owner_of(a.data) == 0);
  CHECK(driver->owner_of(got.data()) == kHost);
  if (count < 2) return;
  const Event other = driver->make_event(1);
  CHECK(has(thrown_by([&] { driver->record(other, a.stream()); }), "an event of device 1"));
  driver->release(other);
}

// The real driver does not tell what it does; the feigned one does.
TEST_CASE("cuda: on the feigned driver") {
  const auto driver = driver_or_skip();
  if (!driver) return;
  void* library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
  const auto lose = reinterpret_cast<void (*)(int)>(dlsym(library, "feigned_lose"));
  if (!lose) return;
  SUBCASE("an unjoined stream is an error of the graph") {
    const Stream origin = driver->make_stream(0), side = driver->make_stream(0);
    const Event fork = driver->make_event(0);
    CHECK(thrown_by([&] {
      driver->capture(origin, [&] {
        driver->record(fork, origin);
        driver->wait(side, fork);
        driver->record(fork, side);
      });
    }).find("904") != std::string::npos);
  }
  SUBCASE("a device that goes is named, and others go on") {
    OnDevice gone(*driver, 1, 64), other(*driver, 0, 64);
    int number = 3, got = 0;
    lose(1);
    CHECK(thrown_by([&] { gone.put(&number, 4); }).find("device 1 has gone: CUDA_ERROR_LAUNCH") !=
          std::string::npos);
    other.put(&number, 4);
    other.get(&got, 4);
    CHECK(got == 3);
  }
}

}  // namespace
}  // namespace paceline::device
