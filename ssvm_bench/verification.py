"""Checks whether a results folder agrees with its runs: ``ssvm-bench verify``.

`verify` yields the checks in order. Each is a function of a `Subject` that yields verdicts. No
check writes into the folder, or downloads anything.

**Runs**, whose files are read, and checked against their checksums, by `ssvm_bench.results`:

.. code-block:: text

    F(φ) ≤ P(w)                in every row, and for the best values of a problem instance
    summary                    its values are those of the last row, and the best of all rows
    optima.json                no run saw a better value

**Figures, tables and claims** are redrawn from the stored runs and compared. The numbers that
a figure draws are stored beside it as CSV. Pictures are not compared, because other machines have
other fonts. Numbers count as equal if they differ by at most one unit of the last of their six
digits: logarithms are not rounded alike everywhere. Documents must be equal.

**Numbers in prose**, of the pages that have a list of them, are computed from tables and traces
(:mod:`ssvm_bench.report.prose`). **Times** of several versions or processors, or measured beside
other runs, are named, and pages that show them must say so (:mod:`ssvm_bench.report.times`).

**Data**: their fingerprints, P at stored weights, and stored runs executed again. Data that are
missing or not prepared are skipped: preparing can take long, and a download longer. Some runs are
sampled to be repeated, of those where the clock decides nothing: with ``clock=work``, or
without approximate passes. They run under ``clock=work``, for as many iterations as the stored run
did in `SECONDS`. In the rows that both traces have, the number of oracle calls must be the same,
and P and F must be the same up to rounding.
"""

from __future__ import annotations

import csv
import io
import itertools
import math
import os
import tempfile
import time
from collections import ChainMap, Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ssvm_bench.base import files
from ssvm_bench.base.errors import ConfigError, RunFailedError, SsvmBenchError, shown
from ssvm_bench.base.random import permutation
from ssvm_bench.config import catalog, registry, validation
from ssvm_bench.config.experiment import Experiment, along_paths
from ssvm_bench.config.schema import Budget, RunConfig
from ssvm_bench.datasets.base import Dataset
from ssvm_bench.datasets.progress import silence
from ssvm_bench.datasets.sources import has_raw_file, kept_in, raw_file
from ssvm_bench.figures.kind import Kind, Output
from ssvm_bench.oracles.objective import STRUCTURAL_SVM
from ssvm_bench.report import experiment_files, prose, times
from ssvm_bench.results import loading, optima
from ssvm_bench.results.folder import OPTION, ResultsFolder
from ssvm_bench.results.table import TINY, BestValues, Run, Runs, grouped
from ssvm_bench.results.trace import read_run, read_weights
from ssvm_bench.runs import components
from ssvm_bench.runs.runner import run as execute
from ssvm_bench.runs.terminal import Display

SAME, DIFFERENT, SKIPPED = "same", "different", "skipped"
MARKS = {SAME: "✓", DIFFERENT: "✗", SKIPPED: "–"}

LISTED = 20
"""Most differences that are listed for a check."""


class Verdict(NamedTuple):
    """The result of one check of one thing.

    Attributes
    ----------
    outcome : str
        ``SAME``, ``DIFFERENT``, or ``SKIPPED`` if something that the check needs is missing.
    of : str
        What was checked: a file, a run, a dataset.
    why : str
        What differs, or what is missing.
    """

    outcome: str
    of: str = ""
    why: str = ""


def compared(of: str, differs: object = "") -> Verdict:
    """Return the verdict ``DIFFERENT`` if ``differs`` says what differs, else ``SAME``."""
    return Verdict(DIFFERENT if differs else SAME, of, str(differs or ""))


def skipped(of: str, why: object) -> Verdict:
    """Return the verdict that something could not be checked."""
    return Verdict(SKIPPED, of, str(why))


def of_runs(runs: Iterable[Run], differs: Callable[[Run], str]) -> Iterator[Verdict]:
    """Yield for each run whether it differs; skip one where ``differs`` raises an error of ours."""
    for run in runs:
        try:
            yield compared(run.title, differs(run))
        except SsvmBenchError as error:
            yield skipped(run.title, error)


