// PortOf: the port over one binary interface.
#pragma once

#include <memory>

#include "transport/mpi/abi/binding.hpp"
#include "transport/mpi/port.hpp"

namespace paceline::mpi {

template <class A>
class PortOf : public MpiPort {
 public:
  // Keeps `world`, uses its communicator, and frees that through it in free().
  template <class World>
  explicit PortOf(std::shared_ptr<World> world)
      : mpi_(world->binding()),
        communicator_(world->communicator()),
        rank_(world->rank()),
        ranks_(world->ranks()),
        can_post_from_anybody_(world->can_post_from_anybody()),
        free_([world] { world->free(); }) {}

  int rank() const override { return rank_; }
  int ranks() const override { return ranks_; }
  double now_s() const override { return mpi_.call.Wtime(); }
  std::string text_of(int error) const override { return mpi_.text_of(error); }
  bool is_finalized() const override { return mpi_.is_set(mpi_.call.Finalized); }
  void free() override { free_(); }

  int tag_limit() const override {
    constexpr int kLeast = 32767;  // every MPI has so many
    int* limit = nullptr;
    int found = 0;
    const int code = mpi_.call.Comm_get_attr(mpi_.handle.world, A::tag_ub, &limit, &found);
    return code == A::success && found && limit ? *limit : kLeast;
  }

  int send(Mode mode, int peer, int tag, const std::byte* data, std::size_t bytes) override {
    const auto start = mode == Mode::matched ? mpi_.call.Issend : mpi_.call.Isend;
    const int message = next(peer);
    return started(message, start(data, int(bytes), mpi_.handle.byte, peer, tag, communicator_,
                                  &request(message)));
  }

  int recv(int peer, int tag, std::byte* data, std::size_t bytes) override {
    const int message = next(peer);
    messages_[std::size_t(message)].receives = true;
    return started(message, mpi_.call.Irecv(data, int(bytes), mpi_.handle.byte,
                                            peer == kAnybody ? A::any_source : peer, tag,
                                            communicator_, &request(message)));
  }

  bool can_post_from_anybody() const override { return can_post_from_anybody_; }

  int take(int tag, std::byte* data, std::size_t bytes) override {
    typename A::Message matched;
    typename A::Status status;
    int found = 0;
    int code = mpi_.call.Improbe(A::any_source, tag, communicator_, &found, &matched, &status);
    if (code == A::success && !found) return kNone;
    const int message = next(code == A::success ? status.MPI_SOURCE : rank_);
    messages_[std::size_t(message)].receives = true;
    if (code == A::success)
      code = mpi_.call.Imrecv(data, int(bytes), mpi_.handle.byte, &matched, &request(message));
    return started(message, code);
  }

  void poll(const std::vector<int>& messages) override {
    collect(messages);
    if (!asked_.empty()) look(mpi_.call.Testsome);
  }
  void wait(const std::vector<int>& messages) override {
    if (collect(messages) && !asked_.empty()) look(mpi_.call.Waitsome);
  }

  bool ended(int message, Ended& how) override {
    Message& m = messages_[std::size_t(message)];
    if (m.state != State::ended) return false;
    how = m.how;
    m.state = State::free;
    unused_.push_back(message);
    return true;
  }

  // Once for a message: Open MPI 4 dies in the second MPI_Cancel of a receive.
  void cancel(int message) override {
    Message& m = messages_[std::size_t(message)];
    if (m.state == State::open && !m.cancelled)
      m.cancelled = mpi_.call.Cancel(&m.request) == A::success;
  }

  void abandon(int message, Buffer memory) override {
    memory.release();  // MPI may still use it, so nothing frees it
    Message& m = messages_[std::size_t(message)];
    if (m.state == State::open) mpi_.call.Request_free(&m.request);
    m.state = State::free;
    unused_.push_back(message);
  }

 private:
  enum class State { free, open, ended };
  struct Message {
    typename A::Request request = {};
    State state = State::free;
    bool receives = false, cancelled = false;
    Ended how;
  };

  typename A::Request& request(int message) { return messages_[std::size_t(message)].request; }

  int next(int peer) {
    if (unused_.empty()) {
      unused_.push_back(static_cast<int>(messages_.size()));
      messages_.emplace_back();
    }
    const int message = unused_.back();
    unused_.pop_back();
    messages_[std::size_t(message)] = {};
    messages_[std::size_t(message)].how.peer = peer;
    return message;
  }

  int started(int message, int code) {
    Message& m = messages_[std::size_t(message)];
    m.state = code == A::success ? State::open : State::ended;
    m.how.error = code == A::success ? 0 : code;
    return message;
  }

  // Fills asked_ with those that are still open; false if one has ended already.
  bool collect(const std::vector<int>& messages) {
    asked_.clear();
    requests_.clear();
    bool all_open = true;
    for (int message : messages) {
      const Message& m = messages_[std::size_t(message)];
      if (m.state == State::ended) all_open = false;
      if (m.state != State::open) continue;
      asked_.push_back(message);
      requests_.push_back(m.request);
    }
    return all_open;
  }

  template <class Some>
  void look(Some some) {
    which_.resize(asked_.size());
    statuses_.resize(asked_.size());
    int count = 0;
    const int code =
        some(int(asked_.size()), requests_.data(), &count, which_.data(), statuses_.data());
    if (code != A::success && code != A::error_in_status) {
      for (int message : asked_) started(message, code);  // none of them can be asked any more
      return;
    }
    if (count == A::undefined) return;
    for (int i = 0; i < count; ++i)
      end(messages_[std::size_t(asked_[std::size_t(which_[std::size_t(i)])])],
          statuses_[std::size_t(i)], code == A::error_in_status);
  }

  void end(Message& m, const typename A::Status& status, bool some_failed) {
    m.state = State::ended;
    m.how.error = some_failed && status.MPI_ERROR != A::success ? status.MPI_ERROR : 0;
    int yes = 0, bytes = 0;
    if (m.cancelled && mpi_.call.Test_cancelled(&status, &yes) == A::success && yes)
      m.how.cancelled = true;
    if (!m.receives || m.how.cancelled || m.how.error) return;
    m.how.peer = status.MPI_SOURCE;
    if (mpi_.call.Get_count(&status, mpi_.handle.byte, &bytes) == A::success)
      m.how.bytes = std::size_t(std::max(bytes, 0));
  }

  Binding<A> mpi_;
  typename A::Comm communicator_;
  int rank_, ranks_;
  bool can_post_from_anybody_;
  std::function<void()> free_;
  std::vector<Message> messages_;
  std::vector<int> unused_;
  std::vector<int> asked_, which_;  // of look(), kept for their memory
  std::vector<typename A::Request> requests_;
  std::vector<typename A::Status> statuses_;
};

}  // namespace paceline::mpi
