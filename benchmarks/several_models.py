"""P-BMRM with P = 16 beside BMRM on MNIST: time to the gap at which they stop.

Sixteen planes an iteration save iterations, and cost their inner products with all planes that are
kept and a larger inner QP: what is without weight in 20 iterations is dropped. The note has where
the time goes: to the passes of the oracle, to inner products, and to QPs.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from benchmarks.passes import loaded, seconds
from benchmarks.report import SIXTEEN, Measurement, from_samples
from ssvm_bench.base.clock import Clock
from ssvm_bench.config.compose import compose_runs
from ssvm_bench.oracles.base import Problem
from ssvm_bench.runs import components

LAM = "lam=10/n"
RIVALS = ("solver=bmrm",), ("solver=p_bmrm", "solver.P=16", "solver.drop=20")


def measure_several_models(call: Sequence[str]) -> Iterator[Measurement]:
    """Measure on the digits that the overrides ``call`` choose."""
    (config,) = compose_runs((*call, *RIVALS[0], LAM))
    if config.dataset.kind != "mnist":
        return
    dataset = loaded(config.dataset)
    oracle = components.build_oracle(config.oracle, config.dataset)
    times, notes = [], []
    for options in RIVALS:
        (config,) = compose_runs((*call, *options, LAM))
        components.warm_up(config, dataset)
        problem = Problem(oracle, config.lam_of(dataset.n))
        solver = components.build_solver(config, problem, Clock("cpu"))
        spent, iterations = 0.0, 0
        while not (solver.converged or solver.ended):
            spent += seconds(solver.iterate)
            iterations += 1
        beside = solver.diagnostics()
        products, qps = beside["gram_time"], beside["qp_time"]
        shares = [spent - products - qps, products, qps]
        times.append(spent)
        parts = " + ".join(f"{1e3 * share / iterations:.0f}" for share in shares)
        notes.append(f"{iterations} × ({parts}) ms")
    yield from_samples(
        *(dataset.name, dataset.source, SIXTEEN, [times[1] / times[0]]),
        seconds=times[1],
        note=f"{notes[1]} beside {notes[0]}",
    )