@dataclass
class Subject:
    """A results folder, whose files have been read.

    Attributes
    ----------
    where : ResultsFolder
        The folder, and the part of it that is verified (``made``).
    stored : dict
        Experiment → own folder of a run → its stored trace.
    raw : list of Run
        Raw runs, without those that cannot be read.
    config_dirs : sequence of Path
        Further folders of config files.
    """

    where: ResultsFolder
    stored: defaultdict[str, dict[Path, Run]]
    raw: list[Run]
    config_dirs: Sequence[Path] = ()

    @cached_property
    def traces(self) -> Runs:
        """The stored traces of all experiments, each run once."""
        return Runs(ChainMap(*self.stored.values()).values())

    @cached_property
    def runs(self) -> Runs:
        """All runs, stored and raw."""
        return self.traces + self.raw

    @cached_property
    def best(self) -> BestValues:
        """The best values of stored traces and record."""
        return optima.known(self.traces, self.where)

    @cached_property
    def experiments(self) -> dict[str, tuple[Experiment, Runs]]:
        """Folder of figures → the experiment that draws it, and its runs that are stored."""
        found = {}
        for folder in sorted(self.where.made.glob("figures/*/")):
            with suppress(ConfigError):
                experiment = experiment_files.load(folder.name, self.config_dirs)
                configs = experiment.configs([f"{OPTION}{self.where.root}"], self.config_dirs)
                stored = ChainMap(*(self.stored.get(of, {}) for of in reversed(experiment.origins)))
                pairs = loading.finished(along_paths(configs), stored)
                runs = {run.own_folder: run for _, run in pairs if run}
                found[folder.name] = experiment, Runs(runs.values(), self.best)
        return found

    def named(self, path: Path) -> str:
        """Return a path as verdicts name it: relative to the results folder."""
        return path.relative_to(self.where.root).as_posix()


@dataclass
class Checked:
    """The verdicts of a check, counted.

    Attributes
    ----------
    what : str
        What is checked.
    counts : Counter
        Outcome → number of verdicts.
    different : list of Verdict
    skipped : Counter
        Why → number of verdicts.
    seconds : float
    """

    what: str
    counts: Counter[str] = field(default_factory=Counter)
    different: list[Verdict] = field(default_factory=list)
    skipped: Counter[str] = field(default_factory=Counter)
    seconds: float = 0.0

    @classmethod
    def of(cls, what: str, verdicts: Iterable[Verdict]) -> Checked:
        """Run a check, and count its verdicts."""
        begin, checked = time.perf_counter(), cls(what)
        for found in verdicts:
            checked.counts[found.outcome] += 1
            if found.outcome == DIFFERENT:
                checked.different.append(found)
            elif found.outcome == SKIPPED:
                checked.skipped[found.why] += 1
        checked.seconds = time.perf_counter() - begin
        return checked

    @property
    def outcome(self) -> str:
        """The worst outcome of the verdicts; ``SKIPPED`` if nothing could be checked."""
        if self.different:
            return DIFFERENT
        return SAME if self.counts[SAME] else SKIPPED

    def as_plain(self) -> dict[str, Any]:
        """Return the check as plain values, with all differences."""
        return {
            "what": self.what,
            "outcome": self.outcome,
            **{outcome: self.counts[outcome] for outcome in MARKS},
            "seconds": self.seconds,
            "differences": [{"of": found.of, "why": found.why} for found in self.different],
            "skipped_because": dict(self.skipped.most_common()),
        }


