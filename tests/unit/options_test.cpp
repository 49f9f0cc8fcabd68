// The options table: its rows are sound, values are parsed strictly, errors name a remedy.
#include "base/options.hpp"

#include <doctest/doctest.h>

#include <cstdlib>
#include <set>
#include <string>

#include "base/error.hpp"
#include "ir/problem.hpp"

using namespace paceline;

namespace {

// Sets a variable for as long as it lives.
class Variable {
 public:
  Variable(std::string name, const char* value) : name_(std::move(name)) {
    setenv(name_.c_str(), value, 1);
  }
  ~Variable() { unsetenv(name_.c_str()); }

 private:
  std::string name_;
};

template <class Action>
std::string usage_error_of(Action action) {
  try {
    action();
  } catch (const Error& error) {
    return error.fault() == Fault::usage ? error.what() : "wrong fault";
  }
  return "no error";
}

bool contains(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

bool accepts(Option option, std::string_view text) {
  return usage_error_of([&] { (void)checked(row_of(option), text, "here"); }) == "no error";
}

}  // namespace

TEST_CASE("options: every row is sound") {
  std::set<std::string_view> names;
  for (const OptionRow& row : option_rows()) {
    CAPTURE(row.name);
    CHECK(names.insert(row.name).second);
    CHECK(&find_option(row.name) == &row);
    CHECK(row.sentence.ends_with('.'));
    CHECK(row.least <= row.most);
    const bool has_words = row.kind == OptionKind::choice || row.kind == OptionKind::pairs ||
                           row.kind == OptionKind::names;
    CHECK(has_words == !row.words.empty());
    CHECK(!range_of(row).empty());
    CHECK_NOTHROW(checked(row, row.fallback, "the default"));
  }
  CHECK(names.size() == kOptions);
  for (int i = 0; i < kOptions; ++i) CHECK(&row_of(Option(i)) == &option_rows()[std::size_t(i)]);
}

TEST_CASE("options: the default holds until the variable is set, and again when it is empty") {
  CHECK(number_of(Option::timeout_ms) == 1800000);
  CHECK(number_of(Option::warn_ms) == 30000);
  CHECK(number_of(Option::shm_bytes) == 32 << 20);
  CHECK(text_of(Option::progress) == "thread");
  CHECK(value_of(row_of(Option::timeout_ms)).is_default);
  {
    const Variable set("PACELINE_TIMEOUT_MS", "1234");
    CHECK(number_of(Option::timeout_ms) == 1234);
    CHECK(!value_of(row_of(Option::timeout_ms)).is_default);
  }
  const Variable set("PACELINE_TIMEOUT_MS", "");
  CHECK(number_of(Option::timeout_ms) == 1800000);
}

TEST_CASE("options: names are all, none, or some of those that there are") {
  CHECK(is_named(Option::preload, "allreduce"));
  const Variable set("PACELINE_PRELOAD", "reduce,barrier");
  CHECK(is_named(Option::preload, "reduce"));
  CHECK(is_named(Option::preload, "barrier"));
  CHECK(!is_named(Option::preload, "reduce_scatter"));
  CHECK(accepts(Option::preload, "none"));
  for (const char* wrong :
       {"", "all,none", "scan", "reduce,reduce", "reduce,", "reduce, barrier"})
    CHECK(!accepts(Option::preload, wrong));
}

TEST_CASE("options: bytes take units and end up as one number") {
  const Variable set("PACELINE_SHM_BYTES", "64MiB");
  CHECK(number_of(Option::shm_bytes) == 64 << 20);
  CHECK(text_of(Option::shm_bytes) == "67108864");
  CHECK(parse_bytes("0") == 0);
  CHECK(parse_bytes("17B") == 17);
  CHECK(parse_bytes("3 KiB") == 3072);
  CHECK(parse_bytes("1MB") == 1000000);
  CHECK(parse_bytes("3 kB") == 3000);
  CHECK(parse_bytes("3KB") == 3000);
  CHECK(parse_bytes("2GB") == 2000000000);
  CHECK(parse_bytes("9223372TB") == std::int64_t{9223372} * 1000000000000);
  CHECK(parse_bytes("2TiB") == std::int64_t{2} << 40);
  CHECK(parse_bytes("8388607TiB") == std::int64_t{8388607} << 40);   // the last that fits
  for (const char* bad : {"", "MiB", "-1", "+1", "1.5MiB", "1mb", "1mib", "1  MiB", " 1", "1 ",
                          "0x10", "8388608TiB", "9223373TB", "9223372036854775808", "1MiB2"}) {
    CAPTURE(bad);
    CHECK(!parse_bytes(bad));
  }
}

TEST_CASE("options: only whole numbers inside the range pass") {
  for (const char* good : {"0", "1", "1800000", "007"}) CHECK(accepts(Option::timeout_ms, good));
  for (const char* bad : {"", " ", "-1", "1.5", "1e3", "12s", " 5", "5 ", "+5", "2073600001",
                          "99999999999999999999", "0x5", "five"}) {
    CAPTURE(bad);
    CHECK(!accepts(Option::timeout_ms, bad));
  }
  CHECK(accepts(Option::ranks, "1"));
  CHECK(!accepts(Option::ranks, "0"));
  CHECK(checked(row_of(Option::timeout_ms), "007", "here") == "7");   // one spelling
}

TEST_CASE("options: choices, folders and texts are checked") {
  CHECK(accepts(Option::progress, "caller"));
  for (const char* bad : {"", "Caller", "caller|thread", "call", "threads"})
    CHECK(!accepts(Option::progress, bad));
  CHECK(accepts(Option::shm_dir, "/dev/shm"));
  CHECK(!accepts(Option::shm_dir, "dev/shm"));
  CHECK(!accepts(Option::shm_dir, ""));
  CHECK(accepts(Option::store, std::string(4095, 'x')));
  CHECK(!accepts(Option::store, std::string(4096, 'x')));
}

TEST_CASE("options: pairs name each collective once") {
  for (const char* good : {"", "allreduce=ring", "allreduce=ring,broadcast=chain"})
    CHECK(accepts(Option::algorithm, good));
  for (const char* bad : {"ring", "=ring", "allreduce=", "allreduce=ring,", ",allreduce=ring", ",",
                          "allreduce=ring,allreduce=binomial", "allreduce=ring=x",
                          "allreduce = ring", "Allreduce=ring", "allreduc=ring",
                          "barrier=dissemination", "allreduce|broadcast=ring"}) {
    CAPTURE(bad);
    CHECK(!accepts(Option::algorithm, bad));
  }
  for (int i = 0; i < kCollectives; ++i) {   // all there are, but the one without a message
    const std::string name(name_of(Collective(i)));
    CHECK(accepts(Option::algorithm, name + "=x") == (name != "barrier"));
  }
  const Variable set("PACELINE_ALGORITHM", "allreduce=ring,broadcast=chain");
  CHECK(word_for(Option::algorithm, "allreduce") == "ring");
  CHECK(word_for(Option::algorithm, "broadcast") == "chain");
  CHECK(word_for(Option::algorithm, "reduce").empty());
}

TEST_CASE("options: pieces are a number, or the size of one") {
  const auto pieces = [](std::string_view text) {
    const Pieces found = pieces_from(checked(row_of(Option::segments), text, "here"));
    return std::pair(found.number, found.bytes);
  };
  using Found = std::pair<int, std::size_t>;
  CHECK(pieces("0") == Found(0, 0));
  CHECK(pieces("4096") == Found(4096, 0));
  CHECK(pieces("4096B") == Found(0, 4096));
  CHECK(pieces("4MiB") == Found(0, 4 << 20));
  CHECK(pieces("64 KiB") == Found(0, 64 << 10));
  for (const char* wrong : {"", "4097", "-1", "0MiB", "-4MiB", "MiB", "4Mi B", "1.5"})
    CHECK_MESSAGE(!accepts(Option::segments, wrong), std::string(wrong));
}

TEST_CASE("options: an error names the variable, its value and the range") {
  const Variable set("PACELINE_SEGMENTS", "many");
  CHECK(usage_error_of([] { (void)text_of(Option::segments); }) ==
        "PACELINE_SEGMENTS is 'many'; it must be a whole number from 0 to 4096, or the size of one "
        "with its unit, such as 4MiB.");
  const Variable progress("PACELINE_PROGRESS", "nobody");
  CHECK(usage_error_of([] { (void)text_of(Option::progress); }) ==
        "PACELINE_PROGRESS is 'nobody'; it must be caller or thread.");
  const std::string error = usage_error_of(
      [] { (void)checked(row_of(Option::window), std::string(100000, '1'), "--window"); });
  CHECK(error.starts_with("--window is '111"));
  CHECK(error.size() < 200);
  const std::string unknown = usage_error_of([] { (void)find_option("timeout"); });
  CHECK(contains(unknown, "timeout_ms, start_timeout_ms"));
}

TEST_CASE("options: variables that nobody reads are found") {
  CHECK(unknown_variables().empty());
  const Variable misspelt("PACELINE_TIMEOUT", "5"), for_tests("PACELINE_SHORT", "1");
  const Variable known("PACELINE_WINDOW", "2"), other("XPACELINE_WINDOW", "2");
  CHECK(unknown_variables() == std::vector<std::string>{"PACELINE_TIMEOUT"});
}
