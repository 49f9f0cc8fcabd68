"""The published claims, as data: for each page what it is held against, in the order of its table.

A key begins with the figure or table of the publication. A number that is printed alone stands for
all that round to it; "up to" is a claim about the largest cell, "on average" about the mean.
"""

from functools import partial

from paceline_bench.report.verdicts import Claim, Source

CASTELLO = Source("A. Castelló, E. S. Quintana-Ortí, J. Duato",
                  "Accelerating distributed deep neural network training with pipelined MPI "
                  "allreduce", "Cluster Computing 24(4)", 2021)
UENO = Source("Y. Ueno", "Technologies behind distributed deep learning: AllReduce",
              "Preferred Networks", 2018)
WANG = Source("L. Wang, W. Wu, G. Bosilca, R. Vuduc, Z. Xu",
              "Efficient communications in training large scale neural networks",
              "arXiv 1611.04255", 2016)
MAMIDALA = Source("A. R. Mamidala", "Efficient embedding of MPI collectives in MXNET DAGs for "
                  "scaling deep learning", "arXiv 1802.06949", 2018)
ALIZADEH = Source("P. Alizadeh, Y. H. Temuçin, A. Sojoodi, A. Afsahi",
                  "Efficient process arrival pattern aware collective communication for deep "
                  "learning", "EuroMPI/USA", 2022)
GOALS = Source("Paceline", "Goals of its own", "docs/design", 2026, "asked")

castello, ueno, wang, mamidala, alizadeh, goal = (
    partial(Claim, source) for source in (CASTELLO, UENO, WANG, MAMIDALA, ALIZADEH, GOALS))
WITHIN_2 = {"printed": "the same, asked within 2 %", "low": 0.98, "high": 1.02}
WITHIN_5 = {"printed": "the same, asked within 5 %", "low": 0.95, "high": 1.05}
LAB = "at the lab's 200 Mbit/s sums take about 1 % of the time"
NO_NCCL = "no NCCL was modelled: its place is taken by sums and copies that cost nothing"
COMPUTING = "the document has no computing times: a step computes as long as AUTO communicates"
SHARE = "the rate of combining, so that sums take a third of the time of a whole ring"
COMBINING = "the rate of combining, of which the document has none for this network"
SHARED = "the document's GPUs are one for each participant; those of bench/results share one"

PIPELINING = {
    "figure 1": castello(
        "With long messages the ring is in general the best algorithm.",
        "rate of the ring, by the best of rabenseifner, recursive doubling and binomial", above=1),
    "figure 2": castello(
        "In segments of a fixed size the ring keeps 4,000 MB/s, whole it falls to 3,000 or less.",
        "speed of the ring in the best segments, by the whole ring", "1.33 or more", above=1,
        low=1.33, fitted=SHARE, note=LAB),
    "figure 3": castello(
        "In 2 to 8 segments the ring is up to 25 % faster.",
        "speed of the ring in the best number of segments, by the whole ring", "up to 1.25",
        above=1, low=1.25, high=1.25, judged="most", fitted=SHARE, note=LAB),
    "figure 4: whole": castello(
        "Sums take 28 to 37 % of the time of the ring.",
        "share of time that goes without sums", "0.28 to 0.37", above=0, low=0.28, high=0.37,
        fitted=SHARE),
    "figure 4: four": castello(
        "With four segments less than 14 % is not overlapped.",
        "share that goes without sums, of rings whose whole has 0.28 or more", "less than 0.14",
        below=0.14, note=LAB),
    "figure 5": castello(
        "A linear allgather gains nothing from segments.",
        "speed of the best number of segments, by one", "no gain: at most 1.00", high=1,
        note="an MPI or a network that announces long messages first gains from shorter ones"),
    "figure 6": castello(
        "Segments raise a chain broadcast from 2,400 to 3,500 MB/s on 7 ranks, and from 1,900 to "
        "3,250 on 8.", "speed of the best number of segments, by one", "1.46 and 1.71", above=1,
        low=1.46, high=1.71, note="the document's chain is cut inside already; this one is not"),
    "figure 7": castello(
        "A reduce-scatter of more than 16 MB gains about 100 MB/s.",
        "MB/s that the best number of segments adds", "about 100", above=0, low=50, high=150,
        digits=1, note="the document's is a reduction and a scatter, this one a ring"),
    "figures 8-10": castello(
        "Pipelining makes training faster.", "", elsewhere="paceline report training"),
    "figure 11": castello(
        "MPICH and Intel MPI gain from segments, too.",
        "speed of several calls at once, by the faster of one blocking and one non-blocking call",
        above=1),
    "figure 12": castello(
        "Open MPI 4 gains as well.",
        "speed of several calls at once, by the faster of one blocking and one non-blocking call",
        above=1),
    "figure 13": castello(
        "On an older network, with 8 and 15 nodes, segments gain as well.",
        "speed in four segments, by the whole", above=1, fitted=COMBINING),
    "figure 14": castello(
        "In groups of nodes, with 30 and 32 processes, segments gain as well.",
        "speed in four segments, by the whole", above=1, fitted=COMBINING),
}

