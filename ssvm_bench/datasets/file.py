"""The user's own examples: a file of columns, in LIBSVM's format, or an npz.

A run is identified by the content of its files, not by their paths. Each format is a module of
:mod:`ssvm_bench.datasets.own_files`. It parses a file, learns the vocabulary of a training file,
and turns any file into the fields of a `Dataset`, given a vocabulary. Held-out files and those to
predict have the format of the training file.

**A file's format** is recognised by evidence for it:

===========  =======================================================================================
``npz``      the first bytes are those of a zip archive
``svmlight`` all lines looked at are rows of the format, and one has an ``index:value``
``columns``  all lines have the same number of columns, and nothing speaks for another table
             (:func:`ssvm_bench.datasets.own_files.columns.objection`)
===========  =======================================================================================

The end of a file's name, or an option that only one format has, states the format: the file is then
read as that, or refused. Columns alone need evidence nevertheless, because almost every text can be
read as columns.
"""

from __future__ import annotations

import functools
import hashlib
import io
import json
import logging
import math
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any, ClassVar, NamedTuple

import numpy as np

from ssvm_bench.base.errors import ConfigError, shown
from ssvm_bench.base.files import opened
from ssvm_bench.base.memory import check_room
from ssvm_bench.base.random import permutation
from ssvm_bench.config import FORMATS
from ssvm_bench.config.validation import Count, check_share, defaults, one_of
from ssvm_bench.datasets import reading, sources
from ssvm_bench.datasets.arrays import array, offsets_of
from ssvm_bench.datasets.base import BiasConfig, Dataset, FileConfig, described
from ssvm_bench.datasets.own_files import columns, npz, svmlight
from ssvm_bench.datasets.own_files.svmlight import BASES
from ssvm_bench.datasets.reading import ContentError, ensure
from ssvm_bench.datasets.vocabulary import (
    BLANKS,
    BOUNDARIES,
    LEARNED_POTTS,
    SEPARATORS,
    Vocabulary,
    check_classes,
    read_templates,
)

MODULES: dict[str, Any] = dict(zip(FORMATS, (columns, svmlight, npz), strict=True))
"""Format → the module that reads it."""

_LINES, _BYTES = 1000, 1 << 18
"""Lines that are looked at: so many, or of so many bytes together."""

_USUAL = {"templates": None, "boundary": BOUNDARIES[0], "min_count": 1}
_ZIP = b"PK\x03\x04", b"PK\x05\x06"
_BOM = b"\xef\xbb\xbf"
_OTHERS = {
    b"\x93NUMPY": "a single array: numpy.savez writes several, with names",
    b"PAR1\x15": "a Parquet file: dataset=stream reads those that `ssvm-bench data export` writes",
    b"\x89HDF": "an HDF5 file: write its arrays by numpy.savez",
    b"MATLAB 5.0 MAT-file": "a MATLAB file: write its arrays by numpy.savez",
    **{b"\x80" + bytes([k]): "a pickle, which could run any program" for k in range(2, 6)},
    b"\x1f\x8b": "packed twice by gzip: unpack it once",
    **dict.fromkeys(
        (b"BZh91AY", b"\xfd7zXZ", b"\x28\xb5\x2f\xfd"), "packed: use gzip, or unpack it"
    ),
    **dict.fromkeys((b"\xff\xfe", b"\xfe\xff"), "text in UTF-16: store it in UTF-8"),
}
"""First bytes of files → what they are."""


def text(raw: bytes) -> bytes:
    """Return the bytes of a text without a byte order mark, with lines that end in a newline."""
    if raw.startswith(_ZIP):
        return raw
    raw = raw.removeprefix(_BOM)
    return raw.replace(b"\r\n", b"\n").replace(b"\r", b"\n") if b"\r" in raw else raw


