// Polled: the reading of a schedule that sends messages. A step runs once those before it are done;
// whoever drives the transport drives it.
#pragma once

#include <vector>

#include "engine/operation.hpp"

namespace paceline {

class PolledOperation : public Operation {
 public:
  PolledOperation(std::shared_ptr<const Bound> bound, const Channel& channel);

  bool advance(Transport& transport) override;
  std::vector<int> waits_for() const override;

 private:
  struct Reduction {  // a recv_reduce, while its message arrives
    const PolledOperation* operation = nullptr;
    std::uint32_t step = 0;
  };

  void begin() override;
  void cancel(Transport& transport) override;
  void run(std::uint32_t step, Transport& transport);
  void post(std::uint32_t step, Transport& transport);
  void end(std::uint32_t step);
  static void consume(void* state, std::size_t offset, const std::byte* data, std::size_t bytes);
  void consume(const BoundStep& step, std::size_t offset, const std::byte* data,
               std::size_t bytes) const;

  std::vector<std::uint32_t> missing_;                // predecessors not done, per step
  std::vector<std::uint32_t> ready_;                  // a queue
  std::size_t next_ready_ = 0;
  std::vector<Transfer> transfers_;        // one per step that talks
  std::vector<std::int32_t> transfer_of_;  // per step
  std::vector<Reduction> reductions_;
  std::vector<std::uint32_t> running_;  // steps with a transfer under way
  std::size_t open_ = 0;
  std::vector<double> begun_s_;
};

}  // namespace paceline