def verify(
    where: ResultsFolder, rerun: int = 0, seed: int = 0, config_dirs: Sequence[Path] = ()
) -> Iterator[Checked]:
    """Yield the checks of a results folder, each when it is done.

    Parameters
    ----------
    where : ResultsFolder
        The folder; its part ``made`` is verified.
    rerun : int
        Number of stored runs to execute again.
    seed : int
        Seed of the choice of these runs.
    config_dirs : sequence of Path
        Further folders of config files.

    Raises
    ------
    RunFailedError
        If there is nothing to verify.
    """
    os.environ["SSVM_BENCH_OFFLINE"] = "1"  # missing data are reported, not downloaded
    subject = Subject(where, defaultdict(dict), [], config_dirs)
    read = Checked.of("traces and runs as they were written", _read(subject))
    if not read.counts:
        raise RunFailedError(
            f"There is nothing to verify in {where.made}: it has no trace and no run that can be "
            "read. Make some with `ssvm-bench experiment quickstart`, or choose another folder "
            "with results_dir=…"
        )
    yield read
    runs, by_dataset = Runs(subject.runs, subject.best), Runs(subject.raw).groups(_of_dataset)
    yield Checked.of("weak duality, F ≤ P", of_runs(runs, above_primal))
    yield Checked.of("summaries beside their rows", of_runs(runs, _unlike_summary))
    yield Checked.of("best values on record", best_values(subject))
    drawn: set[Path] = set()
    yield Checked.of("claims, judged again", redrawn(subject, drawn, claims=True))
    yield Checked.of("figures and tables, redrawn", redrawn(subject, drawn, claims=False))
    if any(prose.pages(where.made)):
        yield Checked.of("numbers in prose", in_prose(subject))
    with registry.readable_papers():  # of one that is not, the tables of claims have no times
        known = times.tables(where.made)
    if known:
        yield Checked.of("times of one version and processor", alike(subject, known))
    yield Checked.of("fingerprints of data", fingerprints(subject))
    raw = (run for members in by_dataset.values() for run in members)
    yield Checked.of("primal values at stored weights", of_runs(raw, _unlike_weights))
    if rerun:
        yield Checked.of(f"repeated runs (seed {seed})", made_again(subject, rerun, seed))


def _read(subject: Subject) -> Iterator[Verdict]:
    """Read all runs into a subject, and yield for each file whether it is what was written."""
    for path, name, runs, problem in loading.each(subject.where):
        yield compared(subject.named(path), problem)
        if name:
            subject.stored[name] |= {run.own_folder: run for run in runs} | subject.stored[name]
        else:
            subject.raw += runs


def lines(checked: Checked) -> Iterator[str]:
    """Yield the lines printed for a check: its row of the table, what differs, what was skipped."""
    numbers = [checked.counts[outcome] for outcome in (SAME, DIFFERENT, SKIPPED)]
    shown = "  ".join(f"{number:>9,}" for number in numbers)
    yield f"{MARKS[checked.outcome]} {checked.what:<{WIDTH}}  {shown}  {checked.seconds:>7.1f}"
    for found in checked.different[:LISTED]:
        yield f"    ✗ {found.of}: {found.why}"
    if (more := len(checked.different) - LISTED) > 0:
        yield f"    ✗ and {more} more"
    for why, count in checked.skipped.most_common():
        yield f"    – {count} skipped: {why}"


WIDTH = 38
HEADING = f"  {'':<{WIDTH}}  {SAME:>9}  {DIFFERENT:>9}  {SKIPPED:>9}  seconds"
"""Heading of the table whose rows `lines` yields."""


# ---- runs -------------------------------------------------------------------------------------

ROUNDING = 1e-9
"""Of sums, relative to the largest of P, F and 1, as in the runner."""


def above_primal(run: Run) -> str:
    """Return where F > P, in a row of a run or on its instance; an empty string if nowhere."""
    primal, dual = run["primal"], run["dual"]
    if not run.has_dual:
        raise RunFailedError("the solver has no dual value")
    if not optima.is_exact(str(run.options.get("oracle.kind"))):
        raise RunFailedError("the oracle is not exact, so that P may be too low")
    above = dual - primal > ROUNDING * np.maximum(np.maximum(abs(primal), abs(dual)), 1.0)
    if above.any():
        iteration, F, P = (run[name][above][0] for name in ("iteration", "dual", "primal"))
        return f"iteration {iteration:.0f}: F = {F:.9g} above P = {P:.9g}"
    highest, lowest = np.nanmax(dual), run.best.primal if run.best else math.inf
    if highest - lowest > ROUNDING * max(abs(highest), 1.0):
        return f"F = {highest:.9g} above P = {lowest:.9g}, which another run saw"
    return ""


def _unlike_summary(run: Run) -> str:
    """Return where a summary disagrees with the rows; an empty string if nowhere."""
    if "latent_round" in run:  # the summary is of the last problem
        run = run.take(run["latent_round"] == run["latent_round"][-1])
    found = {name: run[name][-1] for name in ("iteration", "primal", "dual")}
    found["best_primal"], found["best_dual"] = run["primal"].min(), np.fmax.reduce(run["dual"])
    for name, value in found.items():
        said = run.end.get(name)
        if said is not None and said != value and not math.isnan(value):
            return f"the summary has {name} {said:.9g}, the rows {value:.9g}"
    return ""


