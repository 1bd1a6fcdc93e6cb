"""The contract of datasets (:mod:`ssvm_bench.datasets.base`), beyond what each `Dataset` checks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ssvm_bench.config import LOADED_FROM
from ssvm_bench.datasets.base import Dataset
from ssvm_bench.oracles.base import Oracle
from ssvm_bench.runs.contracts.findings import BrokenError, Findings, expect


def check(load: Callable[[], Any], build: Callable[[Dataset], Oracle], findings: Findings) -> None:
    """Check what a loader returns.

    Parameters
    ----------
    load : callable
        Loads the dataset.
    build : callable
        Makes the oracle that it brings.
    findings : Findings
    """
    loaded: list[Dataset] = []
    with findings.claim("load returns a Dataset, in which everything is in range"):
        found = load()
        if not isinstance(found, Dataset):
            raise BrokenError(f"it returns a {type(found).__name__}")
        loaded.append(found)
    if not loaded:
        return
    (dataset,) = loaded
    with findings.claim("loaded again, it has the same examples"):
        again = load()
        expect(
            again.fingerprint == dataset.fingerprint,
            f"their fingerprint was {dataset.fingerprint}, then {again.fingerprint}",
        )
        for name, examples in dataset.held_out.items():
            same = again.held_out[name].fingerprint == examples.fingerprint
            expect(same, f"those held out for {name} are others")
    with findings.claim("its source is one that tables and figures know"):
        known = ", ".join(LOADED_FROM)
        expect(dataset.source in LOADED_FROM, f"{dataset.source!r} is none of {known}")
    with findings.claim("its oracle can be built, of all examples and of some"):
        some = dataset.take(np.arange(min(3, dataset.n)))
        sizes = {build(some).d, build(dataset.take(np.arange(min(2, dataset.n)))).d}
        expect(len(sizes) == 1, f"it has {min(sizes)} or {max(sizes)} weights")
    if dataset.n_labels:
        missing = np.flatnonzero(np.bincount(dataset.y, minlength=dataset.n_labels) == 0)
        if missing.size:
            names = ", ".join(dataset.label_names[k] for k in missing[:5])
            findings.note(f"{missing.size} labels have no example", names)
    used = np.zeros(dataset.n_features, bool)
    if isinstance(dataset.x, np.ndarray):
        used |= (dataset.x != 0).any(axis=0)
    else:
        used[dataset.x.indices] = True
    if not used.all():
        findings.note("some features are 0 in all examples", f"{np.count_nonzero(~used)} of them")
