"""Makes one verdict of two tries: failed tests are run once more, alone. Those that pass then are
flaky: a flaky test is named, is a defect to mend next, and does not make the run red."""

import json

from dev.process import Failed

MOST_AGAIN = 200  # tests; if more fail, a second try says nothing new


def judge(first, again):
    """The lines to keep of both tries; Failed, with the lines, if a test failed twice.

    first: a Try. again: runs the tests of these names alone and returns a Try.
    """
    if first.failure is None:
        return first.lines
    hopeless = [name for name, (_, may_again) in first.failed.items() if not may_again]
    if first.late or not first.failed or hopeless or len(first.failed) > MOST_AGAIN:
        raise Failed(str(first.failure), joined(first.lines, named(first.failed)))
    print(f"once more, alone: {len(first.failed)} that failed", flush=True)
    second = again(list(first.failed))
    left = {name: why for name, why in first.failed.items() if name in second.failed}
    flaky = {name: why for name, why in first.failed.items() if name not in second.failed}
    lines = joined(first.lines, named(left), named(flaky, "FLAKY"))
    if second.failure is not None:
        raise Failed(f"{len(left)} failed twice" if left else str(second.failure), lines)
    return lines


class Try:
    """The result of a run. `failed`: test -> (why, True if another try can say more); `failure`:
    the error that ended the command; `late`: that error was its time limit."""

    def __init__(self, failed, failure=None, lines=""):
        self.failed, self.failure, self.lines = failed, failure, lines
        self.late = failure is not None and "no end after" in str(failure)


def named(failed, word="FAILED"):
    return "\n".join(f"{word} {name}: {why}" for name, (why, _) in failed.items())


def joined(*texts):
    return "\n".join(text for text in texts if text)


def read(file):
    """`failed` as in Try, from the lines that tests/python/naming.py has written."""
    failed = {}
    for line in file.read_text().splitlines() if file.exists() else ():
        try:
            row = json.loads(line)
        except ValueError:  # the last one, of a run that was ended
            continue
        known = failed.get(row["test"], ("", True))
        failed[row["test"]] = known[0] or row["failed"], known[1] and row["again"]
    return failed
