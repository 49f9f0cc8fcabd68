// ShmStages: stages as unnamed files, found through a table in their owner's inbox.
//
// A stage is made when its communicator first needs it, without a word to anybody: its owner enters
// it into the table, and peers look there while they wait for the owner's first signal.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "transport/shm/inbox.hpp"
#include "transport/shm/segment.hpp"
#include "transport/stage.hpp"

namespace paceline {

class ShmStages : public Stages {
 public:
  // `at`: rank of the transport -> rank of the inboxes, which have provided for stages.
  ShmStages(Inboxes& boxes, int rank, const std::vector<int>& at, std::string folder);

  std::size_t bytes() const override { return bytes_; }
  Stage open(std::uint64_t context) override;
  std::optional<Stage> find(int peer, std::uint64_t context) override;
  void close(std::uint64_t context) override;
  const std::string& why_not_attached() const override { return boxes_.memory().why_not(); }
  const char* attached_by() const override { return boxes_.memory().way(); }
  int copy(const PeerCopy& wanted) override;
  bool has_ended(int peer) const override;

 private:
  using Name = std::pair<int, std::uint64_t>;   // rank of the inboxes, communicator

  Stage keep(const Name& name, SharedFile file);

  Inboxes& boxes_;
  int rank_;
  const std::vector<int>& at_;
  std::string folder_;
  std::size_t bytes_;
  SharedFile reserved_;   // when the ranks met: of the first communicator that has a stage
  std::map<Name, SharedFile> files_;
};

}  // namespace paceline
