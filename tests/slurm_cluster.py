"""SLURM on this machine alone, from Debian's packages: started, used by a command, stopped.

    apt install slurmctld slurmd slurm-client munge
    python tests/slurm_cluster.py COMMAND ARGUMENT…

Everything it writes is in a temporary folder, where the command finds it by ``SLURM_CONF``. It
needs root, as its daemons do.
"""

import os
import pwd
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager, suppress
from pathlib import Path

PROGRAMS = ("munged", "slurmctld", "slurmd", "sbatch")
SECONDS = 60
CONFIG = """
ClusterName=alone
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={controller}
SlurmdPort={node}
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket,cred_expire=5
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
MpiDefault=none
ReturnToService=2
KillWait=5
InactiveLimit=0
SchedulerTimeSlice=5
NodeName={host} NodeAddr=127.0.0.1 CPUs={cores} RealMemory={memory} State=UNKNOWN
PartitionName=all Nodes={host} Default=YES MaxTime=INFINITE State=UP
"""


def is_installed():
    """Tell whether a cluster can be started here."""
    return os.geteuid() == 0 and all(map(shutil.which, PROGRAMS))


@contextmanager
def cluster(cores=2):
    """Yield the environment variables by which commands find a cluster of this machine."""
    with tempfile.TemporaryDirectory(prefix="slurm-", dir="/tmp") as name:
        folder, daemons = Path(name), []
        folder.chmod(0o755)
        try:
            variables = {"SLURM_CONF": str(folder / "slurm.conf")}
            daemons.append(start_munge(folder))
            host = socket.gethostname().partition(".")[0]
            ports = free_ports(2)
            memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") >> 20
            about = {"host": host, "folder": folder, "cores": cores, "memory": memory * 9 // 10}
            text = CONFIG.format(**about, controller=ports[0], node=ports[1])
            (folder / "slurm.conf").write_text(text)
            for part in ("state", "spool"):
                (folder / part).mkdir()
            environment = {**os.environ, **variables}
            for program in (("slurmctld", "-D"), ("slurmd", "-D", "-N", host)):
                daemons.append(start(program, folder, environment))
            wait_for_node(environment, folder)
            yield variables
        finally:
            for daemon in reversed(daemons):
                daemon.terminate()
            for daemon in reversed(daemons):
                with suppress(subprocess.TimeoutExpired):
                    daemon.wait(10)
                daemon.kill()
                daemon.wait()


def start_munge(folder):
    """Start what signs the messages, as its own user."""
    key = folder / "munge.key"
    key.write_bytes(secrets.token_bytes(128))
    key.chmod(0o400)
    user = pwd.getpwnam("munge")
    os.chown(key, user.pw_uid, user.pw_gid)
    own = folder / "munge"
    own.mkdir()
    os.chown(own, user.pw_uid, user.pw_gid)
    command = (
        *("munged", "--foreground", "--force", f"--socket={folder}/munge.socket"),
        *(f"--key-file={key}", f"--pid-file={own}/pid", f"--seed-file={own}/seed"),
        *(f"--log-file={own}/log",),
    )
    folder.chmod(0o777)
    return start(command, folder, os.environ, user="munge")


def start(command, folder, environment, user=None):
    """Start a daemon in the foreground, in a session of its own."""
    with (folder / f"{Path(command[0]).name}.out").open("wb") as out:
        return subprocess.Popen(
            command, env=environment, user=user, stdout=out, stderr=out, start_new_session=True
        )


def free_ports(count):
    """Return ports that nobody listens at."""
    sockets = [socket.socket() for _ in range(count)]
    for one in sockets:
        one.bind(("127.0.0.1", 0))
    ports = [one.getsockname()[1] for one in sockets]
    for one in sockets:
        one.close()
    return ports


def wait_for_node(environment, folder):
    """Wait until jobs can be begun."""
    deadline = time.monotonic() + SECONDS
    while time.monotonic() < deadline:
        asked = ["sinfo", "-h", "-o", "%T"]
        done = subprocess.run(asked, env=environment, capture_output=True, text=True)
        if done.stdout.strip() == "idle":
            return
        time.sleep(0.2)
    logs = [path.read_text(errors="replace")[-2000:] for path in sorted(folder.glob("*.log"))]
    raise RuntimeError(f"SLURM does not start: {done.stdout} {done.stderr} {' '.join(logs)}")


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    with cluster() as found:
        sys.exit(subprocess.run(sys.argv[1:], env={**os.environ, **found}).returncode)
