"""Runs as a table: the interface between what ran and all that looks at it.

A `Run` is a row: its options by full name, its facts, its columns, and columns derived from these.
`Runs` is a sequence of them. Figures, claims, reports and Python scripts ask them:

.. code-block:: text

    run["primal"], run["relative_gap"]          a column of the trace; a derived one (``DERIVED``)
    run.options["solver.T"], run.lam            an option; a fact (``FACTS``)
    runs.where(solver="mpbcfw", seed=range(3))  the runs with these facts or options
    runs.groups("problem", "clock")             facts or options → their runs
    runs.curves()                               problem and label → the repeats of a curve
    runs.frame, runs.ends                       tidy frames: a row per evaluation, per run

Repeats are runs that differ in the seed only, or in what does not separate curves
(``NOT_A_CURVE``). A *problem instance* is what runs must have in common for their values to be
comparable. The readers of files, :mod:`ssvm_bench.results.trace` and
:mod:`ssvm_bench.results.stored_traces`, return runs. What they reach is asked in
:mod:`ssvm_bench.results.targets`.
"""

from __future__ import annotations

import functools
import math
from collections.abc import (
    Callable,
    Hashable,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
from collections.abc import Set as AbstractSet
from contextlib import suppress
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias, TypeVar, overload

import numpy as np

from ssvm_bench.base.errors import ConfigError, RunFailedError, nearest
from ssvm_bench.config import registry
from ssvm_bench.results.curves import bands

if TYPE_CHECKING:  # running does without pandas: importing it takes time and memory
    import pandas as pd
    from matplotlib.axes import Axes

Item = TypeVar("Item")
Key = TypeVar("Key")

DUAL_OF_AVERAGE = "dual_of_average"
"""A further column: F(φ) of the reported iterate where that is an average of iterates. ``dual`` is
then the larger one of this value and that of the latest iterate."""

TINY = 1e-12
"""The least |P| or |F| that a value is divided by."""


def relative_gap(primal: Any, gap: Any) -> Any:
    """Return (P − F)/max(|P|, 1e-12) of numbers or arrays: what ``budget.gap_tol`` bounds."""
    return np.asarray(gap, float) / np.maximum(np.abs(np.asarray(primal, float)), TINY)


# ---- problem instances --------------------------------------------------------------------------


class ProblemInstance(NamedTuple):
    """The fingerprint of the data, followed by details of the objective; and its λ or ν.

    These details are the fixed latent values (after ``@``), the digest of a plug-in's oracle (after
    ``#``; other code may have another P) and, after a space, the prior of w, the kernel, or the
    name of the objective in a family with several.
    """

    fingerprint: str
    lam: float


INSTANCE_COLUMNS = ("dataset", "source", "n", "lam", "fingerprint")
"""Columns that describe a problem instance in a table."""


class Best(NamedTuple):
    """The lowest primal and the highest dual value seen on a problem instance; NaN: none."""

    primal: float
    dual: float

    @property
    def gap(self) -> float:
        """Their distance: the optimum is between them."""
        return self.primal - self.dual


KNOWN = 10.0
"""Suboptimalities of at least so many times `Best.gap` have a known size: the relative error
is at most 1/10."""


BestValues: TypeAlias = Mapping[ProblemInstance, Best]
"""As `ssvm_bench.results.optima.reference` returns them."""


def instance_of(metadata: Mapping[str, Any], with_code: bool = True) -> ProblemInstance:
    """Return the problem instance of a run; ``with_code``: other code of a plug-in is another."""
    latent = f"@{metadata['latent']}" if metadata.get("latent") else ""
    named = metadata.get("prior") or metadata.get("objective")
    code = metadata.get("code", {}).get("oracle")
    digest = f"#{code}" if with_code and isinstance(code, str) else ""
    parts = f"{metadata['dataset']['fingerprint']}{latent}{digest}", str(named or "")
    return ProblemInstance(" ".join(filter(None, parts)), float(metadata["lam"]))


def named_in(fingerprint: str) -> str:
    """Return the details of the objective in a problem instance's fingerprint; mostly empty.

    >>> named_in("5f0c N(0, 4)"), named_in("5f0c softmax, linear"), named_in("5f0c")
    ('prior N(0, 4)', 'softmax, linear', '')
    """
    named = fingerprint.partition(" ")[2]
    return f"prior {named}" if named.startswith("N(") else named


def weight_in(fingerprint: str) -> str:
    """Return the letter of the regulariser's weight: ν if the objective has a name, else λ."""
    named = named_in(fingerprint)
    return "ν" if named and not named.startswith(("prior", "kernel")) else "λ"


# ---- a run --------------------------------------------------------------------------------------

STARTS = ("truth", "oracle")
"""Where a solver begins: at φ^i = φ^{i y_i} = 0, or at the plane of the oracle's labeling at
w = 0."""


class LazyColumns(Mapping[str, np.ndarray]):
    """Columns that are read when they are asked for.

    Parameters
    ----------
    names : iterable of str
    read : callable
        Name → the column, shape (rows,).
    """

    def __init__(self, names: Iterable[str], read: Callable[[str], np.ndarray]) -> None:
        self._names, self._read = dict.fromkeys(names), functools.cache(read)

    def __getitem__(self, name: str) -> np.ndarray:
        """Return a column."""
        if name not in self._names:
            raise KeyError(name)
        return self._read(name)

    def __iter__(self) -> Iterator[str]:
        """Yield the names, in order."""
        return iter(self._names)

    def __len__(self) -> int:
        """Return the number of columns."""
        return len(self._names)

    def __contains__(self, name: object) -> bool:
        """Tell whether there is a column, without reading it."""
        return name in self._names

    def __reduce__(self) -> tuple[type[dict[str, np.ndarray]], tuple[dict[str, np.ndarray]]]:
        """Pickle the columns, which are read for it: another process may not have the files."""
        return dict, (dict(self),)


@dataclass(frozen=True, eq=False, repr=False)
class Run:
    """One run as read from disk.

    Attributes
    ----------
    columns : mapping of str to ndarray, shape (rows,)
        The columns of the trace, one row per evaluation; they may be read when they are asked for.
    metadata : dict
        Configuration, dataset {name, source, n, d, radius, fingerprint}, lam, seed, clock,
        provenance; ``radius`` is what ``Oracle.radius`` returns, null if it is not known. ``hash``
        is `RunConfig.own_hash`; for older runs, the folder's name takes its place.
    end : dict
        What ``summary.json`` holds: the last row, best values, mean losses, stop reason.
    folder : Path
        The run's folder.
    best : Best, optional
        The best values known on the problem instance; suboptimality is measured from these.
    read_weights : callable, optional
        Folder → weights w, and the summary of their run.
    """

    columns: Mapping[str, np.ndarray]
    metadata: dict[str, Any]
    end: dict[str, Any]
    folder: Path
    best: Best | None = None
    read_weights: Callable[[Path], tuple[np.ndarray, Mapping[str, Any]]] | None = None

    def __getitem__(self, name: str) -> np.ndarray:
        """Return a column, or one derived from columns, as float64, shape (rows,); read only.

        Raises
        ------
        KeyError
            If the run has no such column.
        """
        if name not in self._values:
            if name not in self.columns and name not in DERIVED:
                raise KeyError(f"{name}. {nearest(name, {*self.columns, *DERIVED})}")
            values = self.columns[name] if name in self.columns else DERIVED[name].of(self)
            values = np.asarray(values, float).view()
            values.flags.writeable = False
            self._values[name] = values
        return self._values[name]

    def __contains__(self, name: str) -> bool:
        """Tell whether a run has a column; derived ones do not count."""
        return name in self.columns

    def __len__(self) -> int:
        """Return the number of rows."""
        return len(self.columns["iteration"])

    def __bool__(self) -> bool:
        """Return True: a run without rows is a run."""
        return True

    def __repr__(self) -> str:
        """Return what the run is of, and what it had reached when it ended."""
        primal, gap = (_number(self.end.get(of)) for of in ("primal", "gap"))
        values = {"primal": primal, "relative gap": float(relative_gap(primal, gap))}
        reached = [f"{of} {value:.3g}" for of, value in values.items() if not math.isnan(value)]
        after = f" after iteration {self.end['iteration']}" if "iteration" in self.end else ""
        return f"<Run {self.title}: {', '.join([*reached, self.stop_reason])}{after}>"

    def __getstate__(self) -> dict[str, Any]:
        """Return the attributes, without what was derived from them."""
        return {of.name: getattr(self, of.name) for of in fields(self)}

    @functools.cached_property
    def _values(self) -> dict[str, np.ndarray]:
        return {}

    def take(self, rows: slice | np.ndarray) -> Run:
        """Return the run with some of its rows only."""
        return replace(self, columns=LazyColumns(self.columns, lambda of: self.columns[of][rows]))

    @functools.cached_property
    def frame(self) -> pd.DataFrame:
        """The columns as a frame; a row for each evaluated iteration."""
        import pandas as pd

        return pd.DataFrame(dict(self.columns))

    @property
    def trace(self) -> pd.DataFrame:
        """The same as ``frame``; ``ssvm-bench help files`` says what is in its columns."""
        return self.frame

    @functools.cached_property
    def summary(self) -> pd.Series:
        """The last row, the best values, the stop reason and the mean losses; as ``end``."""
        import pandas as pd

        return pd.Series(self.end, name=str(self.folder))

    @property
    def about(self) -> dict[str, Any]:
        """Its configuration, dataset, λ, versions and machine: the same as ``metadata``."""
        return self.metadata

    @property
    def weights(self) -> np.ndarray:
        """The weights w of the last iterate, float64, shape (d,); read on access.

        Raises
        ------
        RunFailedError
            If they cannot be read, or belong to another iterate: the run had a larger budget, or
            was extended or replaced since it was read.
        """
        if self.read_weights is None:
            raise RunFailedError(f"{self.folder} is not on disk, so that it has no weights.")
        w, end = self.read_weights(self.folder)
        if end["iteration"] != self.end["iteration"]:
            raise RunFailedError(
                f"{self.folder} has the weights after {end['iteration']} iterations, not those "
                f"after {self.end['iteration']}. With force=True, the run is made by itself."
            )
        if not np.array_equal(end["primal"], self.end["primal"], equal_nan=True):
            raise RunFailedError(
                f"The run {self.folder} was replaced since it was loaded. Load it again."
            )
        return w

    # ---- options and facts

    @property
    def config(self) -> dict[str, Any]:
        """The configuration, section by section."""
        return self.metadata["config"]

    @functools.cached_property
    def options(self) -> dict[str, Any]:
        """The configuration by full names of options, as ``solver.T``; do not modify it."""
        return flatten(self.config)

    @property
    def data(self) -> dict[str, Any]:
        """The metadata of the dataset."""
        return self.metadata["dataset"]

    @property
    def dataset(self) -> str:
        """Name of the dataset."""
        return str(self.data["name"])

    @property
    def source(self) -> str:
        """Source of the data, as ``real`` or ``synthetic``."""
        return str(self.data["source"])

    @property
    def n(self) -> int:
        """Number of examples."""
        return int(self.data["n"])

    @property
    def problem(self) -> ProblemInstance:
        """The problem instance."""
        return instance_of(self.metadata)

    @property
    def instance(self) -> dict[str, Any]:
        """The values of ``INSTANCE_COLUMNS``."""
        return {name: getattr(self, name) for name in INSTANCE_COLUMNS}

    @property
    def lam(self) -> float:
        """The weight of the regulariser, λ or ν."""
        return self.problem.lam

    @property
    def fingerprint(self) -> str:
        """That of the problem instance."""
        return self.problem.fingerprint

    @property
    def solver(self) -> str:
        """Name of the solver."""
        return str(self.config["solver"]["name"])

    @property
    def solver_options(self) -> dict[str, Any]:
        """The options of the solver by their short names, as ``T``."""
        return self.config["solver"]

    @property
    def seed(self) -> int:
        """The seed."""
        return self.config["seed"]

    @property
    def clock(self) -> str:
        """What ``time`` is: wall, cpu, or work, which is counted."""
        return str(self.metadata.get("clock"))

    @property
    def start(self) -> str:
        """Where the solver began, one of ``STARTS``."""
        start = self.config["solver"].get("start")  # a number if the solver is `eg`
        return start if start in STARTS else STARTS[0]

    @property
    def counted(self) -> bool:
        """Whether its time is counted at the costs of a paper instead of measured."""
        return self.clock == "work" and self.options.get("oracle.cost_visit", 0.0) > 0

    @property
    def processors(self) -> frozenset[str]:
        """The processors that computed it, those before it was resumed included."""
        parts = (self.metadata, *self.metadata.get("resumed", ()))
        return frozenset(str(part["cpu"]) for part in parts if part.get("cpu"))

    @functools.cached_property
    def has_dual(self) -> bool:
        """Whether its solver has a dual value."""
        return not np.isnan(self["dual"]).all()

    @property
    def stop_reason(self) -> str:
        """Why it ended."""
        return str(self.end.get("stop_reason"))

    @property
    def converged(self) -> bool:
        """Whether it ended because the solver had converged."""
        return self.stop_reason == "converged"

    @property
    def ended_at(self) -> float:
        """The ``budget.gap_tol`` that was reached in its last row, and ended it; 0: none was."""
        asked = float(self.options.get("budget.gap_tol", 0.0))
        return asked if len(self) and self["relative_gap"][-1] <= asked else 0.0

    @property
    def code(self) -> dict[str, int | str]:
        """Version of the code of oracle and solver, a digest for a plug-in; empty: older runs."""
        return self.metadata.get("code", {})

    @property
    def is_of_plug_in(self) -> bool:
        """Whether its solver is no part of the program."""
        kind = self.config["solver"].get("kind")
        return kind is not None and not registry.is_own("solver", str(kind))

    @property
    def own_hash(self) -> str:
        """`RunConfig.own_hash` of the run."""
        return self.metadata.get("hash", self.folder.parent.name)

    @property
    def own_folder(self) -> Path:
        """The folder of the run if it shared none with other budgets; identifies the run."""
        return self.folder.parent.with_name(self.own_hash) / self.folder.name

    @property
    def title(self) -> str:
        """Dataset, solver, hash and seed, as in the path of its folder."""
        return "/".join(self.folder.parts[-4:])

    @property
    def is_truncated(self) -> bool:
        """Whether it is the beginning of a longer run, whose files are in the folder."""
        return "cut_from" in self.metadata

    def fact(self, name: str) -> Any:
        """Return one of the ``FACTS``, or an option by its full name; None: it has no such option.

        Raises
        ------
        ConfigError
            If there is no such fact, and the name is not that of an option.
        """
        if name in FACTS:
            return getattr(self, name)
        if "." in name or name in self.options:
            return self.options.get(name)
        raise ConfigError(f"Runs have no {name}. {nearest(name, FACTS)}")


FACTS = (
    *INSTANCE_COLUMNS,
    *("problem", "solver", "seed", "clock", "start", "counted", "processors", "stop_reason"),
)
"""What is known of every run besides its options."""


def flatten(config: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Return options, also those of sections, by their full names."""
    flat = {}
    for key, value in config.items():
        if isinstance(value, dict):
            flat.update(flatten(value, f"{prefix}{key}."))
        else:
            flat[f"{prefix}{key}"] = list(value) if isinstance(value, tuple) else value
    return flat


# ---- derived columns ----------------------------------------------------------------------------


class Derived(NamedTuple):
    """A column that follows from others: its meaning, and the function of a run that returns it."""

    meaning: str
    of: Callable[[Run], np.ndarray]


def _distance(run: Run) -> np.ndarray:
    known = run["gap"] if run.has_dual else run["suboptimality"]
    return known / np.maximum(np.abs(run["primal"]), TINY)


def _over(made: np.ndarray, calls: np.ndarray) -> np.ndarray:
    """Return a quotient; NaN where there were no calls."""
    return np.divide(made, calls, out=np.full_like(calls, np.nan), where=calls > 0)


def _mean_passes(run: Run) -> np.ndarray:
    return _over(*(np.diff(run[of], prepend=np.nan) for of in ("approx_calls", "oracle_calls")))


DERIVED: dict[str, Derived] = {
    "passes": Derived("calls of the exact oracle / n", lambda run: run["oracle_calls"] / run.n),
    "relative_gap": Derived(
        "(P − F)/|P|, as in budget.gap_tol; NaN where there is no dual",
        lambda run: relative_gap(run["primal"], run["gap"]),
    ),
    "reported_dual": Derived(
        "F(φ) of the reported iterate, also where that is an average",
        lambda run: run[DUAL_OF_AVERAGE if DUAL_OF_AVERAGE in run else "dual"],
    ),
    "suboptimality": Derived(
        "P(w) − max F over every run on the problem instance",
        lambda run: run["primal"] - (run.best.dual if run.best else math.nan),
    ),
    "dual_suboptimality": Derived(
        "min P over every run on the problem instance − F(φ) of the reported iterate",
        lambda run: (run.best.primal if run.best else math.nan) - run["reported_dual"],
    ),
    "relative_distance": Derived(
        "the relative gap; of a solver without a dual, the suboptimality / |P|", _distance
    ),
    "passes_per_iteration": Derived(
        "approximate over exact calls since the evaluation before", _mean_passes
    ),
    "seconds_per_call": Derived(
        "mean seconds of a call of the exact oracle so far",
        lambda run: _over(run["oracle_time"], run["oracle_calls"]),
    ),
}
"""Columns that every run has besides those of its trace."""


# ---- runs ---------------------------------------------------------------------------------------


def grouped(items: Iterable[Item], key: Callable[[Item], Key]) -> dict[Key, list[Item]]:
    """Return key → the items with that key, both in the order of appearance."""
    groups: dict[Key, list[Item]] = {}
    for item in items:
        groups.setdefault(key(item), []).append(item)
    return groups


class Runs(Sequence[Run]):
    """Some runs, in an order.

    Parameters
    ----------
    runs : iterable of Run
    best : mapping, optional
        Problem instance → its best values, from which suboptimality is measured; by default each
        run keeps those that it has.
    """

    def __init__(self, runs: Iterable[Run] = (), best: BestValues | None = None) -> None:
        self._runs = [*runs] if best is None else [_with_best(run, best) for run in runs]

    @overload
    def __getitem__(self, which: int) -> Run: ...

    @overload
    def __getitem__(self, which: slice) -> Runs: ...

    def __getitem__(self, which: int | slice) -> Run | Runs:
        """Return the run at a place, or the runs of a slice."""
        return Runs(self._runs[which]) if isinstance(which, slice) else self._runs[which]

    def __len__(self) -> int:
        """Return the number of runs."""
        return len(self._runs)

    def __add__(self, others: Sequence[Run]) -> Runs:
        """Return these runs followed by others."""
        return Runs([*self, *others])

    def __eq__(self, others: object) -> bool:
        """Tell whether others are the same runs in the same order."""
        return isinstance(others, Sequence) and self._runs == [*others]

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        """Return how many runs there are, and of what."""
        solvers, datasets = ({getattr(run, of) for run in self} for of in ("solver", "dataset"))
        of = f" of {', '.join(sorted(solvers))} on {', '.join(sorted(datasets))}" if self else ""
        return f"<Runs: {len(self)}{of}>"

    def _repr_html_(self) -> str:
        """Return a table with a row per run, which notebooks show."""
        return self.ends.to_html(max_rows=30)

    # ---- choosing and grouping

    def where(self, chosen: Callable[[Run], bool] | None = None, **wanted: Any) -> Runs:
        """Return the runs with some facts or options.

        Parameters
        ----------
        chosen : callable, optional
            Returns whether a run is wanted.
        **wanted
            Name of a fact or an option, as ``**{"solver.T": 10}`` → its value, or a collection of
            values: list, tuple, set, range, array or Series. A value that is a list itself is also
            wanted whole, as ``path=[4, 1]``.

        Raises
        ------
        ConfigError
            If a name is neither that of a fact nor that of an option.
        """
        plain = {name: _plain(of) for name, of in wanted.items()}

        def has(run: Run) -> bool:
            return all(
                value == of or (isinstance(of, (list, range)) and value in of)
                for value, of in ((_plain(run.fact(name)), of) for name, of in plain.items())
            )

        return Runs(run for run in self if has(run) and (chosen is None or chosen(run)))

    def groups(self, *keys: str | Callable[[Run], Hashable]) -> dict[Any, Runs]:
        """Return the values of facts, options or functions → the runs that have them.

        One key gives values, several give tuples of values; a value that is a list is a tuple here.
        The order is that of appearance.
        """

        def values(run: Run) -> Any:
            found = tuple(_as_key(key(run) if callable(key) else run.fact(key)) for key in keys)
            return found if len(keys) > 1 else found[0]

        return {key: Runs(runs) for key, runs in grouped(self, values).items()}

    def curves(self, names: Sequence[str] | None = None) -> dict[tuple[ProblemInstance, str], Runs]:
        """Return problem instance and label → the repeats of a curve; by default of `labels`."""
        named = zip(self, labels(self) if names is None else names, strict=True)
        groups = grouped(named, lambda pair: (pair[0].problem, pair[1]))
        return {key: Runs(run for run, _ in pairs) for key, pairs in groups.items()}

    @property
    def best(self) -> dict[ProblemInstance, Best]:
        """Problem instance → the best values that its runs carry, if they do."""
        return {run.problem: run.best for run in self if run.best is not None}

    @property
    def by_seed(self) -> dict[int, Run]:
        """Seed → run, in the order of the seeds; of equal seeds, the last run."""
        return dict(sorted({run.seed: run for run in self}.items()))

    # ---- numbers

    def last(self, name: str) -> np.ndarray:
        """Return the last value of a column in each run, shape (runs,)."""
        return np.array([run[name][-1] for run in self])

    @property
    def frame(self) -> pd.DataFrame:
        """All evaluations of all runs: their facts, label, columns and derived columns."""
        import pandas as pd

        frames = [
            run.frame.assign(
                **{name: run[name] for name in DERIVED if run.best or "suboptimality" not in name},
                **run.instance,
                solver=run.solver,
                label=label,
                seed=run.seed,
            )
            for run, label in zip(self, labels(self), strict=True)
        ]
        about = [*INSTANCE_COLUMNS, "solver", "label", "seed"]
        none = pd.DataFrame(columns=[*about, *DERIVED])
        whole = pd.concat(frames, ignore_index=True) if frames else none
        return whole[[*about, *(name for name in whole if name not in about)]]

    @property
    def ends(self) -> pd.DataFrame:
        """A row for each run: its facts, and what it had reached when it ended."""
        import pandas as pd

        about = INSTANCE_COLUMNS[:-1]
        reached = ("iterations", "passes", "seconds", "primal", "relative_gap", "stop_reason")
        rows = []
        for run, label in zip(self, labels(self), strict=True):
            end = run.end
            primal, gap, calls = (_number(end.get(of)) for of in ("primal", "gap", "oracle_calls"))
            at_end = (
                *(end.get("iteration"), calls / run.n, end.get("time")),
                *(primal, relative_gap(primal, gap), run.stop_reason),
            )
            rows.append((*map(run.fact, about), run.solver, label, run.seed, *at_end))
        return pd.DataFrame(rows, columns=[*about, "solver", "label", "seed", *reached])

    def plot(self, y: str = "relative_gap", x: str = "passes", ax: Axes | None = None) -> Axes:
        """Draw the median of each curve, and its band from minimum to maximum.

        Parameters
        ----------
        y, x : str
            Columns, also derived ones; y is drawn on a log axis if no value is negative, and some
            are positive.
        ax : Axes, optional
            Where to draw; by default the current axes of pyplot.

        Returns
        -------
        Axes

        Raises
        ------
        ConfigError
            If no run has a value of x or y.
        """
        from matplotlib import pyplot

        for name in (x, y):
            if not any(np.isfinite(run[name]).any() for run in self):
                raise ConfigError(f"There is nothing to draw: no run has a value of {name}.")
        values = np.concatenate([run[y] for run in self])
        log = not (values < 0).any() and bool((values > 0).any())
        ax = pyplot.gca() if ax is None else ax
        problems = {run.problem for run in self}
        for (problem, label), repeats in self.curves().items():
            at, median, low, high, _ = bands([r[x] for r in repeats], [r[y] for r in repeats], log)
            of = f", {repeats[0].dataset}, {weight_in(problem.fingerprint)} = {problem.lam:.3g}"
            (line,) = ax.plot(at, median, label=label + of * (len(problems) > 1))
            ax.fill_between(at, low, high, color=line.get_color(), alpha=0.2, linewidth=0)
        ax.set(xlabel=x.replace("_", " "), ylabel=y.replace("_", " "))
        if log:
            ax.set_yscale("log")
        ax.legend()
        return ax


def _with_best(run: Run, best: BestValues) -> Run:
    known = best.get(run.problem)
    return run if known == run.best else replace(run, best=known)


def _plain(value: Any) -> Any:
    """Return a value without numpy and pandas; any collection but a range is a list.

    Then ``==`` compares collections whole, and ``in`` asks no element for its hash.
    """
    if isinstance(value, (np.ndarray, np.generic)):
        value = value.tolist()
    if isinstance(value, (str, bytes, range, Mapping)) or not isinstance(value, Iterable):
        return value
    plain = [_plain(each) for each in value]
    return sorted(plain, key=repr) if isinstance(value, AbstractSet) else plain


def _as_key(value: Any) -> Any:
    """Return a value of an option as the key of a dictionary: a list as a tuple."""
    return tuple(map(_as_key, value)) if isinstance(value, list) else value


def _number(value: Any) -> float:
    return math.nan if value is None else float(value)


# ---- labels: what distinguishes curves ----------------------------------------------------------

NOT_A_CURVE = frozenset(
    {
        *("seed", "results_dir", "force", "quiet", "dataset.source", "dataset.trust", "lam"),
        *("prior.mean", "prior.variance"),
        *("checkpoint", "checkpoint.every", "checkpoint.keep"),
    }
)
"""Options that do not separate curves: seed, way of execution, parts of a problem instance."""


CODE = "solver.code"
"""The digest of a plug-in's file, as if it were an option: runs of other code are no repeats."""


def labels(runs: Sequence[Run]) -> list[str]:
    """Name each run's curve: its solver, and the options in which runs of that solver differ.

    So a sweep over ``solver.T`` gives the curves ``mpbcfw T=5`` and ``mpbcfw T=10``, which are not
    taken for repeats of one another. An option of the solver that differs on one problem instance
    is named on all: a curve has one name per figure. Other options are named where they differ.
    """
    names = [run.solver for run in runs]
    groups = [(run.problem, name) for run, name in zip(runs, names, strict=True)]
    around, within = differing_options(runs, groups)
    parts = names, around, within
    return [" ".join(filter(None, of_run)) for of_run in zip(*parts, strict=True)]


def differing_options(
    runs: Sequence[Run],
    groups: Sequence[Hashable],
    hidden: Callable[[str], bool] = lambda _: False,
) -> tuple[list[str], list[str]]:
    """Return, for each run, its differing options outside the solver, and those of the solver.

    Parameters
    ----------
    runs : sequence of Run
    groups : sequence
        The group of each run; options outside the solver are compared within a group.
    hidden : callable
        Tells which options, besides `NOT_A_CURVE`, do not separate curves: ``budget.max_seconds``.
    """
    options = _of_today([run.options for run in runs])
    names = [str(of_run["solver.name"]) for of_run in options]
    named = zip(runs, options, strict=True)
    duals = [{"solver.dual": _dual_of(run), **_code_of(run), **of_run} for run, of_run in named]
    of_solver = {key for of_run in duals for key in of_run if key.startswith("solver.")}
    others = {key for of_run in options for key in of_run} - of_solver
    unseen = {key for key in of_solver | others if hidden(key)} | NOT_A_CURVE
    around = differences(options, groups, unseen | of_solver)
    return around, differences(duals, names, unseen | others)


def labels_within(runs: Sequence[Run], key: Callable[[Run], Hashable]) -> list[str]:
    """Name each run's curve by the options in which it differs from runs with the same key."""
    groups = grouped(range(len(runs)), lambda k: key(runs[k]))
    named = ((ks, labels([runs[k] for k in ks])) for ks in groups.values())
    found = {k: label for ks, names in named for k, label in zip(ks, names, strict=True)}
    return [found[k] for k in range(len(runs))]


def _of_today(options: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the options of runs; older runs get those added since, with their defaults."""
    made = list(options)
    if len({frozenset(of_run) for of_run in options}) == 1:
        return made
    for group in ("dataset", "oracle", "solver"):
        kinds = [of_run.get(f"{group}.kind") for of_run in made]
        for kind, runs in grouped(range(len(made)), kinds.__getitem__).items():
            own = {frozenset(key for key in made[k] if key.startswith(f"{group}.")) for k in runs}
            if kind is not None and len(own) > 1:
                with suppress(ConfigError, RunFailedError):  # a plug-in may be missing
                    known = flatten({group: registry.defaults(group, kind)})
                    for k in runs:
                        made[k] = known | made[k]
    return made


def _dual_of(run: Run) -> str:
    """Return which dual value a run logs, as an option: older runs log that of their averages."""
    averaged = run.options.get("solver.average") is True
    return "own" if averaged and DUAL_OF_AVERAGE not in run else "best"


def _code_of(run: Run) -> dict[str, str]:
    """Return the digest of the solver's file as an option, if it is a plug-in's."""
    code = run.code.get("solver")
    return {CODE: code} if isinstance(code, str) else {}


def differences(
    options: Sequence[Mapping[str, Any]], groups: Sequence[Hashable], hidden: AbstractSet[str]
) -> list[str]:
    """Return, for each run, the options in which runs of its group differ, as ``T=5 step=…``.

    They identify runs in a legend or a table.

    Parameters
    ----------
    options : sequence of mapping
        Options of each run, as `flatten` returns them.
    groups : sequence
        The group of each run.
    hidden : set of str
        Options that are not shown.
    """
    differing: dict[Hashable, list[str]] = {}
    for group, pairs in grouped(zip(groups, options, strict=True), lambda pair: pair[0]).items():
        peers = [of_run for _, of_run in pairs]
        seen = {key for of_run in peers for key in of_run} - hidden
        alike = {key for key in seen if all(of.get(key) == peers[0].get(key) for of in peers)}
        differing[group] = sorted(seen - alike)

    def said(of_run: Mapping[str, Any], group: Hashable) -> str:
        names = ((key, key.removeprefix("solver.")) for key in differing[group])
        values = {**of_run, "lam": of_run.get("lam") or "1/n"}
        return " ".join(f"{name}={_shown(values.get(key))}" for key, name in names)

    return [*map(said, options, groups)]


def _shown(value: Any) -> str:
    """Return the value of an option as on the command line."""
    if value is None:
        return "null"
    return f"[{','.join(map(str, value))}]" if isinstance(value, list) else str(value)
