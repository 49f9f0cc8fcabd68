// Memory: the content of every block of every rank while a world runs symbolically.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "ir/contract.hpp"
#include "verify/match.hpp"

namespace paceline {

class Memory {
 public:
  using Content = std::vector<std::optional<Value>>;   // by block

  explicit Memory(const World& world);

  Content read(int rank, const Segment& segment) const;
  void write(int rank, const Segment& segment, const Content& content);

  // Does a local step, or the reduction of a recv_reduce with `incoming`. Returns what is wrong
  // with it.
  std::string apply(const Schedule& schedule, const Step& step, const Content& incoming = {});

  // Compares with the contract.
  std::string judge(const World& world) const;

  std::string fingerprint() const;   // equal exactly for equal contents

 private:
  using Place = std::tuple<int, Space, int>;           // rank, space, slot
  static Place place_of(int rank, const Segment& segment) {
    return {segment.owner == kOwn ? rank : segment.owner, segment.space, segment.slot};
  }

  std::map<Place, Content> content_;
  std::map<Place, std::pair<Space, int>> shapes_;      // like and origin of what a slot holds
};

std::string key(const Memory::Content& content);   // equal exactly for equal contents

}  // namespace paceline