def recognised(path: Path, raw: bytes, stated: str | None = None, separator: str = BLANKS) -> str:
    """Return the format of a file.

    Parameters
    ----------
    path : Path
    raw : bytes
        Its unpacked content, as `text` returns it.
    stated : str, optional
        The format that options state.
    separator : str
        Of columns.

    Raises
    ------
    ContentError
        No format fits. The message names what is nearest, and the first line that speaks against.
    """
    if raw.startswith(_ZIP):
        return npz.FORMAT
    for first, what in _OTHERS.items():
        ensure(not raw.startswith(first), f"it is {what}")
    suffixes = [suffix for suffix in path.suffixes if suffix != ".gz"]
    named = [name for name, each in MODULES.items() if suffixes[-1:] and suffixes[-1] in each.NAMES]
    stated = stated or next(iter(named), None)
    if stated not in (None, columns.FORMAT):
        return stated
    lines = _head(raw)
    if not any(map(bytes.strip, lines)):
        raise ContentError(
            f"{f'its first {len(lines)} lines are' if raw.strip() else 'the file is'} empty"
        )
    ensure(not any(b"\0" in line for line in lines), "it is no text, and no .npz")
    _check_read(lines, quotes=True)
    objections = {
        svmlight.FORMAT: svmlight.objection(lines),
        columns.FORMAT: columns.objection(lines, stated == columns.FORMAT, separator),
    }
    for name, found in objections.items():
        if found is None and stated in (None, name):
            return name
    against = {name: found for name, found in objections.items() if found}
    raise ContentError(_unknown(lines, against, separator))


def _head(raw: bytes) -> list[bytes]:
    """Return the first lines, whole ones."""
    lines, size = list[bytes](), 0
    for line in io.BytesIO(raw):
        lines.append(line)
        size += len(line)
        if len(lines) == _LINES or size > _BYTES:
            break
    return lines


def _check_read(lines: Sequence[bytes], quotes: bool) -> None:
    """Raise `ContentError` for a text of a known format that is not read, and say what to write.

    With ``quotes``, CSV with quotes is one.
    """
    first = lines[_first(lines) - 1].strip()
    try:
        is_json = isinstance(json.loads(first), dict | list)
    except ValueError:
        is_json = first in (b"{", b"[")
    if is_json or (quotes and columns.has_quotes(lines)):
        error = ContentError(f"it is {'JSON' if is_json else 'CSV with quotes'}, which is not read")
        error.advice = (
            "In Python, StructuredSVM takes a list of dictionaries for each example; or write a "
            "file: frame.to_csv(path, sep='\\t', quoting=3, header=False, index=False), with an "
            "empty line after each sequence, for dataset.separator=tab (`ssvm-bench help own_data`)"
            "."
        )
        raise error


def begins_as_svmlight(raw: bytes) -> bool:
    """Whether the first line of a file is a row of svmlight, or half of its lines resemble one."""
    lines = _head(raw)
    found = svmlight.objection(lines)
    return found is None or found[0] > _first(lines) or svmlight.resembles(lines)


def _first(lines: Sequence[bytes]) -> int:
    """Return the number of the first line that is not blank, from 1."""
    return next(k for k, line in enumerate(lines, 1) if line.strip())


def _unknown(lines: Sequence[bytes], objections: dict[str, tuple[int, str]], separator: str) -> str:
    """Return what speaks against each format that comes near, the nearest one first.

    A format comes near if some lines fit, or resemble its, or if no other one comes nearer.
    """
    first, furthest = _first(lines), max(k for k, _ in objections.values())
    alike = [name for name in (svmlight.FORMAT,) if svmlight.resembles(lines)]
    near = [
        name
        for name in sorted(objections, key=lambda name: (name not in alike, -objections[name][0]))
        if name in alike or objections[name][0] > first or furthest == first
    ]
    said = []
    for name in near:
        k, why = objections[name]
        line = lines[k - 1].strip()[:200].decode(errors="replace")
        said.append(f"{name} (line {k}, {shown(repr(line), 50)}: {why})")
    forced = [name for name in near if _reads(name, lines, separator)]
    advice = f". dataset.format={' or '.join(forced)} would read it as such" if forced else ""
    return f"no format is recognised: not {', and not '.join(said)}{advice}"


