#!/usr/bin/env python3
"""Allreduces in a loop beside programs that use the cores, by torch: gloo and Paceline in turn.

  paceline run -n 2 python bench/contended.py --busy 4
"""

import argparse
import statistics
import subprocess
import sys
import time

import torch
import torch.distributed as dist

import paceline.torch  # noqa: F401

CALLS = 5  # that follow each other in one round


def timed(data, group):
    """Seconds of a call, the mean of a round."""
    dist.all_reduce(data, group=group)
    begun = time.perf_counter()
    for _ in range(CALLS):
        dist.all_reduce(data, group=group)
    return (time.perf_counter() - begun) / CALLS


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--busy", type=int, default=4, help="programs that compute meanwhile")
    parser.add_argument("--rounds", type=int, default=40)
    options = parser.parse_args()
    dist.init_process_group("gloo")
    groups = {name: dist.new_group(backend=name) for name in ("gloo", "paceline")}
    first = dist.get_rank() == 0
    busy = [subprocess.Popen([sys.executable, "-c", "while True: pass"])
            for _ in range(options.busy if first else 0)]
    try:
        for nbytes in (4 << 10, 1 << 20, 4 << 20):
            data, took = torch.ones(nbytes // 4), {name: [] for name in groups}
            for _ in range(options.rounds):
                for name, group in groups.items():
                    took[name].append(timed(data, group))
                    data.fill_(1)
            for name, seconds in took.items():
                us = [1e6 * number for number in
                      (statistics.median(seconds), statistics.mean(seconds), min(seconds))]
                if first:
                    print(f"{nbytes} B, {name}: median {us[0]:.0f}, mean {us[1]:.0f}, "
                          f"least {us[2]:.0f} us", flush=True)
    finally:
        for program in busy:
            program.kill()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
