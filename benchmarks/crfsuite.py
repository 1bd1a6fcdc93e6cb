"""Train and use CRFsuite, in a process of its own: nothing else is in its memory.

    python -m benchmarks.crfsuite ALGORITHM ITERATIONS TRAINING TEST OUT

Sentences are lines of a label and the names of features, separated by tabs, with an empty line
behind each; OUT is a JSON file.
"""

from __future__ import annotations

import json
import re
import resource
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pycrfsuite

Sentence = tuple[list[list[str]], list[str]]
"""Names of features, and labels, of the words."""


def sentences(file: Path) -> Iterator[Sentence]:
    """Yield the sentences of a file."""
    names: list[list[str]] = []
    labels: list[str] = []
    with file.open(encoding="utf-8") as lines:
        for line in lines:
            if line == "\n":
                yield names, labels
                names, labels = [], []
            else:
                label, *there = line.rstrip("\n").split("\t")
                names.append(there)
                labels.append(label)


def peak() -> int:
    """Return the peak memory in bytes; Linux has that of the parent in ``ru_maxrss``, too."""
    status = Path("/proc/self/status")
    if not status.exists():
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    found = re.search(r"VmHWM:\s+(\d+) kB", status.read_text())
    assert found is not None
    return 1024 * int(found[1])


def main(algorithm: str, iterations: str, training: str, test: str, out: str) -> None:
    """Train, with the algorithm's own options but for the number of iterations; label the test."""
    trainer = pycrfsuite.Trainer(algorithm, verbose=False)
    for sentence in sentences(Path(training)):
        trainer.append(*sentence)
    trainer.set_params({"max_iterations": int(iterations)})
    with tempfile.TemporaryDirectory() as folder:
        model = str(Path(folder, "model"))
        begin = time.process_time()
        trainer.train(model)
        spent = time.process_time() - begin
        most = peak()
        tagger = pycrfsuite.Tagger()
        tagger.open(model)
        labels = [label for names, _ in sentences(Path(test)) for label in tagger.tag(names)]
    Path(out).write_text(json.dumps({"seconds": spent, "peak": most, "labels": labels}))


if __name__ == "__main__":
    main(*sys.argv[1:])