def _reads(name: str, lines: Sequence[bytes], separator: str) -> bool:
    """Whether a format that is forced upon lines finds labels and features to learn from."""
    module = MODULES[name]
    usual = {"zero_based": svmlight.AUTO} if name == svmlight.FORMAT else _USUAL
    with suppress(ContentError):
        parsing = dict.fromkeys(module.PARSING, separator)
        vocabulary, _ = module.learned(module.parse(b"".join(lines), **parsing), **usual)
        check_classes(vocabulary.labels)
        return True
    return False


# ---- The user's examples ----------------------------------------------------------------------

logger = logging.getLogger(__name__)

AUTO = "auto"
HELD_OUT = ("validation", "test")
SPLIT_SEED = 1  # of the fixed permutation that selects held-out shares


@dataclass(frozen=True)
class Config(FileConfig, BiasConfig):
    """Options of the user's own examples.

    Attributes
    ----------
    format : str
        ``"columns"``, ``"svmlight"`` or ``"npz"``; ``"auto"``: detected.
    separator : str
        What separates columns: ``"blanks"``, any number of blanks or tabs; or one ``"tab"``,
        ``"comma"``, ``"semicolon"`` or ``"bar"``, between entries that may have blanks.
    zero_based : str
        Whether the indices of svmlight begin at 0: ``"true"`` or ``"false"``; ``"auto"``: they do
        if an index is 0.
    validation, test : Path, float or None
        A file of examples to hold out, or the share of those in ``path`` to hold out.
    templates : tuple of str, or Path
        Templates that turn columns into features, or a file of them; None: `default_templates`.
    boundary : str
        What templates see beyond the ends of a sequence.
    min_count : int
        Features of columns that occur in fewer parts than this are left out.
    """

    format: Annotated[str, one_of((AUTO, *FORMATS))] = AUTO
    separator: Annotated[str, one_of(SEPARATORS)] = BLANKS
    zero_based: Annotated[str, one_of(BASES)] = BASES[0]
    validation: float | Path | None = None
    test: float | Path | None = None
    templates: tuple[str, ...] | Path | None = None
    boundary: Annotated[str, one_of(BOUNDARIES)] = BOUNDARIES[0]
    min_count: Count = 1

    NOT_HASHED: ClassVar[tuple[str, ...]] = ("path", "format", *HELD_OUT)

    def __post_init__(self) -> None:
        """Check the options."""
        super().__post_init__()
        if self.path is None:
            raise ConfigError(
                "dataset=file needs dataset.path=FILE: columns of text, LIBSVM's format, or an "
                ".npz (`ssvm-bench help own_data` shows the layouts)."
            )
        if self.source == "synthetic":
            raise ConfigError(
                "dataset=file has no synthetic data, and dataset.source=synthetic asks for them."
            )
        shares = {name: of for name, of in self._held_out() if isinstance(of, float)}
        for name, share in shares.items():
            check_share(f"dataset.{name}", share)
        if sum(shares.values()) >= 1:
            raise ConfigError("dataset.validation and dataset.test leave no example to train on.")
        if len(stated := self._stated()) > 1:
            options = ", ".join(f"dataset.{name}" for names in stated.values() for name in names)
            raise ConfigError(
                f"{options} are options of {' and '.join(stated)}, and a file has one format. "
                "Leave out those of the others."
            )

    def _stated(self) -> dict[str, list[str]]:
        """Return the formats that the options state, each with these options."""
        cls: Any = type(self)
        usual, stated = defaults(cls), dict[str, list[str]]()
        if self.format != AUTO:
            stated[self.format] = ["format"]
        for name, module in MODULES.items():
            own = [each for each in module.OPTIONS if getattr(self, each) != usual[each]]
            if own:
                stated[name] = [*stated.get(name, []), *own]
        return stated

    def read_files(self) -> Config:
        """Return the config with its templates, and its fingerprint if the files can be read."""
        given = self.templates
        templates = None if given is None else read_templates(given)
        return replace(super().read_files(), templates=templates)

    def _held_out(self) -> list[tuple[str, Any]]:
        return [(name, value) for name in HELD_OUT if (value := getattr(self, name)) is not None]

    def found(self) -> str | None:
        """Return the fingerprint of all files' content; None if one cannot be read."""
        assert self.path is not None
        content: list[Any] = [digest(self.path)]
        for name, value in self._held_out():
            content += [name, digest(value) if isinstance(value, Path) else value]
        if "" in content:
            return None
        # a letter first, so that no YAML file or override takes it for a number
        return f"f{hashlib.sha256(repr(content).encode()).hexdigest()[:15]}"

    def default_oracles(self) -> tuple[str, ...]:
        """Return the oracles that fit these examples."""
        return _read(self.read_files()._key()).vocabulary.oracles

    def oracle_options(self) -> dict[str, Any]:
        """Return a learned Potts weight for graphs."""
        structure = _read(self.read_files()._key()).vocabulary.structure
        return LEARNED_POTTS if structure == "graph" else {}

    def _key(self) -> Config:
        """Return the config with only those options that decide what is read."""
        return replace(self, name="file", n_samples=None, source="auto", trust=False, bias=0.0)


