// MessageOperation: executes a schedule of sends and receives; a step starts when its predecessors
// are done. The thread that drives the transport drives it.
#pragma once

#include <optional>
#include <vector>

#include "arrival/notes.hpp"
#include "engine/operation.hpp"

namespace paceline {

class MessageOperation : public Operation {
 public:
  MessageOperation(std::shared_ptr<const CompiledSchedule> bound, const Channel& channel);

  bool advance(Transport& transport) override;
  std::vector<int> waits_for() const override;
  void sighted(int peer, const Key& key) override;
  Notes* notes() override { return notes_ ? &*notes_ : nullptr; }

 protected:
  void begin() override;
  void cancel(Transport& transport) override;
  virtual void post(std::uint32_t step, Transport& transport);   // for steps that talk to a peer
  virtual void end_all() { complete(); }                         // after the last step
  void end(std::uint32_t step);

  std::vector<double> begun_s_;   // by step, if events are recorded
  std::optional<Notes> notes_;

 private:
  struct Reduction {  // a recv_reduce, while its message arrives
    MessageOperation* operation = nullptr;
    std::uint32_t step = 0;
  };

  void run(std::uint32_t step, Transport& transport);
  static void consume(void* state, std::size_t offset, const std::byte* data, std::size_t bytes);
  void consume(std::uint32_t step, std::size_t offset, const std::byte* data, std::size_t bytes);
  void consume(const CompiledStep& step, std::size_t offset, const std::byte* data,
               std::size_t bytes) const;
  // True if this step's message ends with notes.
  bool is_noted(std::uint32_t step) const;
  std::size_t message_of(std::uint32_t step) const {
    return static_cast<std::size_t>(transfer_of_[step]);
  }

  std::vector<std::uint32_t> missing_;                // predecessors not done, per step
  std::vector<std::uint32_t> ready_;                  // a queue
  std::size_t next_ready_ = 0;
  std::vector<Transfer> transfers_;        // one per step that talks
  std::vector<std::int32_t> transfer_of_;  // per step
  std::vector<Reduction> reductions_;
  std::vector<std::uint32_t> running_;  // steps with a transfer under way
  std::size_t open_ = 0;
  std::vector<std::size_t> by_key_;   // receives with notes, sorted by peer and key
};

}  // namespace paceline
