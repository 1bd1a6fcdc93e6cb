"""Executes runs by a ray cluster: an existing one, or one of its own.

A worker that died is replaced, and its job is executed again, up to three times.
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

import ray
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from ssvm_bench.base.errors import RunFailedError, described, shown
from ssvm_bench.jobs import Options
from ssvm_bench.jobs.dispatch import Executor, Job, JobResult, LostError
from ssvm_bench.jobs.processes import perform
from ssvm_bench.jobs.tokens import CancelToken

REACH_SECONDS = 5
_OF_OWN = {"RAY_AUTH_MODE": "disabled", "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0"}
"""Variables of a cluster of its own: no token in the home folder, no warning of changes."""

_HEALTH_SECONDS = 3 * REACH_SECONDS  # includes the start of the program that checks
_NODE_SECONDS = 60  # includes the start of the process that answers


class Ray(Executor):
    """The executor of ray: the cluster at an address, or else one with ``options.jobs`` CPUs.

    An address is ``host:6379``, ``ray://host:10001`` or ``auto``.
    """

    def __init__(self, options: Options, token: CancelToken) -> None:
        super().__init__(token)
        address = options.address
        quiet: dict[str, Any] = {"log_to_driver": False, "logging_level": "critical"}
        if address is None:
            quiet |= {"num_cpus": options.jobs or 1, "include_dashboard": False}
            for key, text in _OF_OWN.items():
                os.environ.setdefault(key, text)
        try:
            if address is not None:
                _check_reachable(address)
            ray.init(address=address or "local", **quiet)
        except Exception as error:  # of any class, also plain ones
            what = f"at {shown(address)}" if address else "of its own"
            raise RunFailedError(
                f"No ray cluster answers {what} ({described(error)}). Start one with `ray start "
                "--head`, or give the address that it prints."
            ) from error
        self._perform = ray.remote(num_cpus=1, max_retries=3)(perform)
        self._numbers: dict[Any, int] = {}

    def problems(self) -> dict[str, object]:
        """Check on every node whether it can execute runs."""
        nodes = [node for node in ray.nodes() if node["Alive"]]
        counts = [int(node["Resources"].get("CPU", 0)) for node in nodes]
        self.at_once, self.beside = max(sum(counts), 1), max(*counts, 1) - 1
        ask = ray.remote(num_cpus=0, max_retries=0)(CancelToken.problem)
        answers: dict[str, Any] = {}
        for node in nodes:
            there = NodeAffinitySchedulingStrategy(node["NodeID"], soft=False)
            name = f"{node['NodeManagerHostname']} ({node['NodeID'][:8]})"
            answers[name] = ask.options(scheduling_strategy=there).remote(self.token)
        for name, reference in answers.items():
            try:
                answers[name] = ray.get(reference, timeout=_NODE_SECONDS)
            except Exception as error:  # whatever the node lacks
                answers[name] = error
        return answers

    def submit(self, jobs: Mapping[int, Job]) -> None:
        """Submit jobs to the cluster."""
        for number, job in jobs.items():
            self._numbers[self._perform.remote(job)] = number

    def wait(self, seconds: float) -> list[tuple[int, JobResult]]:
        """Return a job that has ended."""
        ended = []
        for reference in ray.wait(list(self._numbers), num_returns=1, timeout=seconds)[0]:
            try:
                result = ray.get(reference)
            except ray.exceptions.WorkerCrashedError as error:
                result = JobResult(LostError(f"ray says {shown(error)}"))
            except Exception as error:
                result = JobResult.failed(error, "ray")
            ended.append((self._numbers.pop(reference), result))
        return ended

    def close(self, finished: bool) -> None:
        """Leave the cluster, which then drops the jobs; shut down one of its own."""
        ray.shutdown()


def _check_reachable(address: str) -> None:
    """Raise an error if no cluster answers at an address that has a port."""
    parts = urlsplit(address if "://" in address else f"//{address}")
    if parts.port is None or not parts.hostname:
        return
    socket.create_connection((parts.hostname, parts.port), timeout=REACH_SECONDS).close()
    if not parts.scheme:  # ray itself would wait minutes for a silent listener
        command = (sys.executable, "-m", "ray.scripts.scripts", "health-check")
        try:
            subprocess.run(
                [*command, "--skip-version-check", "--address", address],
                capture_output=True,
                timeout=_HEALTH_SECONDS,
                check=True,
            )
        except subprocess.SubprocessError as error:
            raise ConnectionError("somebody listens who is no ray cluster") from error