def load(config: Config) -> Dataset:
    """Return the training examples, with the held-out ones.

    Raises
    ------
    ConfigError
        There are fewer than ``n_samples``, or no such file; or a template does not fit the columns.
    RunFailedError
        A file cannot be read, or does not have the requested fingerprint.
    """
    config.check_fingerprint(config.found())
    vocabulary, splits, notes = _read(config.read_files()._key())
    shares = {name: of for name, of in config._held_out() if isinstance(of, float)}
    if config.bias or shares:
        of = "A copy of the features, for a bias or what is held out,"
        check_room(float(splits[""]["x"].data.nbytes), of, "Use fewer examples.")
    datasets = {
        name: described(config.name, vocabulary, config.bias, fields)
        for name, fields in splits.items()
    }
    whole = datasets[""]
    logger.info(
        "%s: format %s, %s; %d examples, %d parts, %d labels, %d features",
        *(shown(config.path, 200), vocabulary.form, whole.structure, whole.n, whole.y.size),
        *(whole.n_labels, vocabulary.n_features),
    )
    for note in notes:
        logger.warning("%s", note)
    dataset, held_out = datasets.pop(""), datasets
    order, begin = permutation(dataset.n if shares else 0, np.random.PCG64(SPLIT_SEED)), 0
    for name, share in shares.items():
        end = begin + math.ceil(share * dataset.n)
        held_out[name] = dataset.take(np.sort(order[begin:end]))
        begin = end
    if begin >= dataset.n:
        raise ConfigError(
            f"dataset.validation and dataset.test hold out all {dataset.n} examples of "
            f"{config.path}."
        )
    dataset = dataset.take(np.sort(order[begin:])) if begin else dataset
    return sources.first_samples(config, dataset).derived(held_out=held_out)


class ReadExamples(NamedTuple):
    """Examples of another file, read with a vocabulary.

    Attributes
    ----------
    dataset : Dataset or None
        Those that have parts; None if there is none.
    labelled : bool
        Whether they have labels.
    offsets : ndarray of int64, shape (n + 1,)
        Example i, with or without parts, has the parts ``offsets[i]:offsets[i + 1]``.
    notes : list of str
        What a user should know of how the file is used.
    """

    dataset: Dataset | None
    labelled: bool
    offsets: np.ndarray
    notes: list[str]


