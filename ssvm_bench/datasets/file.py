"""Examples of the user's own: a file of columns, of LIBSVM's format, or an npz.

A run is known by what is in its files, not by where they are. See
:mod:`ssvm_bench.datasets.own_files` for the forms.
"""

from __future__ import annotations

import functools
import hashlib
import math
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any, ClassVar

import numpy as np

from ssvm_bench.base.errors import ConfigError, RunFailedError
from ssvm_bench.base.random import permutation
from ssvm_bench.config.validation import Count, check_share, one_of
from ssvm_bench.datasets import sources
from ssvm_bench.datasets.base import BiasConfig, Dataset
from ssvm_bench.datasets.own_files import forms, templates
from ssvm_bench.datasets.own_files.forms import FORMS, How
from ssvm_bench.datasets.own_files.templates import BOUNDARIES
from ssvm_bench.datasets.reading import ContentError
from ssvm_bench.datasets.vocabulary import Vocabulary

AUTO = "auto"
HELD_OUT = ("validation", "test")
SPLIT_SEED = 1  # of the fixed permutation behind shares that are held out


@dataclass(frozen=True)
class Config(BiasConfig):
    """Options of the examples.

    Attributes
    ----------
    path : Path
        The file.
    format : str
        ``"columns"``, ``"svmlight"`` or ``"npz"``; ``"auto"``: found out.
    validation, test : Path, float or None
        A file of examples to hold out, or which share of those in ``path``.
    templates : tuple of str, or Path
        What makes features of columns: templates, or a file of them; None: `templates.default`.
    boundary : str
        What templates see beyond the ends of a sequence.
    min_count : int
        Features of columns that fewer parts have are left out.
    fingerprint : str, optional
        That of what is in the files, to be sure of it; None: whatever is there.
    """

    path: Path | None = None
    format: Annotated[str, one_of((AUTO, *FORMS))] = AUTO
    validation: float | Path | None = None
    test: float | Path | None = None
    templates: tuple[str, ...] | Path | None = None
    boundary: Annotated[str, one_of(BOUNDARIES)] = BOUNDARIES[0]
    min_count: Count = 1
    fingerprint: str | None = None

    NOT_HASHED: ClassVar[tuple[str, ...]] = ("path", "format", *HELD_OUT)

    def __post_init__(self) -> None:
        """Check the options."""
        super().__post_init__()
        if self.path is None:
            raise ConfigError(
                "dataset=file needs dataset.path=FILE: columns of text, LIBSVM's format, or an "
                ".npz (docs/files.md has the layouts)."
            )
        if self.source == "synthetic":
            raise ConfigError(
                "dataset=file has no synthetic data, and dataset.source=synthetic asks for them."
            )
        shares = [share for _, share in self._held_out() if isinstance(share, float)]
        for name, share in self._held_out():
            if isinstance(share, float):
                check_share(f"dataset.{name}", share)
        if sum(shares) >= 1:
            raise ConfigError("dataset.validation and dataset.test leave no example to train on.")

    def read_files(self) -> Config:
        """Return the config with the templates, and the fingerprint where the files are there."""
        config = replace(self, templates=self._read_templates())
        return config if self.fingerprint else replace(config, fingerprint=config._found())

    def _held_out(self) -> list[tuple[str, Any]]:
        return [(name, value) for name in HELD_OUT if (value := getattr(self, name)) is not None]

    def _read_templates(self) -> tuple[str, ...] | None:
        """Return the templates, from their file if they are in one."""
        given = self.templates
        if isinstance(given, Path):
            one = "%x[" in str(given)
            given = (str(given),) if one else tuple(each.text for each in templates.read(given))
        if given is not None and not given:
            raise ConfigError(f"{templates.OPTION} is empty. Name templates, or leave it out.")
        for text in given or ():
            templates.parse(text)
        return given

    def _found(self) -> str | None:
        """Return the fingerprint of what is in the files; None where one cannot be read."""
        assert self.path is not None
        content: list[Any] = [forms.digest(self.path)]
        for name, value in self._held_out():
            content += [name, forms.digest(value) if isinstance(value, Path) else value]
        if "" in content:
            return None
        # a letter first, so that no YAML file or override takes it for a number
        return f"f{hashlib.sha256(repr(content).encode()).hexdigest()[:15]}"

    def default_oracle(self) -> str | None:
        """Return the oracle of these examples; None where they cannot be read: `load` tells."""
        with suppress(RunFailedError, ConfigError):
            vocabulary, _ = _read(self.read_files()._key())
            return vocabulary.oracle
        return None

    def _key(self) -> Config:
        """Return what of the options decides on what is read."""
        return replace(self, name="file", n_samples=None, source="auto", trust=False, bias=0.0)


def load(config: Config) -> Dataset:
    """Return the examples to train on, with those held out.

    Raises
    ------
    ConfigError
        There are fewer than ``n_samples``; or a template does not fit the columns.
    RunFailedError
        A file cannot be read, or has other content than was asked for.
    """
    if config.fingerprint not in (None, found := config._found()):
        raise RunFailedError(
            f"What is in {config.path}, and in files held out, has the fingerprint {found}, and "
            f"dataset.fingerprint is {config.fingerprint}. Name the files that have it, or leave "
            "the option out."
        )
    vocabulary, splits = _read(config.read_files()._key())
    held_out = {
        name: config.with_bias(forms.dataset(config.name, vocabulary, fields))
        for name, fields in splits.items()
        if name
    }
    dataset = config.with_bias(forms.dataset(config.name, vocabulary, splits[""]))
    order, begin = permutation(dataset.n, np.random.PCG64(SPLIT_SEED)), 0
    for name, share in config._held_out():
        if isinstance(share, float):
            end = begin + math.ceil(share * dataset.n)
            held_out[name] = dataset.take(np.sort(order[begin:end]))
            begin = end
    if begin >= dataset.n:
        raise ConfigError(
            f"dataset.validation and dataset.test hold out all {dataset.n} examples of "
            f"{config.path}."
        )
    dataset = dataset.take(np.sort(order[begin:])) if begin else dataset
    sources.check_n(config, dataset.n, "examples to train on")
    if config.n_samples is not None:
        dataset = sources.subset(dataset, config.n_samples)
    return dataset.derived(held_out=held_out)


@functools.lru_cache(maxsize=1)
def _read(config: Config) -> tuple[Vocabulary, dict[str, dict[str, Any]]]:
    """Return vocabulary, and fields of all splits; equal configs have equal content."""
    assert config.path is not None
    chosen = None
    if isinstance(config.templates, tuple):
        chosen = [templates.parse(text) for text in config.templates]
    with forms.explained(config.path):
        form, found = forms.parse(config.path, None if config.format == AUTO else config.format)
        vocabulary, splits = forms.training(
            form, found, How(chosen, config.boundary, config.min_count)
        )
        if "y" not in splits[""] or splits[""].get("unseen") is not None:
            raise ContentError("it has no labels")
    for name, file in config._held_out():
        if isinstance(file, Path):
            with forms.explained(file):
                splits[name] = forms.fields(file, vocabulary)
                if "y" not in splits[name]:
                    raise ContentError("it has no labels")
    return vocabulary, splits