def best_values(subject: Subject) -> Iterator[Verdict]:
    """Yield for each problem instance whether ``optima.json`` has the best values of its runs."""
    record = optima.known((), subject.where)
    for problem, run in {run.problem: run for run in subject.traces}.items():
        pairs = zip(subject.best[problem], record.get(problem, (math.nan, math.nan)), strict=True)
        better = any(best != known for best, known in pairs if not math.isnan(best))
        seen = "a run saw P = {:.9g} or F = {:.9g}, which is not on record"
        why = seen.format(*subject.best[problem]) if better else ""
        yield compared(f"{optima.FILE}: {run.dataset}, lam={problem.lam:.6g}", why)


# ---- figures, tables and claims ---------------------------------------------------------------

LAST_DIGIT = 1e-5
"""One unit of the last of six digits, relative to the number."""

PICTURES = (".png", ".pdf", ".svg")
WITH_OPTIONS = "drawn with other options"


def redrawn(subject: Subject, drawn: set[Path], claims: bool) -> Iterator[Verdict]:
    """Yield a verdict for each file of figures and tables.

    Parameters
    ----------
    subject : Subject
    drawn : set of Path
        Collects the paths, without suffix, of the files that were made again.
    claims : bool
        Whether to check the tables of claims, or everything else; that comes second.
    """

    def wanted(kind: Kind) -> bool:
        return kind.at_top == claims

    root = subject.where.made
    try:
        registry.use(subject.config_dirs)
        experiment_files.kinds()
    except SsvmBenchError as error:  # the paper of somebody; no experiment can be read without it
        of = subject.named(root / "figures")
        yield skipped(of, "a paper cannot be read") if not claims else compared(of, error)
        return
    for folder in sorted(root.glob("figures/*/")):
        experiment, runs = subject.experiments.get(folder.name, (None, Runs()))
        made_again: Iterable[tuple[Path, Output]] = ()
        why = f"no run of the experiment's file is stored; {WITH_OPTIONS}"
        if experiment is None:
            why = "no experiment draws it"
        elif runs:
            why = "it takes data, or files of runs, that are not here"
            made_again = experiment_files.outputs(experiment, runs, root, wanted)
        try:
            for place, output in made_again:
                if claims and output.json:  # checked with the figures
                    continue
                stem = root / place
                drawn.add(stem)
                for end, text in output.texts().items():
                    path = stem.with_name(f"{stem.name}.{end}")
                    yield compared(subject.named(path), _difference(path, text))
                if output.figure is not None:
                    pictures = [stem.with_name(stem.name + end) for end in PICTURES]
                    if not any(path.is_file() for path in pictures):
                        yield compared(subject.named(pictures[0]), "there is no such picture")
        except SsvmBenchError as error:  # a claim of somebody's paper, for instance
            yield compared(subject.named(folder), error)
        for path in () if claims else sorted(folder.iterdir()):
            if path.is_dir():
                yield skipped(subject.named(path), WITH_OPTIONS)
            elif path.with_suffix("") not in drawn and not path.name.startswith("."):
                yield skipped(subject.named(path), why)


def _difference(path: Path, text: bytes) -> str:
    """Return where a file differs from its expected content; an empty string if it does not."""
    if not path.is_file():
        return "there is no such file"
    there = files.read(path)
    if there == text:
        return ""
    try:
        rows = [_rows(path, content.decode()) for content in (there, text)]
    except (UnicodeDecodeError, csv.Error):
        return "it is no text"
    for line, (old, new) in enumerate(itertools.zip_longest(*rows, fillvalue=[]), 1):
        pairs = itertools.zip_longest(old, new, fillvalue="nothing")
        for cell, made in pairs:
            if cell != made and not (path.suffix == ".csv" and _close(cell, made)):
                return f"line {line}: {_around(cell, made)}"
    return ""


def _rows(path: Path, text: str) -> list[list[str]]:
    if path.suffix == ".csv":
        return list(csv.reader(io.StringIO(text)))
    return [[line] for line in text.splitlines()]


def _close(cell: str, made: str) -> bool:
    try:
        return math.isclose(float(cell), float(made), rel_tol=LAST_DIGIT)
    except ValueError:
        return False


