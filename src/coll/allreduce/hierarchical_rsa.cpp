// Hierarchical-RSA: nodes sum at their leaders, those do Rabenseifner's allreduce, and all read it.
//
// Source   P. Alizadeh, Y. H. Temuçin, A. Sojoodi, A. Afsahi: Efficient process arrival pattern
//          aware collective communication for deep learning. EuroMPI 2022; there Hierarchical-RSA,
//          with which the new algorithms are compared
// Needs    commutative op; k nodes, of which the largest has m ranks. Any n >= 0.
// Cost     across as allreduce/rabenseifner of k ranks; inside a node two meetings and m n read
//          from others, or by messages 2 ceil(log2 m) (alpha + n beta)
// Scratch  staging buffer: 2 n; n more on leaders. By messages: at most 4 n.
// When     medium messages, several ranks on some of several nodes.
// Order    rank order inside a node, then as allreduce/rabenseifner: same bits on every rank and in
//          every run for the same nodes.
//
// p = 5, nodes 012 and 34; a digit is a contribution, * is final.
//             rank 0      rank 1      rank 2      rank 3      rank 4
//   start     0           1           2           3           4
//   sum       012         1           2           34          4
//   across    *           1           2           *           4
//   read      *           *           *           *           *
#include "coll/algorithms.hpp"
#include "coll/allreduce/hierarchy.hpp"
#include "coll/rejects.hpp"

namespace paceline {
namespace {

std::optional<Reason> rejects(const Problem& pb) {
  return unless_commutative(pb, "it halves vectors in an order of its own", "hierarchical");
}

using Form = AllreduceByNodes<Hierarchy::by_one_leader, allreduce_rabenseifner>;

}  // namespace

extern const Algorithm allreduce_hierarchical_rsa{
    .collective = Collective::allreduce, .name = "hierarchical_rsa", .rejects = rejects,
    .cuts = Form::cuts, .build = Form::build, .cost = Form::cost, .access = Access::nodes};

}  // namespace paceline
