#include "store/auto.hpp"

#include <algorithm>
#include <utility>

#include "base/copy_bytes.hpp"
#include "base/error.hpp"
#include "base/random.hpp"
#include "base/str.hpp"
#include "runtime/progress/clock.hpp"

namespace paceline::store {

Auto::Auto(graph::Engine& engine, Communicator communicator, Op op, graph::Engine::Idle idle,
           Options options)
    : Store(engine, std::move(communicator), op, idle),
      plan_(std::move(options.plan)),
      calls_(engine, communicator_) {
  for (std::size_t i = 0; i < options.outstanding; ++i)
    outstanding_.push_back(engine.variable(str("slot ", i)));
}

int Auto::bucket_of(std::size_t key) const {
  return key < states_.size() ? states_[key].bucket : -1;
}

void Auto::expect(const std::vector<std::size_t>& keys) {
  states_.resize(keys_.size());
  if (std::ranges::any_of(keys, [&](std::size_t key) { return states_[key].in_round; }))
    end_round();
}

void Auto::begin_round() {
  states_.resize(keys_.size());
  if (!round_.empty()) end_round();
}

void Auto::end_round() {
  if (has_unbucketed_) {
    flush();
    plan_();
  }
  has_unbucketed_ = false;
  for (std::size_t key : round_) states_[key].in_round = false;
  round_.clear();
}

std::vector<Auto::Seen> Auto::seen() const {
  std::vector<Seen> found;
  const auto add = [&](std::size_t key) {
    found.push_back({key, states_[key].ready_s ? states_[key].ready_s->load() : 0.0});
  };
  for (std::size_t key : round_) add(key);
  for (const Bucket& bucket : buckets_)
    for (std::size_t key : bucket.keys)
      if (!states_[key].in_round) add(key);
  return found;
}

void Auto::set_plan(const std::vector<BucketSpec>& buckets, std::vector<std::size_t> order) {
  states_.resize(keys_.size());
  buckets_.clear();
  for (const BucketSpec& spec : buckets) {
    Bucket bucket;
    bucket.name = str("bucket ", buckets_.size());
    bucket.keys = spec.keys;
    bucket.data = spec.data;
    bucket.keeps = spec.keeps;
    const std::size_t size = size_of(keys_[spec.keys.front()].spec.type);
    for (std::size_t key : spec.keys) {
      KeySpec& own = keys_[key].spec;
      std::byte* const part = bucket.data + bucket.count * size;
      bucket.digest = Random::mix(bucket.digest ^ (key + 1));
      copy_bytes(part, own.data, own.count * size);
      own.data = part;
      own.keeps = spec.keeps;
      bucket.count += own.count;
      bucket.parts.push_back(keys_[key].buffer);
      states_[key].bucket = static_cast<int>(buckets_.size());
    }
    for (std::size_t i = 0; spec.pieces > 1 && i < spec.pieces; ++i)
      bucket.pieces.push_back(engine_.variable(str(bucket.name, ", piece ", i)));
    buckets_.push_back(std::move(bucket));
  }
  rank_by_need();
  order_ = std::move(order);
  next_ = 0;
}

// Keys are taken to be numbered from the first layer on: the next forward pass needs it first.
void Auto::rank_by_need() {
  std::vector<std::pair<std::size_t, Bucket*>> by_first_key;
  for (Bucket& bucket : buckets_)
    by_first_key.emplace_back(*std::ranges::min_element(bucket.keys), &bucket);
  std::ranges::sort(by_first_key);
  for (int place = 0; const auto& [key, bucket] : by_first_key) bucket->priority = -place++;
}

void Auto::exchange(std::size_t key, Transfer& value, int priority) {
  State& state = states_[key];
  if (state.waits) flush();
  put(key, value, priority);
  note_pushed(key);
  if (state.bucket >= 0) {
    state.waits = true;
    Bucket& bucket = buckets_[static_cast<std::size_t>(state.bucket)];
    int& asked = bucket.asked_priority;
    asked = bucket.pushed++ == 0 ? priority : std::max(asked, priority);
    return call_ready_buckets();
  }
  has_unbucketed_ = true;
  note_when_ready(key);
  make(allreduce(keys_[key], priority), {.name = keys_[key].spec.name,
                                         .write = {keys_[key].buffer}, .priority = priority,
                                         .keeps = keys_[key].spec.keeps});
}

void Auto::push_bucket(std::size_t number) {
  if (number >= buckets_.size())
    fail(Fault::internal, "store: there is no bucket ", number, " in a plan of ", buckets_.size(),
         "; push those of the plan that was made last.");
  Bucket& bucket = buckets_[number];
  for (std::size_t key : bucket.keys) {
    note_pushed(key);
    states_[key].waits = true;
  }
  bucket.pushed = bucket.keys.size();
  bucket.asked_priority = 0;
  call_ready_buckets();
}

void Auto::note_pushed(std::size_t key) {
  if (round_.empty()) round_began_s_ = now_s();
  if (!std::exchange(states_[key].in_round, true)) round_.push_back(key);
}

void Auto::note_when_ready(std::size_t key) {
  auto ready_s = states_[key].ready_s = std::make_shared<std::atomic<double>>(0.0);
  engine_.push([ready_s, began_s = round_began_s_] { *ready_s = now_s() - began_s; },
               {.read = {keys_[key].buffer}, .pool = graph::Pool::copy, .at_once = true});
}

void Auto::pull_comes(const std::vector<std::size_t>& keys) {
  states_.resize(keys_.size());
  if (std::ranges::any_of(keys, [&](std::size_t key) { return states_[key].waits; })) flush();
}

void Auto::call_ready_buckets() {
  while (!order_.empty()) {
    Bucket& bucket = buckets_[order_[next_]];
    if (bucket.pushed < bucket.keys.size()) return;
    next_ = (next_ + 1) % order_.size();
    call_next_piece(bucket);
  }
}

// The priority of the pushes decides; where they are equal, the plan's.
int Auto::priority_of(const Bucket& bucket) const {
  const auto places = static_cast<std::int64_t>(buckets_.size());
  const std::int64_t wanted = bucket.asked_priority * places + bucket.priority;
  return static_cast<int>(std::clamp<std::int64_t>(wanted, kLeastUrgent, kMostUrgent));
}

void Auto::call_next_piece(Bucket& bucket) {
  const KeySpec& first = keys_[bucket.keys.front()].spec;
  const std::size_t pieces = std::max<std::size_t>(1, bucket.pieces.size());
  const std::size_t begin = bucket.called * bucket.count / pieces;
  const std::size_t end = (bucket.called + 1) * bucket.count / pieces;
  const int priority = priority_of(bucket);
  graph::TaskSpec spec{.name = bucket.name, .priority = priority, .keeps = bucket.keeps};
  if (pieces == 1) {
    spec.write = bucket.parts;
  } else {   // pieces only read the parts, so that they do not wait for each other
    spec.name += str(", piece ", bucket.called);
    spec.read = bucket.parts;
    spec.write = {bucket.pieces[bucket.called]};
  }
  Call call = allreduce(bucket.data + begin * size_of(first.type), end - begin, first.type,
                        spec.name, priority);
  call.tag = Random::mix(call.tag ^ bucket.digest) | 1;
  make(call, spec);
  if (++bucket.called < pieces) return;
  if (pieces > 1)
    engine_.push([] {}, {.name = "end of " + bucket.name, .read = bucket.pieces,
                         .write = bucket.parts, .pool = graph::Pool::copy, .at_once = true});
  bucket.called = bucket.pushed = 0;
  for (std::size_t key : bucket.keys) states_[key].waits = false;
}

void Auto::make(const Call& call, graph::TaskSpec spec) {
  spec.write.push_back(outstanding_[calls_made_++ % outstanding_.size()]);
  calls_.push(call, std::move(spec));
}

void Auto::flush() {
  for (std::size_t i = 0; i < order_.size(); ++i) {
    Bucket& bucket = buckets_[order_[(next_ + i) % order_.size()]];
    while (bucket.called > 0) call_next_piece(bucket);   // the rest of one that is partly called
    if (bucket.pushed == 0) continue;
    bucket.pushed = 0;
    const int priority = priority_of(bucket);
    for (std::size_t key : bucket.keys)
      if (std::exchange(states_[key].waits, false))
        make(allreduce(keys_[key], priority),
             {.name = keys_[key].spec.name, .write = {keys_[key].buffer}, .priority = priority,
              .keeps = bucket.keeps});
  }
  next_ = 0;
}

}  // namespace paceline::store