def _around(cell: str, made: str) -> str:
    """Return what differs in two texts, with a few characters before the difference."""
    pairs = enumerate(zip(cell, made, strict=False))
    same = next((k for k, (old, new) in pairs if old != new), min(len(cell), len(made)))
    begin = max(0, same - 12)
    return f"{shown(cell[begin:], 40)!r} there, {shown(made[begin:], 40)!r} now"


def in_prose(subject: Subject) -> Iterator[Verdict]:
    """Yield a verdict for each page whose numbers have a list."""
    sources = prose.Sources(subject.where.made)
    for name, page, numbers in prose.pages(subject.where.made):
        try:
            text = files.read(page).decode()
        except OSError as error:
            yield skipped(name, f"the page cannot be read: {error.strerror}")
            continue
        wrong = [*prose.differences(text, prose.read(numbers), sources)]
        yield compared(name, "; ".join(wrong[:LISTED]))


def alike(subject: Subject, known: Sequence[times.Times]) -> Iterator[Verdict]:
    """Yield whether pages mark times that were not measured alike, and name their tables."""
    made = subject.where.made
    for name, page, numbers in prose.pages(made):
        with suppress(OSError):  # `in_prose` says so
            text = files.read(page).decode()
            of = times.shown(text, prose.read(numbers), known)
            if times.marked(text, page, made, of) != text:
                found = ", ".join(each.table for each in of) or "none"
                yield compared(name, f"times not measured alike, which it has to mark: {found}")
    for each in known:
        differs = f"{each.folder}: {each.unlike}"
        yield skipped(each.table, differs) if each.unlike else compared(each.table)


# ---- data --------------------------------------------------------------------------------------

ACROSS = 1e-6
"""Relative, of P and F: sums have another order elsewhere, and a prior's root is inverted."""

SECONDS = 20.0
"""Of solver and evaluations of a run that is executed again, on the machine of the stored run."""


def config_of(run: Run) -> RunConfig:
    """Return the options of a run as the current program reads them, on data of the same source.

    Raises
    ------
    ConfigError, RunFailedError
        If a component or option no longer exists, or an option is not understood.
    """
    options = dict(run.config)
    try:
        for group in catalog.COMPONENTS:
            options[group] = registry.config(group, options[group])
        config = validation.build(RunConfig, options)
    except KeyError as error:
        raise RunFailedError(f"its options lack {error}") from error
    return config.with_source(run.source)


def dataset_of(config: RunConfig) -> Any:
    """Return the dataset of a run; raise ``RunFailedError`` if it is missing or not prepared."""
    data = config.dataset
    if has_raw_file(data.kind):
        raw = raw_file(data.kind)
        if config.source != "synthetic" and raw.find() is None:
            raise RunFailedError(f"the data of {data.name} are not here")
        if raw.prepared and kept_in(raw, config.source) is None:
            raise RunFailedError(f"the data of {data.name} are not prepared")
    with silence(True):
        return components.load_dataset(data, components.chunk_rows(config))


def fingerprints(subject: Subject) -> Iterator[Verdict]:
    """Yield for each dataset, with its options, whether its fingerprint is that of its runs."""
    named = grouped(subject.runs, _of_dataset)
    for (name, source, stored, _), runs in sorted(named.items()):
        of = f"{name} ({source}), fingerprint {stored}"
        try:
            config = config_of(runs[0])
            found = dataset_of(config).fingerprint
        except SsvmBenchError as error:
            yield skipped(of, error)
            continue
        images = getattr(config.dataset, "pictures", config.dataset.kind)  # scribbles name theirs
        if found != stored and has_raw_file(images) and raw_file(images).prepared:
            text = f"the features of {name} are of another version of the program, or of a library"
            yield skipped(of, f"{text}. The pictures here are the genuine ones")
        else:
            yield compared(of, f"that of the data here is {found}" * (found != stored))


def _of_dataset(run: Run) -> tuple[str, str, str, str]:
    options = {**run.config["dataset"], "source": ""}
    return run.dataset, run.source, str(run.data["fingerprint"]), repr(options)


def _unlike_weights(run: Run) -> str:
    """Return how P at the stored weights differs from the last row; empty if it does not."""
    found, last = _primal(run), float(run["primal"][-1])
    differs = abs(found - last) > ACROSS * max(abs(last), 1.0)
    return f"P = {found:.9g} at the stored weights, {last:.9g} in the trace" * differs