RING = {
    "figure 6: plain ring": ueno(
        "A plain ring over MPI takes 28 % longer than the pipelined one.",
        "time of the plain ring, by the library's", "1.28", above=1, low=1.28, high=1.28,
        fitted="the rate of combining, of which the document has none", note=LAB),
    "figure 6: Open MPI": ueno(
        "Open MPI takes 82 % longer.", "time of Open MPI's allreduce, by the library's", "1.82",
        above=1, low=1.82, high=1.82, note="the document has version 2.1"),
    "figure 6: CUDA": ueno(
        "CUDA-aware Open MPI takes 286 %, NCCL 1.6 % longer.", "", "3.86 and 1.02",
        note="it takes a GPU in each of 8 nodes"),
    "variance: plain ring": ueno(
        "The slowest run of the plain ring, its first, takes 7.5 times the median.",
        "slowest of ten first calls, by their median", "7.5", above=1, low=7.5, high=7.5, digits=1,
        note="over TCP there is no memory to register"),
    "variance: library": ueno(
        "All runs of the pipelined ring are within 3 % of the median.",
        "slowest of ten first calls, by their median", "at most 1.03", high=1.03),
}

DEVICE = {
    "table 1": wang(
        "The costs of linear pipelines (LP), spanning trees (MST), bidirectional exchange (BE).",
        "time on 2, 4 and 8 devices, by the formula", **WITHIN_2),
    "theorem 3.1: MST": wang(
        "LP is log2 p times as fast as MST in the limit of long messages, and short of it by 1 + "
        "(p-1) b/n.", "time of MST by LP's, over log2 p / (1 + (p-1) b/n)", **WITHIN_2),
    "theorem 3.1: BE": wang(
        "LP is up to twice as fast as BE, 2 (1 - 1/p) times in the limit of long messages.",
        "time of BE by LP's, over 2 (1 - 1/p) / (1 + (p-1) b/n)", **WITHIN_2),
    **{f"figure 3: {collective}, {way}": wang(
        f"On 4 GPUs LP's {collective} is on average {speed} times as fast as {way} in {where}.",
        f"speed of LP, by {way}, mean of all sizes", str(speed), above=1, low=speed, high=speed,
        digits=1, note=SHARED)
       for collective, mst, be in (("broadcast", 2.3, 29.2), ("reduce", 8.7, 360.6),
                                   ("allreduce", 7.9, 109.2))
       for way, speed, where in (("MST", mst, "Caffe"), ("BE", be, "Open MPI"))},
    "figure 4": wang(
        "LP takes as long on 4 GPUs as on 2, and on 6 as on 5.",
        "time on more devices, by the time on fewer", **WITHIN_5),
    "figure 5, table 2": wang("Training is faster.", "", elsewhere="paceline report dag"),
    "stages": ueno(
        "Copies out, sends, receives, sums and copies in overlap.",
        "share of the calls' time in which stages were at work, all together", above=1,
        note="no file has the stages"),
}

