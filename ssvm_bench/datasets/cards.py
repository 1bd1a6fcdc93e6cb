"""What ``ssvm-bench data card`` tells of a dataset.

All of it stands elsewhere: the first line and the references of the docstring of its module, the
comment of its YAML file, and its raw files.
"""

from __future__ import annotations

import inspect
import re
import sys
from typing import Any

from ssvm_bench.base.errors import RunFailedError
from ssvm_bench.config import catalog
from ssvm_bench.datasets import sources
from ssvm_bench.datasets.base import Dataset

MADE = "that of the files it is made of; what the program makes needs none"


def card(name: str) -> dict[str, Any]:
    """Return what there is to say of a dataset: heading → text, or name → text."""
    module = sources.module_of(name)
    # a module of several datasets is behind what the registry takes for theirs
    texts = [inspect.getdoc(each) or "" for each in (module, sys.modules[module.Config.__module__])]
    text = next((each for each in texts if "\nReferences\n" in each), texts[0])
    cited = re.search(r"^References\n-+\n(.+)\Z", text, re.MULTILINE | re.DOTALL)
    found = {
        "name": name,
        "about": catalog.description(catalog.entries("dataset")[name]),
        "module": text.partition("\n")[0],
    }
    if not sources.has_raw_file(name):
        return {**found, "licence": MADE}
    raw, there = sources.raw_file(name), sources.status(name)
    return {
        **found,
        "source": raw.url,
        "licence": raw.licence,
        "examples": _counts(name, raw.n, there),
        "sha256 unpacked": dict(raw.sha256) or "not known",
        "here": f"{there.path} ({there.state})",
        "citation": " ".join(cited[1].split()) if cited else "see the source",
    }


def _counts(name: str, n: int, there: sources.DatasetStatus) -> str:
    """Return the numbers of examples, labels and features, as far as they can be counted soon."""
    prepared = sources.raw_file(name).prepared
    if there.state != "ready" or (prepared and there.kept is None):
        return f"{n}"
    try:
        data = sources.module_of(name).load(sources.usual(name, "real"))
    except RunFailedError:
        return f"{n}"
    if not isinstance(data, Dataset):
        return f"{n}"
    parts = f" of {data.y.size} parts" if data.y.size != data.n else ""
    held_out = "".join(f", {split.n} {of}" for of, split in data.held_out.items())
    labels = f"{data.n_labels} labels, " if data.n_labels else ""
    what = f"{data.structure}, {labels}{data.n_features} features"
    return f"{data.n} to train on{parts}{held_out}; {what}"
