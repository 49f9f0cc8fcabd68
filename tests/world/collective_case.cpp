#include "world/collective_case.hpp"

#include <algorithm>
#include <type_traits>

#include "base/str.hpp"

namespace paceline::test {

std::string Case::name() const {
  return str(name_of(collective), "/", algorithm, " p=", ranks, " n=", count, " root=", root,
             in_place ? " in place" : "", uneven ? " uneven" : "",
             segments ? str(" segments=", segments, " window=", window) : "",
             knobs.blocks ? str(" blocks=", knobs.blocks) : "", " ", name_of(op));
}

template <class T>
Buffers<T>::Buffers(const Case& c, int rank) : case_(c), rank_(rank) {
  fill();
  before_ = input_;
}

template <class T>
std::vector<std::pair<void*, std::size_t>> Buffers<T>::memory() {
  return {{input_.data(), input_.size() * sizeof(T)}, {output_.data(), output_.size() * sizeof(T)}};
}

template <class T>
Call Buffers<T>::call() {
  Call out;
  out.collective = case_.collective;
  out.type = std::is_same_v<T, double> ? Type::f64 : Type::f32;
  if (std::is_integral_v<T>) out.type = Type::i32;
  out.op = case_.op;
  out.root = case_.root;
  out.algorithm = case_.algorithm;
  out.cut.segments = case_.segments;
  out.cut.window = case_.window;
  out.cut.knobs = case_.knobs;
  out.count = case_.count;
  out.uneven = case_.uneven;
  if (case_.uneven) counts(out);
  out.input = case_.in_place && alias_in_ ? alias_in_ : input_.empty() ? nullptr : input_.data();
  out.output = case_.in_place && alias_out_ ? alias_out_
               : output_.empty()            ? nullptr
                                            : output_.data();
  return out;
}

template <class T>
std::string Buffers<T>::check() const {
  for (std::size_t i = 0; i < wanted_.size(); ++i)
    if (result()[i] != wanted_[i])
      return str(case_.name(), ": rank ", rank_, " element ", i, " is ", result()[i], ", not ",
                 wanted_[i]);
  if (!case_.in_place && input_ != before_)
    return str(case_.name(), ": rank ", rank_, " finds its input changed");
  return {};
}

template <class T>
void Buffers<T>::append(std::vector<T>& to, int from, int target, std::size_t n) const {
  for (std::size_t i = 0; i < n; ++i) to.push_back(static_cast<T>(value(from, target, i)));
}

template <class T>
T Buffers<T>::combined(int target, std::size_t i) const {
  T sum = static_cast<T>(value(0, target, i));
  for (int r = 1; r < case_.ranks; ++r) {
    const T v = static_cast<T>(value(r, target, i));
    sum = case_.op == Op::max   ? std::max(sum, v)
          : case_.op == Op::min ? std::min(sum, v)
                                : sum + v;
  }
  return case_.op == Op::average ? sum / static_cast<T>(case_.ranks) : sum;
}

template <class T>
void Buffers<T>::counts(Call& out) const {
  const bool rooted =
      case_.collective == Collective::gather || case_.collective == Collective::scatter;
  if (rooted) out.count = unit_count(case_, rank_);
  if (rooted && rank_ != case_.root) return;
  for (int r = 0; r < p(); ++r) {
    const bool pairs = case_.collective == Collective::alltoall;
    out.counts.push_back(pairs ? unit_count(case_, rank_, r) : unit_count(case_, r));
    if (pairs) out.counts_received.push_back(unit_count(case_, r, rank_));
  }
}

template <class T>
std::size_t Buffers<T>::offset_of_own() const {
  std::size_t at = 0;
  for (int r = 0; r < rank_; ++r) at += unit_count(case_, r);
  return at;
}

template <class T>
void Buffers<T>::fill() {
  const Case& c = case_;
  const bool root = rank_ == c.root;
  switch (c.collective) {
    case Collective::allreduce:
    case Collective::reduce:
      append(input_, rank_, 0, c.count);
      if (c.collective == Collective::allreduce || root)
        for (std::size_t i = 0; i < c.count; ++i) wanted_.push_back(combined(0, i));
      output_.assign(c.collective == Collective::allreduce || root ? c.count : 0, T(-1));
      if (c.in_place && !output_.empty()) {
        output_ = input_;
        alias_in_ = output_.data();
      }
      return;
    case Collective::reduce_scatter:
      for (int r = 0; r < p(); ++r) append(input_, rank_, r, unit_count(c, r));
      for (std::size_t i = 0; i < unit_count(c, rank_); ++i)
        wanted_.push_back(combined(rank_, i));
      output_.assign(wanted_.size(), T(-1));
      if (c.in_place) {
        result_in_input_ = true;
        result_at_ = offset_of_own();
        alias_out_ = input_.data() + result_at_;
      }
      return;
    default:
      return fill_moves();
  }
}

template <class T>
void Buffers<T>::fill_moves() {
  const Case& c = case_;
  const bool root = rank_ == c.root;
  switch (c.collective) {
    case Collective::broadcast:
      append(wanted_, c.root, 0, c.count);
      output_ = root ? wanted_ : std::vector<T>(c.count, T(-1));
      return;
    case Collective::allgather:
    case Collective::gather:
      append(input_, rank_, 0, unit_count(c, rank_));
      if (c.collective == Collective::gather && !root) return;
      for (int r = 0; r < p(); ++r) append(wanted_, r, 0, unit_count(c, r));
      output_.assign(wanted_.size(), T(-1));
      if (c.in_place) {
        std::copy(input_.begin(), input_.end(), output_.begin() + std::ptrdiff_t(offset_of_own()));
        alias_in_ = output_.data() + offset_of_own();
      }
      return;
    case Collective::scatter:
      if (root)
        for (int r = 0; r < p(); ++r) append(input_, c.root, r, unit_count(c, r));
      append(wanted_, c.root, rank_, unit_count(c, rank_));
      output_.assign(wanted_.size(), T(-1));
      if (c.in_place && root) {
        result_in_input_ = true;
        result_at_ = offset_of_own();
        alias_out_ = input_.data() + result_at_;
      }
      return;
    case Collective::alltoall:
      for (int r = 0; r < p(); ++r) append(input_, rank_, r, unit_count(c, rank_, r));
      for (int r = 0; r < p(); ++r) append(wanted_, r, rank_, unit_count(c, r, rank_));
      output_.assign(wanted_.size(), T(-1));
      if (c.in_place) {
        output_ = input_;
        alias_in_ = output_.data();
      }
      return;
    default:
      return;
  }
}

template class Buffers<double>;
template class Buffers<float>;
template class Buffers<std::int32_t>;

}  // namespace paceline::test
