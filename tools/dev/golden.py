"""`./dev verify --golden`: today's schedules and choices against those of tests/golden."""

import argparse

from dev import build, prepare
from dev.process import ROOT, environment, run

LIMIT_S = 600


def main(arguments):
    parser = argparse.ArgumentParser(prog="./dev verify --golden")
    parser.add_argument("--write", action="store_true",
                        help="write them anew; the commit says what has changed, and why")
    options = parser.parse_args(arguments)
    prepare.ensure()
    build.build("release", targets=["world"])
    how = "PACELINE_GOLDEN_WRITE" if options.write else "PACELINE_LONG"
    env = environment(**{"PACELINE_GOLDEN": str(ROOT / "tests/golden"), how: "1"})
    run([ROOT / "build/release/tests/world", "-tc=golden*"], timeout_s=LIMIT_S, env=env)
