"""A Slurm of two nodes on this machine, for the tests: its daemons, started and ended here."""

import os
import secrets
import shutil
import subprocess
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path

import launched

from paceline.launch import held_port

NODES = ("one", "two")
NEEDED = ("munged", "slurmctld", "slurmd", "srun", "sbatch")
START_S = 30

# Its nodes have the processors that are claimed here, and everything stays on the loopback. MPICH
# names its memory after the job: one that was killed leaves it to the next job of that number.
CONFIGURATION = """
ClusterName=test
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={ports[0]}
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket
CredType=cred/munge
FirstJobId={first}
SlurmUser=root
SlurmdUser=root
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/%n
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.%n.pid
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SlurmdParameters=config_overrides
JobAcctGatherType=jobacct_gather/none
MpiDefault=none
KillOnBadExit=0
NodeName=one NodeHostname={host} NodeAddr=127.0.0.1 Port={ports[1]} CPUs=8
NodeName=two NodeHostname={host} NodeAddr=127.0.0.1 Port={ports[2]} CPUs=8
PartitionName=all Nodes=ALL Default=YES State=UP
"""


def missing():
    """Why there can be no Slurm here; empty if there can."""
    lacking = [name for name in NEEDED if not shutil.which(name)]
    if lacking:
        return f"no {', '.join(lacking)}: apt-get install slurm-wlm"
    return "" if os.geteuid() == 0 else "slurmd and munged are started as root"


class Slurm:
    """Its daemons run as long as the context lasts."""

    def __enter__(self):
        with ExitStack() as stack:
            self.folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="slurm-")))
            self.folder.chmod(0o755)
            self.held = stack
            self.configure()
            self.running = []
            stack.callback(self.end)
            self.start("munged", "--foreground", f"--key-file={self.folder}/key",
                       f"--socket={self.folder}/munge.socket", f"--pid-file={self.folder}/m.pid",
                       f"--log-file={self.folder}/munged.log", f"--seed-file={self.folder}/seed")
            self.await_start(lambda: (self.folder / "munge.socket").exists())
            self.start("slurmctld", "-D")
            for node in NODES:
                self.start("slurmd", "-D", "-N", node, "-f", f"{self.folder}/{node}/slurm.conf")
            self.await_start(lambda: self.tell("sinfo", "-h", "-t", "idle", "-o", "%D") == "2")
            self.stack = stack.pop_all()
        return self

    def __exit__(self, *_):
        self.stack.close()

    def configure(self):
        ports = [self.held.enter_context(held_port()) for _ in range(3)]
        host = os.uname().nodename.split(".")[0]
        text = CONFIGURATION.format(host=host, folder=self.folder, ports=ports,
                                    first=1 + secrets.randbelow(60_000_000))
        (self.folder / "state").mkdir()
        for place in (self.folder, *(self.folder / node for node in NODES)):
            (place / "tmp").mkdir(parents=True)
            (place / "slurm.conf").write_text(text)
            # Nodes of one machine would make the same folder in /tmp.
            (place / "mpi.conf").write_text(f"PMIxCliTmpDirBase={place}/tmp\n")
        (self.folder / "key").write_bytes(os.urandom(1024))
        (self.folder / "key").chmod(0o600)

    def environment(self, env=None):
        """For commands: of this Slurm, and of no other in which the tests may be running."""
        own = {k: v for k, v in os.environ.items() if not k.startswith(("SLURM", "PMI"))}
        settings = {**launched.limits(), "SLURM_CONF": f"{self.folder}/slurm.conf"}
        return {**own, **settings, **(env or {})}

    def start(self, *command):
        """A daemon; what it says goes into a file."""
        with open(self.folder / f"{len(self.running)}.log", "wb") as log:
            self.running.append(subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=self.environment(),
                start_new_session=True,
            ))  # fmt: skip

    def await_start(self, is_up):
        deadline = time.monotonic() + START_S
        while not is_up():
            ended = [p.args[0] for p in self.running if p.poll() is not None]
            if ended or time.monotonic() > deadline:
                logs = "\n".join(p.read_text() for p in sorted(self.folder.glob("*.log")))
                raise RuntimeError(f"Slurm does not start; ended: {ended}\n{logs}")
            time.sleep(0.1)

    def end(self):
        """Ends the jobs that are left, then the daemons, the latest first."""
        if len(self.running) > 1:
            self.tell("scancel", "--user=root")
            deadline = time.monotonic() + 10
            while self.tell("squeue", "-h") and time.monotonic() < deadline:
                time.sleep(0.1)
        for process in reversed(self.running):
            process.terminate()
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()

    def tell(self, *command):
        """What a short command says."""
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=20, env=self.environment(),
        )  # fmt: skip
        return done.stdout.strip()

    def run(self, *command, env=None, timeout_s=60):
        """(status, stdout, stderr) of srun or sbatch; -1 if it has not ended in time."""
        process = subprocess.Popen(
            [str(word) for word in command], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            text=True, env=self.environment(env),
        )  # fmt: skip
        try:
            out, errors = process.communicate(timeout=timeout_s)
            return process.returncode, out, errors
        except subprocess.TimeoutExpired:
            process.terminate()  # srun then ends its ranks
            try:
                return -1, *process.communicate(timeout=20)
            except subprocess.TimeoutExpired:
                process.kill()
                return -1, *process.communicate()