TRAINING = {
    "table 2: parameters": castello(
        "Parameters of AlexNet, ResNet50, VGG11 and ResNet110.",
        "parameters, by the published ones", "to the last one", low=1, high=1, digits=4),
    "table 2: flops": castello(
        "Flops of a forward pass of the four.", "flops, by the published ones", "to the last one",
        low=1, high=1, digits=4, note="without torch nothing counts them"),
    "figure 8": castello(
        "Each network has quite different transfers.",
        "longest gradient, by the longest of ResNet110", above=1),
    "figure 9: ring": castello(
        "The ring makes training considerably faster than AUTO.",
        "speed with the ring, by AUTO's", above=1, fitted=COMPUTING),
    "figure 9: non-blocking": castello(
        "The non-blocking call outperforms its blocking counterpart.",
        "speed of a step with the non-blocking call, by the blocking one's", above=1),
    **{f"figure 9: {name}": castello(
        f"In four parts the ring trains {name} {words} faster than AUTO.",
        "speed with the ring in four parts, by AUTO's", printed, above=1, low=low, high=high,
        judged=judged, fitted=COMPUTING)
       for name, words, printed, low, high, judged in (
           ("resnet110", "50 to 60 %", "1.50 to 1.60", 1.5, 1.6, "each"),
           ("alexnet", "up to 22 %", "up to 1.22", 1.22, 1.22, "most"),
           ("resnet50", "up to 22 %", "up to 1.22", 1.22, 1.22, "most"),
           ("vgg11", "up to 15 %", "up to 1.15", 1.15, 1.15, "most"))},
    "figure 9: parts": castello(
        "Pipelining makes training faster, whatever the algorithm.",
        "speed of a step with the MPI's non-blocking call in four parts, by its blocking one's",
        above=1),
    "figure 9: parts alone": castello(
        "Applying pipelining improves the training significantly.",
        "speed of a step with the MPI's non-blocking call in four parts, by that in one", above=1,
        note="beside the non-blocking call, so that parts alone differ"),
    "figure 9: ours": castello(
        "Paceline beside the document's system, the MPI's call in four parts.",
        "speed of a step over Paceline, by that in four parts", "no other library", above=1,
        ours=True),
    "figure 10: links": castello(
        "NCCL clearly outperforms MPI where links are the bottleneck, AlexNet and VGG11.",
        "speed straight between GPUs, by a blocking MPI's", above=1,
        fitted=NO_NCCL),
    "figure 10: computing": castello(
        "For ResNet50, which is bound by computing, the difference is negligible.",
        "speed straight between GPUs, by a blocking MPI's", **WITHIN_5, fitted=NO_NCCL),
    "figure 10: parts": castello(
        "In four parts MPI trains up to 60 % faster, AlexNet and VGG11.",
        "speed in four parts, by one blocking call", "up to 1.60", above=1, low=1.6, high=1.6,
        judged="most", note="the rates of computing are a public benchmark's"),
    "figure 10: near": castello(
        "In four parts MPI comes near to NCCL, the nearer the larger the batch.",
        "NCCL's lead with 64 pictures, by its lead with 32, AlexNet and VGG11", below=1,
        fitted=NO_NCCL),
}

DAG = {
    "figures 13, 15": mamidala(
        "With up to 8 GPUs dependency chaining is the fastest for ResNet-50; on ImageNet, too.",
        "speed of depcha, by funnel's and by concom's", above=1,
        fitted="computing takes 3 times as long as communicating with 8 workers"),
    "figure 14": mamidala(
        "For Inception-BN it lowers the epoch time by a factor of more than 1.6 against funnel.",
        "speed of depcha, by funnel's", "more than 1.6", above=1, low=1.6,
        fitted="computing takes 3 times as long as communicating with 8 workers",
        note="the document's loops also copy each gradient from and to a GPU"),
    "figures 13-15: auto": mamidala(
        "KVStore auto beside the document's system, dependency chaining.",
        "speed of auto, by depcha's", "no other type", above=1, ours=True),
    "figure 16": mamidala(
        "With 256 GPUs the accuracy on ImageNet comes to 0.71.", "", "0.71",
        note="there are no 256 GPUs and no ImageNet here"),
    **{f"table 2: {name}, {way}": wang(
        f"{name}: LP communicates for {share} % of the time of {way} in Algorithm 1.",
        f"time of LP's communication, by {way}'s", f"{share / 100:.2f}", below=1,
        low=share / 100, high=share / 100,
        note="the document's rivals took up to ten times as long as its links ask for")
       for name, way, share in (("alexnet", "BE", 10), ("alexnet", "MST", 11),
                                ("googlenet", "BE", 6), ("googlenet", "MST", 43))},
    **{f"figure 5: {name}": wang(
        f"{name}: overlapped LP in Algorithm 3 trains {speed} times as fast as BE in Algorithm 1.",
        "speed, by computing as published and simulated communication", str(speed), above=1,
        low=speed, high=speed, note="BE communicates for a tenth of the published time here")
       for name, speed in (("alexnet", 2.12), ("googlenet", 2.19))},
    "figure 5: loss": wang(
        "All algorithms converge alike.", "largest last loss, by the smallest", **WITHIN_5,
        note="no file of `paceline train` was given"),
    "table 1": wang(
        "The costs of LP, MST and BE.", "time on 2 to 64 ranks, by the formula", **WITHIN_2),
    "theorem 3.1: MST": DEVICE["theorem 3.1: MST"],
    "theorem 3.1: BE": DEVICE["theorem 3.1: BE"],
    "cost per key": goal(
        "From 100 to 6,400 keys a key of KVStore auto costs the same within 1.5 times.",
        "most by least time per key", "at most 1.50", high=1.5,
        note="paceline bench store --keys 100,400,1600,6400"),
}

