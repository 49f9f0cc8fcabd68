#include "fuzz/command.hpp"

#include <chrono>
#include <cstdio>
#include <sstream>

#include "base/error.hpp"
#include "fuzz/loop.hpp"
#include "fuzz/tape.hpp"

namespace paceline::fuzz {
namespace {

constexpr int kUsual = 3;   // ranks, where they are processes

Options read(const std::vector<std::string>& words) {
  Options r;
  std::size_t at = 0;
  r.what = words[at++];
  if (at < words.size() && words[at][0] != '-') r.how = words[at++];
  while (at < words.size()) {
    const std::string name = words[at++];
    if (name == "--only-mpi" || name == "--threads" || name == "--fast") {
      (name == "--threads" ? r.threads : name == "--fast" ? r.fast : r.only_mpi) = true;
      continue;
    }
    if (at == words.size()) fail(Fault::usage, "fuzz: ", name, " wants a value.");
    const std::string& value = words[at++];
    if (name == "--seed") r.seed = std::stoull(value);
    else if (name == "--programs") r.programs = std::stoi(value);
    else if (name == "--ranks") r.ranks = std::stoi(value);
    else if (name == "--seconds") r.seconds = std::stod(value);
    else if (name == "--library") r.library = value;
    else if (name == "--folder") r.folder = value;
    else if (name == "--wrong-message") r.wrong_message = std::stoi(value);
    else if (name != "--keep") fail(Fault::usage, "fuzz: unknown option ", name);
    std::istringstream list(name == "--keep" ? value : "");
    for (std::string call; std::getline(list, call, ',');) r.kept.push_back(std::stoi(call));
  }
  if (r.ranks == 0 && r.how != "loop") r.ranks = kUsual;
  return r;
}

int play_on_loop(const Options& options) {
  const auto begun = std::chrono::steady_clock::now();
  int n = 0;
  for (;; ++n) {
    const double passed_s =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - begun).count();
    if (options.seconds > 0 ? passed_s > options.seconds : n >= options.programs) break;
    const std::uint64_t seed = options.seed + std::uint64_t(n);
    Faults faults = weather(seed);
    faults.wrong_message = options.wrong_message;
    const std::string bad = play_loop(program_of(options, n), faults).trouble();
    if (bad.empty()) continue;
    std::printf("seed %llu: %s\n", static_cast<unsigned long long>(seed), bad.c_str());
    return 1;
  }
  std::printf("loop: %d programs from seed %llu on end rightly\n", n,
              static_cast<unsigned long long>(options.seed));
  return 0;
}

int play(const Options& options) {
  if (options.how == "loop") return play_on_loop(options);
  if (options.how == "mpi") return play_mpi(options);
  if (options.how != "shm") fail(Fault::usage, "fuzz play: loop, shm or mpi?");
  const std::string bad = play_shm(options);
  if (bad.empty())
    std::printf("shm: %d programs from seed %llu on end rightly on %d ranks\n", options.programs,
                static_cast<unsigned long long>(options.seed), options.ranks);
  else
    std::printf("%s\n", bad.c_str());
  return bad.empty() ? 0 : 1;
}

}  // namespace

Program program_of(const Options& options, int n) {
  const std::uint64_t seed = options.seed + std::uint64_t(n);
  const bool tapes = options.what == "tapes" || options.what == "judge" || options.how == "preload";
  Program program =
      options.how == "loop"
          ? loop_program(seed, options.ranks)
          : generate(seed, {.ranks = options.ranks,
                            .dialect = tapes ? Dialect::mpi : Dialect::core,
                            .numbers = options.fast ? Numbers::fast : Numbers::stable});
  return options.kept.empty() ? program : thinned(program, options.kept);
}

int command(const std::vector<std::string>& words) {
  try {
    const Options options = read(words);
    if (options.what == "play") return play(options);
    if (options.what == "tapes") return write_tapes(options);
    if (options.what == "judge") return judge_tapes(options);
    for (int n = 0; n < options.programs; ++n)
      std::printf("%s", text_of(program_of(options, n)).c_str());
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 2;
  }
}

}  // namespace paceline::fuzz
