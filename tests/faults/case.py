"""What a campaign says of one fault, and how its faults are made and counted."""

import importlib
import random
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import NamedTuple


class Case(NamedTuple):
    """One fault, and what the program made of it.

    Attributes
    ----------
    kind : str
        What was done, in a few words; cases are counted by it.
    what : str
        The fault itself, so that it can be made again: the command, the file, the bytes.
    failure : str
        What did not hold; empty if all did.
    """

    kind: str
    what: str
    failure: str = ""


def campaign(name: str, seconds: float, seed: int) -> tuple[Counter[str], Counter[str]]:
    """Make the faults of one campaign; return how many of each kind there were, and failed."""
    module = importlib.import_module(f"tests.faults.{name}")
    made: Counter[str] = Counter()
    failed: Counter[str] = Counter()
    deadline = time.monotonic() + seconds
    with tempfile.TemporaryDirectory(prefix="ssvm-bench-faults-") as folder:
        for case in module.cases(random.Random(seed), Path(folder)):
            made[case.kind] += 1
            if case.failure:
                failed[case.kind] += 1
                print(f"FAILED {name}: {case.kind}: {case.what}: {case.failure}", flush=True)
            if time.monotonic() > deadline:
                break
    return made, failed
