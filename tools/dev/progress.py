"""A progress bar of what a build prints. Plain Python: `./dev` runs before anything is installed.
"""

import collections
import re
import sys

COLUMNS = 40
TAIL_LINES = 40
STEP = re.compile(r"\[(\d+)/(\d+)\] ")


def show(stream, title, out=None):
    """Read a build's output to its end; return its last lines, for an error message.

    On a terminal one line grows; elsewhere there is a line at each quarter.
    """
    out = out or sys.stdout
    tail = collections.deque(maxlen=TAIL_LINES)
    quarter = 0
    for line in stream:
        tail.append(line.rstrip("\n"))
        step = STEP.match(line)
        if not step or int(step[2]) == 0:
            continue
        done = min(1.0, int(step[1]) / int(step[2]))
        if out.isatty():
            print(f"\r{picture(title, done)}", end="", file=out, flush=True)
        elif int(4 * done) > quarter:
            quarter = int(4 * done)
            print(picture(title, done), file=out, flush=True)
    if out.isatty():
        print(file=out)
    return "\n".join(tail)


def picture(title, done):
    """compiling    [##########..............................]  25 %"""
    full = int(COLUMNS * done)
    return f"{title:12s} [{'#' * full}{'.' * (COLUMNS - full)}] {100 * done:3.0f} %"
