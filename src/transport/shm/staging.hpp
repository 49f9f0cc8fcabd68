// ShmStaging: stages in slabs, whose directories their owner fills and its peers look into.
//
// A stage is made when its communicator first needs it, without a message: its owner enters it into
// the directory, and peers look there while they wait for the owner's first signal. The first one
// is there as a whole from the meeting on; later ones begin with room for short calls.
#pragma once

#include <algorithm>
#include <deque>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "transport/shm/inbox.hpp"
#include "transport/shm/slab.hpp"
#include "transport/staging.hpp"

namespace paceline {

class ShmStaging : public StagingBuffers {
 public:
  // `at`: rank of the transport -> rank of the inboxes, which have provided for stages.
  ShmStaging(Inboxes& boxes, int rank, const std::vector<int>& at, std::string folder);

  std::size_t bytes() const override { return bytes_; }
  StagingBuffer open(std::uint64_t context) override;
  void reserve(std::uint64_t context, std::size_t bytes) override;
  std::optional<StagingBuffer> find(int peer, std::uint64_t context) override;
  bool is_found(const StagingBuffer& own, int peer) const override;
  void close(std::uint64_t context) override;
  void clear() override;
  const std::string& why_not_attached() const override { return boxes_.memory().why_not(); }
  const char* attached_by() const override { return boxes_.memory().way(); }
  int copy(const PeerCopy& wanted) override;
  bool has_ended(int peer) const override;

 private:
  struct Place {
    std::size_t slab;
    int slot;
  };
  using Held = std::pair<int, Place>;   // rank of the inboxes

  std::size_t at_first() const { return std::min(bytes_, StagingBuffer::kAtFirst); }
  void add_slab();
  bool is_held(const Place& place) const;
  const Slab* slab_of(int owner, std::size_t index);   // null: there is none
  std::optional<StagingBuffer> hold(int owner, const Place& place, std::uint64_t context);

  Inboxes& boxes_;
  int rank_;
  const std::vector<int>& at_;
  std::string folder_;
  std::size_t bytes_;
  std::vector<Slab> own_;
  std::vector<std::vector<Slab>> theirs_;   // by rank of the inboxes
  std::map<std::uint64_t, Place> open_;     // own ones, by communicator
  std::multimap<std::uint64_t, Held> held_;
  std::deque<Place> free_;                  // the one that was closed last comes first
  std::vector<Place> closed_;               // which peers may still hold
};

}  // namespace paceline
