// ScratchPool: working memory that operations borrow while they are under way.
//
// Shapes of call are many, operations under way are few: memory belongs to the pool, not to the
// shape. A second call of a shape finds what the first has given back, so it allocates nothing.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

namespace paceline {

class ScratchPool {
 public:
  struct Block {
    std::unique_ptr<std::byte[]> data;
    std::size_t bytes = 0;
  };

  // At least so many bytes, at most twice as many; none for 0.
  Block take(std::size_t bytes);
  void give(Block block);

  std::size_t resting() const { return resting_; }  // bytes that nobody has borrowed

  // More than this is not kept for later.
  static constexpr std::size_t kMostResting = std::size_t{512} << 20;

 private:
  std::vector<Block> free_;
  std::size_t resting_ = 0;
};

}  // namespace paceline