ALONE = "these are facts about Horovod with ResNet50 on 256 GPUs; a profile of yours shows its own"
DRAWN = ("nodes compute up to 30 % longer and their ranks up to 25 %, as drawn: the document has "
         "no times")
ARRIVAL = {
    "figures 2-4, tables 1-2": alizadeh(
        "Allreduce is 75 % of the calls and 96 % of their time; nodes differ more than the ranks "
        "of one.", "", note=ALONE),
    "figure 5": alizadeh(
        "The first rank to come leads: it adds while others are late, and all leave after the last "
        "has come.", "us from the last entry to the first exit", above=0),
    "figure 6": alizadeh(
        "Ranks leave the reduce before the last one comes.", "ranks of four that left before",
        above=0, digits=0),
    **{f"figure 7: {factor}": alizadeh(
        f"With 32 ranks and MIF {factor} the dynamic leader is up to {100 * gain - 100:.0f} % "
        "faster than the better of MVAPICH's two.", "speed, by the better of the two",
        f"up to {gain:.2f}", above=1, low=gain, high=gain, judged="most",
        note="the model's memory is as fast for all ranks at a time as for one")
       for factor, gain in ((10, 1.22), (20, 1.56), (50, 1.37))},
    **{f"figure 8: {factor}": alizadeh(
        f"With 4 ranks and MIF {factor} the chain by arrival is faster than all others above "
        f"64 KiB, by {100 * gain - 100:.0f} % on average.", "speed, by the best of the others",
        f"{gain:.2f} on average", above=1, low=gain, high=gain, judged="mean",
        note="the model's memory is as fast for all ranks at a time as for one")
       for factor, gain in ((10, 1.18), (20, 1.2), (50, 1.11))},
    "table 3": alizadeh(
        "On 2 to 32 nodes the hierarchical algorithm is 20 to 29 % faster on average than the flat "
        "one.", "speed of the hierarchical one, by the flat one, mean of all sizes",
        "1.20 to 1.29", above=1, low=1.2, high=1.29,
        note="the model has no contention that a flat algorithm would add"),
    "figure 9: resnet50": alizadeh(
        "ResNet50 trains up to 17 % faster with the hierarchical algorithm.",
        "images/s with it, by those with the flat one", "up to 1.17", above=1, low=1.17, high=1.17,
        judged="most", fitted="nodes compute up to 30 % longer, as drawn: the document has no "
        "times"),
    "figure 9: densenet201": alizadeh(
        "DenseNet201 trains up to 9 % faster with the hierarchical algorithm.",
        "images/s with it, by those with the flat one", "up to 1.09", above=1, low=1.09, high=1.09,
        judged="most", fitted="nodes compute up to 30 % longer, as drawn: the document has no "
        "times"),
    "figure 9: vgg16": alizadeh(
        "VGG16, which is balanced, is faster with the flat one.",
        "images/s with the hierarchical one, by those with the flat one", below=1,
        fitted="nodes compute up to 30 % longer, as drawn: VGG16 is balanced"),
    "figure 10: small": alizadeh(
        "With Small-PAP inside nodes training is as fast as without.",
        "images/s with Small-PAP, by those of Hierarchical-RSA", **WITHIN_2,
        fitted=DRAWN),
    "figure 10: large": alizadeh(
        "With Large-PAP it is slower.", "images/s with Large-PAP, by those of Hierarchical-RSA",
        below=1, fitted=DRAWN),
    **{f"goal: late, {way}": goal(
        f"In 4 x 2 ranks one that is late by n/rate of a node's link, or by two, leaves at most "
        f"{most} n/rate with numbers={way}.", "left after the last entry, over n/rate",
        f"at most {most}", high=most, note="short messages take long to start")
       for way, most in (("fast", 1.35), ("stable", 1.45))},
    "goal: named, in time": goal(
        "A rank that is named late and comes in time costs at most 1.25 times the call without a "
        "prediction.", "time, by that without a prediction", "at most 1.25", high=1.25),
    "goal: none late": goal(
        "Calls that may switch take at most 3 % longer while no rank is late.",
        "time, by that of calls that may not", "at most 1.030", high=1.03, digits=3),
    "goal: random": goal(
        "Predicting random arrivals loses at most 0.5 %, whatever the pattern.",
        "time, by that without a prediction", "at most 1.005", high=1.005, digits=3),
}

CLAIMS = {"pipelining": PIPELINING, "ring": RING, "device": DEVICE, "dag": DAG,
          "training": TRAINING, "arrival": ARRIVAL}


def sources(page):
    """The publications of a page, each once."""
    return list(dict.fromkeys(claim.source for claim in CLAIMS[page].values()))