def examples(path: Path, vocabulary: Vocabulary, name: str, format_: str | None) -> ReadExamples:
    """Read another file with a vocabulary.

    Parameters
    ----------
    path : Path
        A regular file, standard input (``-``), or another descriptor of this process.
    vocabulary : Vocabulary
    name : str
        The dataset's name.
    format_ : str, optional
        By default that of the vocabulary.

    Raises
    ------
    ConfigError
        There is no such file.
    RunFailedError
        The file cannot be read, or is of another format or structure than the vocabulary.
    """
    path = reading.check_file(path, descriptors=True)
    with _explained(path):
        raw = text(reading.content_of_users(path, descriptors=True))
        if not raw.strip() and (format_ or vocabulary.form) != "npz":
            return ReadExamples(None, False, np.zeros(1, np.int64), [])
        fields, notes = _fields(path, raw, vocabulary, format_)
        parts = fields["x"].shape[0]
        offsets = offsets_of(fields["offsets"], "offsets", parts, "rows of x", 0)
        _leave_out_empty(fields, offsets)
    if not parts:
        return ReadExamples(None, "y" in fields, offsets, notes)
    labelled = "y" in fields
    if not labelled:
        kind = np.float64 if vocabulary.structure == "regression" else np.uint8
        fields["y"] = np.zeros(parts, kind)
    dataset = described(name, vocabulary, vocabulary.bias, fields)
    return ReadExamples(dataset, labelled, offsets, notes)


def _leave_out_empty(fields: dict[str, Any], offsets: np.ndarray) -> None:
    """Leave out the examples without parts, whose labeling is empty."""
    kept = np.diff(offsets) > 0
    if kept.all():
        return
    ends = {"offsets": offsets}
    if {"edges", "edge_offsets"} <= fields.keys():
        edges = len(array(fields["edges"], "edges", shape=(None, 2)))
        ends["edge_offsets"] = offsets_of(fields["edge_offsets"], "edge_offsets", edges, "edges", 0)
    for key, bounds in ends.items():
        ensure(bounds.size == kept.size + 1, f"{key} are of {bounds.size - 1} examples")
        lengths = np.diff(bounds)
        ensure(not lengths[~kept].any(), f"{key}: an example without parts has edges")
        fields[key] = np.concatenate(([0], np.cumsum(lengths[kept])))
    for key in ("costs", "margins"):
        if key in fields and fields[key].shape == kept.shape:
            fields[key] = fields[key][kept]


class _Content(NamedTuple):
    """What is in the files of a config: the fields of each split, training with an empty name."""

    vocabulary: Vocabulary
    splits: dict[str, dict[str, Any]]
    notes: list[str]


@functools.lru_cache(maxsize=1)
def _read(config: Config) -> _Content:
    """Return the content of the files; equal configs have equal content. Raises as `load`."""
    assert config.path is not None
    for file in (config.path, *(each for _, each in config._held_out())):
        if isinstance(file, Path):
            reading.check_file(file)
    with _explained(config.path):
        raw = text(reading.content_of_users(config.path))
        with _separated(raw, config):
            form = config.format
            if form == AUTO:
                stated = next(iter(config._stated()), None)
                form = recognised(config.path, raw, stated, config.separator)
            if form == columns.FORMAT and any(map(bytes.strip, head := _head(raw))):
                _check_read(head, quotes=False)
            module, splits = MODULES[form], dict[str, dict[str, Any]]()
            found = module.parse(raw, **_parsing(module, config))
            parts = found if form == "npz" else {"": found}
            training = parts.pop("")
            if form == columns.FORMAT != config.format:
                columns.check_head(training)
            how = {name: getattr(config, name) for name in module.OPTIONS}
            vocabulary, splits[""] = module.learned(training, **how)
            occurring = np.unique(splits[""]["y"]) if vocabulary.labels else ()
            check_classes([vocabulary.labels[k] for k in occurring])
            notes = _notes(config.path, module, training, vocabulary)
            for name, content in parts.items():
                try:
                    splits[name] = _labelled(module.fields(content, vocabulary))
                except ContentError as error:
                    raise ContentError(f"its {name} examples: {error}") from error
    for name, file in config._held_out():
        if isinstance(file, Path):
            with _explained(file):
                raw = text(reading.content_of_users(file))
                fields, said = _fields(file, raw, vocabulary)
                splits[name] = _labelled(fields)
                notes += said
    return _Content(vocabulary, splits, notes)


