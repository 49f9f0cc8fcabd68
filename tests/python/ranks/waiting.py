"""Says how it was started, then does what its arguments say, rank by rank: exit, sleep, kill."""

import os
import signal
import subprocess
import sys
import time

rank = int(os.environ["PACELINE_RANK"])
what = dict(word.split("=", 1) for word in sys.argv[1:] if "=" in word)
print("pid", os.getpid(), flush=True)
if "spawn" in what:  # something that a rank leaves behind
    subprocess.Popen([sys.executable, "-c", f"import time; time.sleep({what['spawn']})"])
if "say" in what:
    print(os.environ.get(what["say"]), flush=True)
if "ignore" in what:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
print("ready", file=sys.stderr, flush=True)
time.sleep(float(what.get(f"sleep{rank}", what.get("sleep", "0"))))
if f"kill{rank}" in what:
    os.kill(os.getpid(), int(what[f"kill{rank}"]))
sys.exit(int(what.get(f"exit{rank}", "0")))
