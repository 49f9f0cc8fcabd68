// Ranks as processes, forked by a test, that find each other by a folder.
#pragma once

#include <doctest/doctest.h>
#include <signal.h>
#include <unistd.h>

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "bootstrap/join.hpp"
#include "expect_fault.hpp"
#include "runtime/communicator.hpp"
#include "skip.hpp"

namespace paceline::test {

// What watches every access to memory takes time for it, and memory and descriptors of its own.
#if defined(__SANITIZE_THREAD__)
constexpr unsigned kPatience = 10;
#else
constexpr unsigned kPatience = 1;
#endif
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
constexpr bool kHasSanitizer = true;
#else
constexpr bool kHasSanitizer = false;
#endif

// Ranks that are to end by a signal, and by which.
using Ends = std::map<int, int>;

// Runs body(rank, store folder) in p processes; returns what went wrong on any of them. A rank that
// hangs is ended after `limit_s`, or some times as long, by its own alarm.
std::string run_ranks(int p, unsigned limit_s,
                      const std::function<std::string(int, const std::string&)>& body,
                      const Ends& ends = {});

// Says to await_note() of other ranks that this one has come so far.
void note(const std::string& folder, const std::string& what);

// Returns when the other rank has: no time would be sure to be long enough for it.
void await_note(const std::string& folder, const std::string& what);

Communicator join(int rank, int ranks, const std::string& folder, int timeout_ms = 20000,
                  Progress progress = Progress::caller);

// Whether the system copies between the memory of these ranks, which it need not.
bool is_attached(const Communicator& world);

// Whether it does so between two ranks here; the test that asks is skipped otherwise.
bool can_attach();

}  // namespace paceline::test
