"""Streams and traces as other writers may store them: small files that claim, or take, very much.

Each is refused in one message, or is read within little memory and time.
"""

import hashlib
import itertools
import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from ssvm_bench.datasets import stream
from tests.faults import case
from tests.faults.case import Case

MEGABYTES = 400
"""Most memory that a call takes, beyond what the imports do."""

OPTIONS = (
    *({}, {"compression": "zstd"}, {"use_dictionary": False, "compression": "zstd"}),
    *({"use_dictionary": False, "compression": "gzip"}, {"write_page_index": True}),
    {"use_dictionary": False, "column_encoding": dict.fromkeys("xy", "DELTA_BYTE_ARRAY")},
)
ODD: tuple[Any, ...] = (
    *(None, True, -1, 0, 1, 2**40, 1.5, "", "x", "<U100000", "<f2", "|S1", ">f8", "<f4", "|u1"),
    *([], {}, [1, 2, 3], "bits", "rows", "graph", "real"),
)


def cases(rng: random.Random, folder: Path) -> Iterator[Case]:
    """Write such files for ever."""
    path = folder / "usps.parquet"
    words = ["data", "export", "usps", str(path), "dataset.source=synthetic"]
    done = case.call(folder / "log", *words, "dataset.n_samples=12")
    assert done.returncode == 0, done.stderr
    table, about = pq.read_table(path), pq.read_metadata(path).metadata[stream.KEY]
    for number in itertools.count():
        made, header = folder / "made.parquet", json.loads(about)
        what = _written(made, table, header, rng)
        words = ["run", "dataset=stream", f"dataset.path={made}", "budget.max_iterations=1"]
        words += [f"results_dir={folder / f'results-{number}'}", "quiet=true"]
        solver = rng.choice(("bcfw", "dcd_online"))
        done = case.call(
            folder / "log", *words, f"solver={solver}", most=MEGABYTES << 20, seconds=60
        )
        yield Case("stream", f"{solver} {what}", case.no_one_message(done))


def _written(path: Path, table: pa.Table, header: dict, rng: random.Random) -> str:
    """Write a file of repeated or odd cells, with a header that fits its rows; return what."""
    n = rng.choice((1, 12, 1000, 200_000, 2_000_000))
    arrays, said = {}, [f"{n} rows"]
    for field in table.schema:
        cell = table[field.name][0].as_py()
        if isinstance(cell, bytes) and rng.random() < 0.4:
            cell *= rng.choice((0, 1, 2, 100, 1000)) if n < 10_000 else rng.choice((0, 1, 2))
            said.append(f"{field.name} {len(cell)} bytes")
        one = pa.array([cell], field.type)
        rows = pa.DictionaryArray.from_arrays(pa.array(np.zeros(n, np.int32)), one)
        arrays[field.name] = rows
    how, size = rng.choice(OPTIONS), rng.choice((n, n, max(1, n // 10)))
    header["splits"] = {"train": [-(-n // size), n, rng.choice((1, n, 10**12))]}
    if rng.random() < 0.4:
        inner = rng.choice((header, header["encoding"], header["dtypes"]))
        key = rng.choice([*inner])
        inner[key] = rng.choice(ODD)
        said.append(f"{key} = {inner[key]!r}")
    content = json.dumps(header).encode()
    sums = {stream.KEY: content, stream.CHECKSUM_KEY: hashlib.sha256(content).hexdigest()}
    # the dictionary is Arrow's in this process only: what is stored has the plain types
    schema = pa.schema([field.with_metadata(None) for field in table.schema])
    with pq.ParquetWriter(path, schema.with_metadata(sums), **how) as writer:
        for begin in range(0, n, size):
            part = {k: rows.slice(begin, size).dictionary_decode() for k, rows in arrays.items()}
            writer.write_table(pa.table(part, schema=schema.with_metadata(sums)))
    return f"{', '.join(said)}, groups of {size}, {how}"