OF_NUMBERS = (
    "A table of numbers comes as an .npz with x and y, which numpy.savez writes, or in LIBSVM's "
    "format (`ssvm-bench help own_data`)."
)
"""What to do with CSV."""


@contextmanager
def _separated(raw: bytes, config: Config) -> Iterator[None]:
    """Let an error about a text say which other separator of columns would read it."""
    try:
        yield
    except ContentError as error:
        lines, stated = _head(raw), [*config._stated()]
        head = b"".join(lines).decode(errors="replace")
        is_text = "\0" not in head and "\ufffd" not in head
        if not error.advice and stated in ([], [columns.FORMAT]) and is_text:
            if head.strip():
                _check_read(lines, quotes=True)
            other = columns.other_separator(lines, bool(stated), config.separator)
            if other:
                error.advice = other
            elif not stated and columns.is_table_of_numbers(lines):
                error.advice = OF_NUMBERS
        raise


def _parsing(module: Any, of: Config | Vocabulary) -> dict[str, str]:
    """Return the options by which a format is parsed."""
    return {name: getattr(of, name) for name in module.PARSING}


def _labelled(fields: dict[str, Any]) -> dict[str, Any]:
    ensure("y" in fields, "there are no labels (of an .npz: test.y beside test.x)")
    return fields


def _fields(
    path: Path, raw: bytes, vocabulary: Vocabulary, format_: str | None = None
) -> tuple[dict[str, Any], list[str]]:
    """Return fields of a `Dataset` for another file, without ``y`` if it has no labels, and notes.

    If it cannot be read in the format trained on, and is recognised as another, the error says so.
    """
    form = format_ or vocabulary.form
    ensure(form in FORMATS, f"the run was trained on {shown(form)}, which is no format of files")
    module = MODULES[form]
    try:
        found = module.parse(raw, **_parsing(module, vocabulary))
        content = found[""] if form == "npz" else found
        fields = dict(module.fields(content, vocabulary))
    except ContentError as error:
        other = form
        with suppress(ContentError):
            other = recognised(path, raw, separator=vocabulary.separator)
        near = form == "svmlight" and other == "columns" and begins_as_svmlight(raw)
        if format_ is not None or other == form or near:
            raise
        raise ContentError(
            f"its format is {other}, and that of the file trained on {form}"
        ) from error
    return fields, _notes(path, module, content, vocabulary)


def _notes(path: Path, module: Any, content: Any, vocabulary: Vocabulary) -> list[str]:
    """Return what a user should know of how a file is used."""
    return [f"{reading.called(path, 200)}: {note}" for note in module.notes(content, vocabulary)]


def _explained(path: Path) -> AbstractContextManager[None]:
    """Turn errors about a user's file, raised in a block, into `RunFailedError`."""
    return reading.explained(f"{reading.called(path)} cannot be used", "Correct the file.")


def digest(path: Path) -> str:
    """Return the digest of a file's unpacked content; empty if it cannot be read."""
    with suppress(OSError, ValueError):
        found = path.stat()
        return _digest(path, found.st_mtime_ns, found.st_size)
    return ""


@functools.lru_cache(maxsize=64)
def _digest(path: Path, mtime_ns: int, size: int) -> str:
    sha256 = hashlib.sha256()
    with opened(path) as file, reading.unpacked(file, reading.MOST_OF_USERS) as stream:
        for block in stream:
            sha256.update(block)
    return sha256.hexdigest()
