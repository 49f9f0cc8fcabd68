#include "verify/run.hpp"

#include <algorithm>

#include "base/str.hpp"

namespace paceline {
namespace {

bool is_local(Kind kind) {
  return kind == Kind::reduce || kind == Kind::copy || kind == Kind::finish;
}
bool is_arrival(Kind kind) {
  return kind == Kind::recv || kind == Kind::recv_reduce || kind == Kind::wait;
}

}  // namespace

Run::Run(const World& world, const Partners& partners)
    : world_(&world), partners_(&partners), memory_(world) {
  for (const Schedule& s : world) {
    Rank rank;
    rank.status.assign(s.steps.size(), Status::waiting);
    rank.missing = s.indegree;
    rank.knows = RankSet::one(s.problem.ranks, s.problem.rank);
    for (std::uint32_t i = 0; i < s.steps.size(); ++i)
      if (rank.missing[i] == 0) {
        rank.status[i] = Status::ready;
        rank.ready.push_back(i);
      }
    open_ += s.steps.size();
    ranks_.push_back(std::move(rank));
  }
}

std::vector<Action> Run::actions(bool early_sends) const {
  std::vector<Action> out;
  for (int r = 0; r < static_cast<int>(ranks_.size()); ++r) {
    const Rank& rank = ranks_[std::size_t(r)];
    for (std::uint32_t i : rank.ready) {
      out.push_back({Move::begin, {r, i}});
      if (early_sends && step({r, i}).kind == Kind::send)
        out.push_back({Move::begin_early, {r, i}});
    }
    for (std::uint32_t i : rank.begun)
      if (is_arrival(step({r, i}).kind) && departed({r, i}))
        out.push_back({Move::transfer, {r, i}});
  }
  return out;
}

bool Run::departed(StepId receiver) const {
  const Status s = status(partner(receiver));
  return s == Status::begun || s == Status::done;
}

void Run::take(const Action& action) {
  if (action.move == Move::transfer) return transfer(action.step);
  begin(action.step, action.move == Move::begin_early);
}

void Run::begin(StepId id, bool early) {
  Rank& rank = ranks_[std::size_t(id.rank)];
  std::erase(rank.ready, id.step);
  const Kind kind = step(id).kind;
  if (is_local(kind)) {
    if (std::string bad = memory_.apply(schedule(id), step(id)); !bad.empty())
      fault_ = str("contract: ", name(*world_, id), " ", bad);
    return end(id);
  }
  if (kind == Kind::signal) {
    told_[{id.rank, id.step}] = rank.knows;
    return end(id);
  }
  rank.begun.push_back(id.step);
  status(id) = Status::begun;
  if (!early) return;
  taken_[{id.rank, id.step}] = message(id);
  end(id);
}

Memory::Content Run::message(StepId sender) const {
  if (const auto found = taken_.find({sender.rank, sender.step}); found != taken_.end())
    return found->second;
  Memory::Content all;
  for (const Segment* s = schedule(sender).begin(step(sender));
       s != schedule(sender).end(step(sender)); ++s)
    for (auto& value : memory_.read(sender.rank, *s)) all.push_back(std::move(value));
  return all;
}

void Run::transfer(StepId receiver) {
  const StepId sender = partner(receiver);
  const Step& recv = step(receiver);
  if (recv.kind == Kind::wait) {
    ranks_[std::size_t(receiver.rank)].knows |= told_.at({sender.rank, sender.step});
    told_.erase({sender.rank, sender.step});
    return end(receiver);
  }
  const Memory::Content content = message(sender);
  if (std::any_of(content.begin(), content.end(), [](const auto& value) { return !value; }))
    fault_ = str("contract: ", name(*world_, sender), " sends a block that no rank wrote");
  if (recv.kind == Kind::recv_reduce) {
    if (std::string bad = memory_.apply(schedule(receiver), recv, content); !bad.empty())
      fault_ = str("contract: ", name(*world_, receiver), " ", bad);
  } else {
    auto next = content.begin();
    for (const Segment* s = schedule(receiver).begin(recv); s != schedule(receiver).end(recv);
         ++s) {
      memory_.write(receiver.rank, *s, Memory::Content(next, next + s->blocks));
      next += s->blocks;
    }
  }
  taken_.erase({sender.rank, sender.step});
  end(receiver);
  if (status(sender) == Status::begun) end(sender);
}

void Run::end(StepId id) {
  Rank& rank = ranks_[std::size_t(id.rank)];
  status(id) = Status::done;
  std::erase(rank.begun, id.step);
  --open_;
  const Schedule& s = schedule(id);
  for (std::uint32_t e = s.edge_begin[id.step]; e < s.edge_begin[id.step + 1]; ++e) {
    const std::uint32_t next = s.edges[e];
    if (--rank.missing[next] > 0) continue;
    rank.status[next] = Status::ready;
    rank.ready.push_back(next);
  }
}

std::string Run::stuck() const {
  std::string out = "progress: nothing can go on;";
  for (int r = 0; r < static_cast<int>(ranks_.size()); ++r)
    for (std::uint32_t i : ranks_[std::size_t(r)].begun)
      out += str(" ", name(*world_, {r, i}), " waits for rank ", step({r, i}).peer, ";");
  return out;
}

std::string Run::judge() const {
  if (std::string bad = memory_.judge(*world_); !bad.empty()) return bad;
  for (int r = 0; r < static_cast<int>(ranks_.size()); ++r) {
    const Problem& p = (*world_)[std::size_t(r)].problem;
    if (p.collective == Collective::barrier &&
        ranks_[std::size_t(r)].knows != RankSet::all(p.ranks))
      return str("contract: rank ", r, " leaves the barrier after step ",
                 int(ranks_[std::size_t(r)].status.size()) - 1,
                 " without having heard of every rank");
  }
  return {};
}

std::string Run::fingerprint() const {
  std::string out = memory_.fingerprint();
  for (const Rank& rank : ranks_) {
    for (Status s : rank.status) out += static_cast<char>('a' + static_cast<char>(s));
    out += rank.knows.key() + '/';
  }
  for (const auto& [id, content] : taken_) out += str(id.first, ",", id.second, "=") + key(content);
  for (const auto& [id, ranks] : told_) out += str(id.first, ",", id.second, "~") + ranks.key();
  return out;
}

}  // namespace paceline
