// Emulated devices: order by streams and events, memory, loss; and when work would have run.
#include <doctest/doctest.h>

#include <cstring>
#include <string>

#include "base/error.hpp"
#include "device/emulation.hpp"

namespace paceline::device {
namespace {

template <class Function>
std::string thrown_by(Function&& function) {
  try {
    function();
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

float* floats(Driver& driver, int device, std::size_t count) {
  return reinterpret_cast<float*>(driver.allocate(device, count * sizeof(float)));
}

Memory memory(int device, float* data) { return {device, reinterpret_cast<std::byte*>(data)}; }

// Work that others can be held up by: enqueued on `first`, then on `second` after an event.
TEST_CASE("device: events order streams, in every order that they allow") {
  for (bool threads : {false, true})
    for (std::uint64_t seed = 1; seed <= 20; ++seed) {
      Emulation driver({.devices = 2, .threads = threads, .seed = seed});
      const Stream first = driver.make_stream(0), second = driver.make_stream(1);
      const Event made = driver.make_event(0), end = driver.make_event(1);
      float *a = floats(driver, 0, 4), *b = floats(driver, 1, 4), *c = floats(driver, 1, 4);
      for (int i = 0; i < 4; ++i) a[i] = float(i), b[i] = 0, c[i] = 10;
      driver.copy(first, {memory(1, b), memory(0, a), 4 * sizeof(float)});
      driver.record(made, first);
      driver.wait(second, made);
      driver.combine(second,
                     {memory(1, c), {memory(1, c), memory(1, b)}, 4, Type::f32, Op::sum, 1});
      driver.record(end, second);
      driver.synchronize(end);
      CHECK(driver.is_done(made));
      for (int i = 0; i < 4; ++i) CHECK(c[i] == float(10 + i));
    }
}

TEST_CASE("device: without an event some order is another one") {
  int early = 0;
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    Emulation driver({.devices = 2, .seed = seed});
    const Stream first = driver.make_stream(0), second = driver.make_stream(1);
    const Event end = driver.make_event(1);
    float *a = floats(driver, 0, 1), *b = floats(driver, 1, 1), *c = floats(driver, 1, 1);
    a[0] = 1, b[0] = 0;
    driver.copy(first, {memory(1, b), memory(0, a), sizeof(float)});
    driver.copy(second, {memory(1, c), memory(1, b), sizeof(float)});
    driver.record(end, second);
    driver.synchronize(end);
    early += c[0] == 0;
  }
  CHECK(early > 0);
  CHECK(early < 20);
}

TEST_CASE("device: a record that comes later changes nothing for who waits already") {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    Emulation driver({.devices = 1, .seed = seed});
    const Stream slow = driver.make_stream(0), waits = driver.make_stream(0),
                 other = driver.make_stream(0);
    const Event event = driver.make_event(0), end = driver.make_event(0);
    float *a = floats(driver, 0, 1), *b = floats(driver, 0, 1), *c = floats(driver, 0, 1);
    a[0] = 1, b[0] = 0;
    driver.copy(slow, {memory(0, b), memory(0, a), sizeof(float)});
    driver.record(event, slow);
    driver.wait(waits, event);
    driver.record(event, other);   // reached at once
    driver.copy(waits, {memory(0, c), memory(0, b), sizeof(float)});
    driver.record(end, waits);
    driver.synchronize(end);
    CHECK(c[0] == 1);
  }
}

TEST_CASE("device: too little memory says how much there is") {
  Emulation driver({.devices = 1, .memory_bytes = 1000});
  std::byte* some = driver.allocate(0, 600);
  CHECK(thrown_by([&] { driver.allocate(0, 600); }) ==
        "device: 600 bytes on device 0, which has 400 left of 1000; release memory, or take "
        "smaller segments.");
  CHECK(driver.allocated(0) == 600);
  driver.release(0, some);
  driver.release(0, driver.allocate(0, 1000));
  CHECK(driver.allocated(0) == 0);
}

TEST_CASE("device: what is not there is named") {
  CHECK(thrown_by([] { Emulation({.devices = 0}); }) ==
        "device: 0 emulated devices; there is at least 1.");
  Emulation driver({.devices = 2});
  CHECK(thrown_by([&] { driver.make_stream(2); }) ==
        "device: a stream on device 2; there are 0 to 1.");
  const Stream stream = driver.make_stream(0);
  driver.release(stream);
  CHECK(thrown_by([&] { driver.copy(stream, {}); }).find("there is no stream") !=
        std::string::npos);
  const Stream other = driver.make_stream(0);
  float* a = floats(driver, 0, 1);
  CHECK(thrown_by([&] {
          driver.combine(other, {memory(0, a), {memory(0, a)}, 1, Type::f32, Op::bit_and, 1});
        }) == "device: bit_and is not defined for float32.");
}

TEST_CASE("device: the loss of a device reaches who waits, and leaves the others usable") {
  for (bool threads : {false, true}) {
    Emulation driver({.devices = 3, .threads = threads});
    const Stream from = driver.make_stream(0), to = driver.make_stream(1);
    const Event sent = driver.make_event(0), end = driver.make_event(1);
    float *a = floats(driver, 0, 1), *b = floats(driver, 1, 1), *c = floats(driver, 1, 1);
    b[0] = 3, c[0] = 5;
    driver.lose(0);
    driver.copy(from, {memory(1, b), memory(0, a), sizeof(float)});
    driver.record(sent, from);
    driver.wait(to, sent);
    driver.copy(to, {memory(1, c), memory(1, b), sizeof(float)});
    driver.record(end, to);
    CHECK(thrown_by([&] { driver.synchronize(end); }) ==
          "device: device 0 has gone; what was enqueued has not been done. Make a group of the "
          "others.");
    CHECK(c[0] == 5);
    driver.copy(to, {memory(1, c), memory(1, b), sizeof(float)});
    driver.record(end, to);
    driver.synchronize(end);
    CHECK(c[0] == 3);
  }
}

TEST_CASE("device: a sum for several devices is written to all of them, by links of their own") {
  for (bool threads : {false, true}) {
    Emulation driver({.devices = 3, .threads = threads, .keeps_work = true});
    const Stream stream = driver.make_stream(0);
    const Event end = driver.make_event(0);
    float *a = floats(driver, 0, 2), *b = floats(driver, 1, 2), *c = floats(driver, 2, 2);
    for (int i = 0; i < 2; ++i) a[i] = float(i + 2), b[i] = 10, c[i] = 0;
    driver.combine(stream, {.target = memory(0, a), .sources = {memory(0, a), memory(1, b)},
                            .count = 2, .op = Op::average, .divisor = 2,
                            .copies = {memory(1, b), memory(2, c)}});
    driver.record(end, stream);
    driver.synchronize(end);
    for (int i = 0; i < 2; ++i) {
      CHECK(a[i] == float(12 + i) / 2);
      CHECK(b[i] == a[i]);
      CHECK(c[i] == a[i]);
    }
    const auto work = driver.take_work();
    REQUIRE(work.size() == 1);
    CHECK(work[0].from == std::vector<int>{1});
    CHECK(work[0].to == std::vector<int>{1, 2});
    CHECK(timing(work, {.latency_s = 1, .copy_bytes_per_s = 8})[0].end_s == 3);   // twice 8 bytes
  }
}

// --- model time --------------------------------------------------------------------------------

Work copy_of(int from, int to, double bytes, std::vector<std::uint32_t> after = {}) {
  return {.device = to, .from = {from}, .bytes = bytes, .after = std::move(after)};
}

TEST_CASE("device: a device sends and receives at once, and one message at a time each way") {
  const Rates rates{.latency_s = 1, .copy_bytes_per_s = 10};
  const auto spans = timing({copy_of(0, 1, 20), copy_of(1, 0, 20), copy_of(0, 2, 20)}, rates);
  CHECK(spans[0].begin_s == 0);
  CHECK(spans[0].end_s == 3);
  CHECK(spans[1].end_s == 3);     // the other way round
  CHECK(spans[2].begin_s == 3);   // the engine of device 0 is taken
  CHECK(makespan_s(spans) == 6);
}

TEST_CASE("device: what may start goes in the order in which it was enqueued, and nothing idles") {
  const Rates rates{.copy_bytes_per_s = 1};
  // The third waits for the second, the fourth takes the free engine meanwhile.
  const auto spans = timing(
      {copy_of(0, 1, 1), copy_of(2, 3, 5), copy_of(0, 1, 1, {1}), copy_of(0, 1, 2)}, rates);
  CHECK(spans[3].begin_s == 1);
  CHECK(spans[2].begin_s == 5);
}

TEST_CASE("device: one process enqueues a piece of work at a time, and none begins before that") {
  const Rates rates{.copy_bytes_per_s = 1, .host_s = 4};
  const auto spans = timing(
      {copy_of(0, 1, 1), copy_of(2, 3, 9), copy_of(0, 1, 1), copy_of(1, 2, 1, {1})}, rates);
  CHECK(spans[0].begin_s == 0);
  CHECK(spans[1].begin_s == 4);
  CHECK(spans[2].begin_s == 8);    // its engine has been free for long
  CHECK(spans[3].begin_s == 13);   // enqueued at 12, but the second one ends later
}

TEST_CASE("device: combinations take the compute unit, and links for what they read elsewhere") {
  const Rates rates{.copy_bytes_per_s = 10, .combine_bytes_per_s = 5};
  const Work local{.combines = true, .device = 0, .bytes = 10, .combined = 10};
  const Work remote{.combines = true, .device = 0, .from = {1}, .bytes = 40, .combined = 10};
  const auto spans = timing({local, local, copy_of(2, 0, 10), remote}, rates);
  CHECK(spans[1].begin_s == 2);
  CHECK(spans[2].begin_s == 0);   // beside them
  CHECK(spans[3].begin_s == 4);
  CHECK(spans[3].end_s == 8);     // 40 bytes at 10 a second, the sums under it
}

TEST_CASE("device: a combination for others holds their inward engines, and its outward one") {
  const Rates rates{.copy_bytes_per_s = 10, .combine_bytes_per_s = 10};
  const Work spread{.combines = true, .device = 0, .to = {1}, .bytes = 20, .combined = 10};
  const auto spans = timing({spread, copy_of(2, 1, 10), copy_of(1, 0, 10), copy_of(0, 2, 10)},
                            rates);
  CHECK(spans[0].end_s == 2);
  CHECK(spans[1].begin_s == 2);   // device 1 receives
  CHECK(spans[2].begin_s == 0);   // and sends
  CHECK(spans[3].begin_s == 2);   // device 0 sends
}

}  // namespace
}  // namespace paceline::device