def _primal(run: Run) -> float:
    """Return P at the stored weights of a run."""
    config = config_of(run)
    if config.oracle.family != STRUCTURAL_SVM:
        raise RunFailedError("P of transduction is not that of its weights alone")
    if run.metadata.get("latent"):
        raise RunFailedError("the latent values, which P depends on, are not stored")
    dataset = dataset_of(config)
    if dataset.fingerprint != run.data["fingerprint"]:
        raise RunFailedError("the data here are others")
    if not isinstance(dataset, Dataset):
        terms = components.oracle_of(config.oracle, dataset, components.chunk_rows(config))
    else:
        terms = components.build_oracle(config.oracle, config.dataset).fresh()
    w, _ = read_weights(run.folder)
    if w.size != terms.d:
        raise RunFailedError(f"there are {w.size} weights, of a problem with {terms.d}")
    prior = components.prior_of(config.prior, terms.d)
    if prior is not None:  # the stored weights are an affine map of the solver's, which P takes
        centred = w - prior.mean
        w = centred / prior.root if prior.root.ndim == 1 else np.linalg.solve(prior.root, centred)
    problem = components.problem_of(terms, run.lam, prior)
    value, _ = problem.measured(w)
    return value


def made_again(subject: Subject, count: int, seed: int) -> Iterator[Verdict]:
    """Yield for some stored runs, drawn by a seed, whether they are the same if executed again.

    A drawn run that cannot be executed here is skipped with a verdict, and another one is drawn.
    """
    fixed = subject.traces.where(_is_fixed)
    order = permutation(len(fixed), np.random.PCG64(seed))
    done = 0
    for run in (fixed[k] for k in order):
        if done == count:
            return
        found = _again(run)
        done += found.outcome != SKIPPED
        yield found


def _is_fixed(run: Run) -> bool:
    """Return whether a run depends on neither the clock, nor an earlier run, nor other workers."""
    clockless = run.clock == "work" or not run["approx_calls"].any()
    of = run.options.get
    alone = of("parallel.workers", 1) == 1 and (of("parallel.threads") or 1) == 1
    return clockless and alone and not run.config.get("path")


def _again(run: Run) -> Verdict:
    spent = run["cpu_time"] + run["eval_time"]
    last = int(run["iteration"][spent <= max(SECONDS, spent[0])][-1])
    of = f"{run.title}, {last} iterations"
    try:
        config = config_of(run)
        if config.own_hash() != run.own_hash:
            return skipped(of, "the program is another since: its CODE_VERSION has risen")
        if dataset_of(config).fingerprint != run.data["fingerprint"]:
            return skipped(of, "the data here are others")
        with files.temporary_folder(Path(tempfile.gettempdir(), "ssvm-bench-again")) as folder:
            # the least gap ends no run, but lets it continue beyond a solver's own precision
            gap = math.ulp(0.0) if config.budget.gap_tol > 0 else 0.0
            asked = Budget(max(last, 1), None, gap)
            config = replace(config, clock="work", budget=asked, results_dir=folder, quiet=True)
            again = read_run(execute(config, Display()).folder)
    except SsvmBenchError as error:
        return skipped(of, error)
    return compared(of, _unlike(run.take(run["iteration"] <= last), again))


def _unlike(stored: Run, again: Run) -> str:
    """Return where two runs differ first; an empty string if they do not differ."""
    at, old_rows, new_rows = np.intersect1d(
        stored["iteration"], again["iteration"], return_indices=True
    )
    if at.size < len(stored):
        return f"it has {at.size} of the {len(stored)} rows"
    scale = np.maximum(np.abs(stored["primal"][old_rows]), TINY)
    for name, allowed in (("oracle_calls", 0.0), ("primal", ACROSS), ("dual", ACROSS)):
        old, new = stored[name][old_rows], again[name][new_rows]
        wrong = ~((np.abs(old - new) <= allowed * scale) | (np.isnan(old) & np.isnan(new)))
        if wrong.any():
            k = int(np.argmax(wrong))
            return f"{name} {old[k]:.9g} stored, {new[k]:.9g} repeated, at iteration {at[k]:.0f}"
    return ""
