"""Run a command in a process of its own, and write what it took.

    python -S -E launcher.py OUT COMMAND …

OUT is a JSON file: wall and CPU seconds, the peak of its memory in bytes and its exit status. For
Linux, the peak of a process is at least that of the one that started it; so this one, which imports
next to nothing, stands between it and a program that may be large.
"""

import json
import os
import subprocess
import sys
from pathlib import Path
from time import perf_counter

UNIT = 1 if sys.platform == "darwin" else 1024  # bytes per unit of ru_maxrss


def main(out: str, *command: str) -> None:
    """Run the command."""
    begin = perf_counter()
    process = subprocess.Popen(command)
    # unlike RUSAGE_CHILDREN, this is about one child alone
    _, status, usage = os.wait4(process.pid, 0)
    wall = perf_counter() - begin
    process.returncode = os.waitstatus_to_exitcode(status)
    cpu, peak = usage.ru_utime + usage.ru_stime, UNIT * usage.ru_maxrss
    told = {"wall": wall, "cpu": cpu, "peak": peak, "status": process.returncode}
    Path(out).write_text(json.dumps(told))


if __name__ == "__main__":
    main(*sys.argv[1:])
