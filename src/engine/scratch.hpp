// ScratchPool: working memory that operations borrow while they are under way.
//
// There are many shapes of calls but few operations under way, so memory belongs to the pool, not
// to a shape. A second call of a shape gets the memory of the first and allocates nothing.
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

  // Returns at least `bytes` bytes, at most twice as many; none for 0.
  Block take(std::size_t bytes);
  void give(Block block);

  std::size_t resting() const { return resting_; }  // bytes that no operation has borrowed

  // Most bytes that are kept for later.
  static constexpr std::size_t kMostResting = std::size_t{512} << 20;

 private:
  std::vector<Block> free_;
  std::size_t resting_ = 0;
};

}  // namespace paceline
