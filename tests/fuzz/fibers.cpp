#include "fuzz/fibers.hpp"

#include <cxxabi.h>
#include <sys/mman.h>
#include <ucontext.h>

#include <cstring>
#include <limits>
#include <utility>

#include "base/error.hpp"
#include "runtime/progress/clock.hpp"

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/common_interface_defs.h>
#elif defined(__SANITIZE_THREAD__)
#include <sanitizer/tsan_interface.h>
#endif

namespace paceline::fuzz {
namespace {

constexpr std::size_t kStackBytes = 512u << 10;
constexpr double kTurnS = 1e-6, kStillS = 1e-5;   // of time, while something moves and while not
constexpr int kPatience = 200;   // turns in which nothing moves before time goes faster
constexpr double kNever = std::numeric_limits<double>::infinity();

Fibers* running = nullptr;

// What the C++ library knows of exceptions that are being handled belongs to a thread; here to a
// fiber.
struct Handling {
  void* caught = nullptr;
  unsigned uncaught = 0;
  void swap_with_thread() {
    Handling now;
    void* const of_thread = abi::__cxa_get_globals();
    std::memcpy(static_cast<void*>(&now), of_thread, sizeof(now));
    std::memcpy(of_thread, static_cast<void*>(this), sizeof(now));
    *this = now;
  }
};

}  // namespace

struct Fibers::Fiber {
  std::function<void()> body;
  ucontext_t own{}, caller{};
  void* stack = MAP_FAILED;
  Handling handling;
  bool done = false, ending = false, told = false, quiet = false;
  double wakes_s = 0, held_from_s = kNever, held_until_s = kNever;
  void* shadow = nullptr;          // of a sanitizer
  void* caller_shadow = nullptr;
  const void* caller_stack = nullptr;
  std::size_t caller_bytes = 0;

  Fiber() = default;
  Fiber(const Fiber&) = delete;
  ~Fiber() {
#if defined(__SANITIZE_THREAD__)
    __tsan_destroy_fiber(shadow);
#endif
    if (stack != MAP_FAILED) munmap(stack, kStackBytes);
  }
  bool is_held(double now_s) const { return now_s >= held_from_s && now_s < held_until_s; }
  double ready_s(double now_s) const {   // when it can go on
    const double then_s = std::max(wakes_s, now_s);
    return is_held(then_s) ? held_until_s : then_s;
  }
};

Fibers::Fibers(std::uint64_t seed) : random_(seed) {}
Fibers::~Fibers() = default;
Fibers* Fibers::active() { return running; }

void Fibers::add(std::function<void()> body) {
  auto fiber = std::make_unique<Fiber>();
  fiber->body = std::move(body);
  fiber->stack = mmap(nullptr, kStackBytes, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
  require(fiber->stack != MAP_FAILED, "no memory for a fiber");
  getcontext(&fiber->own);
  fiber->own.uc_stack.ss_sp = fiber->stack;
  fiber->own.uc_stack.ss_size = kStackBytes;
  fiber->own.uc_link = nullptr;
  const auto self = reinterpret_cast<std::uintptr_t>(this);   // makecontext passes integers
  makecontext(&fiber->own, reinterpret_cast<void (*)()>(&Fibers::enter), 2,
              static_cast<unsigned>(self >> 32), static_cast<unsigned>(self));
#if defined(__SANITIZE_THREAD__)
  fiber->shadow = __tsan_create_fiber(0);
#endif
  fibers_.push_back(std::move(fiber));
}

void Fibers::enter(unsigned high, unsigned low) {
  auto* self = reinterpret_cast<Fibers*>(static_cast<std::uintptr_t>(high) << 32 | low);
  Fiber& me = *self->fibers_[std::size_t(self->current_)];
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_finish_switch_fiber(nullptr, &me.caller_stack, &me.caller_bytes);
#endif
  try {
    me.body();
  } catch (const Ended&) {
  }
  me.body = nullptr;
  me.done = true;
  self->suspend();
}

void Fibers::resume(int fiber) {
  Fiber& f = *fibers_[std::size_t(fiber)];
  current_ = fiber;
  running = this;
  f.handling.swap_with_thread();
#if defined(__SANITIZE_ADDRESS__)
  void* mine = nullptr;
  __sanitizer_start_switch_fiber(&mine, f.stack, kStackBytes);
#elif defined(__SANITIZE_THREAD__)
  f.caller_shadow = __tsan_get_current_fiber();
  __tsan_switch_to_fiber(f.shadow, 0);
#endif
  swapcontext(&f.caller, &f.own);
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_finish_switch_fiber(mine, nullptr, nullptr);
#endif
  f.handling.swap_with_thread();
  running = nullptr;
  current_ = -1;
}

void Fibers::suspend() {
  Fiber& me = *fibers_[std::size_t(current_)];
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_start_switch_fiber(me.done ? nullptr : &me.shadow, me.caller_stack, me.caller_bytes);
#elif defined(__SANITIZE_THREAD__)
  __tsan_switch_to_fiber(me.caller_shadow, 0);
#endif
  swapcontext(&me.own, &me.caller);
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_finish_switch_fiber(me.shadow, &me.caller_stack, &me.caller_bytes);
#endif
  if (me.ending && !std::exchange(me.told, true) && !me.quiet) throw Ended{};
}

void Fibers::yield(bool moved) {
  still_ = moved ? 0 : still_ + 1;
  now_s_ += still_ > kPatience * int(fibers_.size()) ? kStillS : kTurnS * double(random_.below(4));
  if (!is_ending()) suspend();
}

void Fibers::sleep(double seconds) {
  fibers_[std::size_t(current_)]->wakes_s = now_s_ + seconds;
  if (is_ending()) now_s_ += seconds;
  else suspend();
}

bool Fibers::is_ending() const { return fibers_[std::size_t(current_)]->told; }
void Fibers::leave() { fibers_[std::size_t(current_)]->quiet = true; }

void Fibers::hold(int fiber, double from_s, double until_s) {
  fibers_[std::size_t(fiber)]->held_from_s = from_s;
  fibers_[std::size_t(fiber)]->held_until_s = until_s;
}

int Fibers::pick() {
  std::vector<int> ready;
  double first_s = kNever;
  for (std::size_t i = 0; i < fibers_.size(); ++i) {
    const Fiber& f = *fibers_[i];
    if (f.done) continue;
    const double ready_s = f.ready_s(now_s_);
    if (ready_s <= now_s_) ready.push_back(int(i));
    else first_s = std::min(first_s, ready_s);
  }
  if (!ready.empty()) return ready[random_.below(ready.size())];
  if (first_s == kNever) return -1;
  now_s_ = first_s;
  return pick();
}

// Destructors are run in all fibers that have begun, one after the other.
void Fibers::unwind() {
  for (std::size_t i = 0; i < fibers_.size(); ++i) {
    fibers_[i]->ending = true;
    while (!fibers_[i]->done) resume(int(i));
  }
}

bool Fibers::run(long most_turns) {
  for (long turn = 0; turn < most_turns; ++turn) {
    const int next = pick();
    if (next < 0) {
      unwind();
      return true;
    }
    resume(next);
  }
  unwind();
  return false;
}

}  // namespace paceline::fuzz

namespace paceline {

// Takes the place of the core's own, src/runtime/progress/clock.cpp, in programs that are linked
// with this.
double now_s() {
  if (const auto* fibers = fuzz::Fibers::active()) return fibers->now_s();
  timespec t{};
  clock_gettime(CLOCK_MONOTONIC, &t);
  return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

}  // namespace paceline
