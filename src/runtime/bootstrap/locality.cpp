#include "runtime/bootstrap/locality.hpp"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <map>

#include "base/processors.hpp"
#include "base/str.hpp"

namespace paceline {
namespace {

namespace fs = std::filesystem;

std::string line_of(const fs::path& file) {
  std::string line;
  std::getline(std::ifstream(file), line);
  return line;
}

// The number at the beginning of a text such as "0-7,16-23"; -1: none.
int leading_number(std::string_view text) {
  int number = -1;
  std::from_chars(text.data(), text.data() + text.size(), number);
  return number;
}

// Of entries like "node3" or "index2" in a folder, their numbers.
std::vector<int> numbers_in(const fs::path& folder, std::string_view prefix) {
  std::vector<int> numbers;
  std::error_code error;   // a folder that is not there has none
  for (const auto& entry : fs::directory_iterator(folder, error)) {
    const std::string name = entry.path().filename().string();
    if (!name.starts_with(prefix)) continue;
    const int number = leading_number(std::string_view(name).substr(prefix.size()));
    if (number >= 0) numbers.push_back(number);
  }
  return numbers;
}

// The highest level that holds data. Caches are numbered differently by different systems: the
// first processor that shares it names it.
int last_cache(const fs::path& processor) {
  int highest = 0, cache = -1;
  for (const int index : numbers_in(processor / "cache", "index")) {
    const fs::path one = processor / "cache" / str("index", index);
    const int level = leading_number(line_of(one / "level"));
    if (level <= highest || line_of(one / "type") == "Instruction") continue;
    highest = level;
    cache = leading_number(line_of(one / "shared_cpu_list"));
  }
  return cache;
}

int numa_node(const fs::path& processor) {
  const std::vector<int> nodes = numbers_in(processor, "node");
  return nodes.size() == 1 ? nodes[0] : -1;
}

// The groups that one kind of locality makes, or why it makes none.
Grouping grouping_by(const std::vector<int>& places, const std::string& kind) {
  std::map<int, int> group_of;   // a place -> its group
  std::vector<int> sizes;
  Grouping out;
  for (const int place : places) {
    if (place < 0)
      return {{}, str("rank ", out.of_rank.size(), " is bound to no ", kind)};
    const auto [at, is_new] = group_of.try_emplace(place, static_cast<int>(sizes.size()));
    if (is_new) sizes.push_back(0);
    ++sizes[static_cast<std::size_t>(at->second)];
    out.of_rank.push_back(at->second);
  }
  const auto [least, most] = std::minmax_element(sizes.begin(), sizes.end());
  if (sizes.size() < 2) return {{}, str("all ranks share a ", kind)};
  if (*least != *most)
    return {{}, str("from ", *least, " to ", *most, " ranks share a ", kind)};
  if (*most < 2) return {{}, str("no two ranks share a ", kind)};
  out.why = str(sizes.size(), " groups of ", *most, " ranks that share a ", kind);
  return out;
}

}  // namespace

std::vector<Locality> localities_of(const std::vector<int>& processors, const std::string& folder) {
  std::vector<Locality> out;
  for (const int processor : processors) {
    const fs::path path = fs::path(folder) / str("cpu", processor);
    out.push_back({numa_node(path), last_cache(path)});
  }
  return out;
}

Locality common_to(const std::vector<Locality>& processors) {
  if (processors.empty()) return {};
  Locality common = processors[0];
  for (const Locality& one : processors) {
    if (one.numa != common.numa) common.numa = -1;
    if (one.cache != common.cache) common.cache = -1;
  }
  return common;
}

Grouping grouping_of(const std::vector<Locality>& ranks) {
  std::vector<int> numa, cache;
  for (const Locality& rank : ranks) {
    numa.push_back(rank.numa);
    cache.push_back(rank.cache);
  }
  Grouping by_numa = grouping_by(numa, "NUMA node");
  if (!by_numa.of_rank.empty()) return by_numa;
  Grouping by_cache = grouping_by(cache, "last-level cache");
  if (by_cache.of_rank.empty()) by_cache.why = str("no groups: ", by_numa.why, ", ", by_cache.why);
  return by_cache;
}

}  // namespace paceline
