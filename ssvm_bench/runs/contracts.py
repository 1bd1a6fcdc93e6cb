"""``ssvm-bench check``: checks a component, given by name, on instances that fit it.

The result is the `Findings`: the claims of the component's contract, each kept or broken. An oracle
(:mod:`ssvm_bench.oracles.base`) is compared with its definitions on labelings: the ground truth,
those that it returns at other weights and, where each part may have any label, random ones. Of a
solver (:mod:`ssvm_bench.solvers.base`) it is checked what it reports, and what it counts. The
oracle that counts calls shows a solver its abstract methods only, as an oracle of another package
would.
"""

from __future__ import annotations

import copy
import math
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from itertools import combinations, product
from pathlib import Path
from typing import Any

import numpy as np

from ssvm_bench.base.clock import Clock
from ssvm_bench.base.errors import ConfigError, described
from ssvm_bench.base.random import approx_normal, uniform
from ssvm_bench.config import LOADED_FROM, registry
from ssvm_bench.config.compose import compose_runs
from ssvm_bench.config.schema import RunConfig
from ssvm_bench.datasets.base import LANDMARKS, SEGMENTS, Dataset
from ssvm_bench.datasets.structures import Alphabet, Boxes, Windows, pattern_maps
from ssvm_bench.oracles import multiclass, viterbi
from ssvm_bench.oracles.base import Oracle, Plane, Problem, Risk
from ssvm_bench.oracles.checks import check_loss
from ssvm_bench.oracles.labeling import PartsOracle
from ssvm_bench.runs import checkpoints
from ssvm_bench.runs.components import load_dataset, oracle_of
from ssvm_bench.solvers.base import Solver
from ssvm_bench.solvers.block.mpbcfw import Config as BlockConfig
from ssvm_bench.solvers.block.mpbcfw import build as build_block

KEPT, BROKEN, NOTED, NOT_CHECKED = "✓", "✗", "!", "–"


class BrokenError(Exception):
    """A claim does not hold; the message says where, with the numbers."""


@dataclass
class Findings:
    """The claims of a contract, in the order in which they were checked.

    Attributes
    ----------
    of : str
        What was checked, on which instance.
    lines : list of (mark, claim, detail)
    tracebacks : list of str
        Those of exceptions that the component raised.
    """

    of: str = ""
    lines: list[tuple[str, str, str]] = field(default_factory=list)
    tracebacks: list[str] = field(default_factory=list)

    @contextmanager
    def claim(self, text: str) -> Iterator[None]:
        """Check a claim in the block, which raises an exception if the claim does not hold."""
        try:
            yield
        except BrokenError as error:
            self.lines.append((BROKEN, text, str(error)))
        except BaseException as error:  # raised by the component: a finding, too
            self.lines.append((BROKEN, text, described(error)))
            self.tracebacks.append("".join(traceback.format_exception(error)))
        else:
            self.lines.append((KEPT, text, ""))

    def note(self, text: str, detail: str) -> None:
        """Add a remark: nothing is broken, but the user should know it."""
        self.lines.append((NOTED, text, detail))

    def check(self, text: str, test: Callable[[], object], unless: str = "") -> None:
        """Check a claim by calling ``test``, unless there is a reason why that is not possible."""
        if unless:
            self.lines.append((NOT_CHECKED, text, unless))
            return
        with self.claim(text):
            test()

    @property
    def broken(self) -> int:
        """Number of claims that do not hold."""
        return sum(mark == BROKEN for mark, _, _ in self.lines)

    def shown(self) -> Iterator[str]:
        """Yield a line for each claim."""
        for mark, text, detail in self.lines:
            yield f"  {mark} {text}" + (f": {detail}" if detail else "")


def expect(holds: bool, message: str) -> None:
    """Raise `BrokenError` with a message unless something holds."""
    if not holds:
        raise BrokenError(message)


# ---- The check of a component -----------------------------------------------------------------

STRUCTURES = "independent", "regression", "chain", "graph", "latent", SEGMENTS, LANDMARKS
_EXAMPLES = 8


def check(
    group: str, name: str, words: Sequence[str], config_dirs: Sequence[Path] = ()
) -> Iterator[Findings]:
    """Check a component; yield the findings of each instance.

    Parameters
    ----------
    group : str
        ``"oracle"``, ``"solver"`` or ``"dataset"``.
    name : str
    words : sequence of str
        Further options, as overrides. If one names a dataset, its first examples are the instance.
    config_dirs : sequence of Path
        Further folders of config files.

    Raises
    ------
    ConfigError
        There is no such component, or no instance for it.
    """
    (config,) = compose_runs([f"{group}={name}", *words], config_dirs=config_dirs)
    build = partial(oracle_of, config.oracle)
    if group == "dataset":
        with registry.blamed("dataset", config.dataset.kind):
            load = partial(registry.module("dataset", config.dataset.kind).load, config.dataset)
        findings = Findings(f"dataset {config.dataset.name}")
        check_dataset(load, build, findings)
        yield findings
        return
    given = None
    if any(word.lstrip("+").startswith("dataset=") for word in words):
        dataset = load_dataset(config.dataset)
        assert isinstance(dataset, Dataset)  # not a stream
        given = dataset.head(_EXAMPLES)
    yield from (_solver_of if group == "solver" else _oracle_of)(config, build, given)


def _oracle_of(
    config: RunConfig, build: Callable[[Dataset], Oracle], given: Dataset | None
) -> Iterator[Findings]:
    """Check an oracle on a given dataset, or on small ones of all structures that it accepts."""
    refused, findings = "", None
    for data in [given] if given is not None else _small(config.oracle):
        with registry.blamed("oracle", config.oracle.kind):
            try:
                oracle = build(data)
            except ConfigError as error:  # it does not accept this instance
                refused = str(error)
                continue
        findings = Findings(f"oracle {config.oracle.name} on {_described(data)}")
        check_oracle(oracle, findings)
        yield findings
    if findings is None:
        raise ConfigError(
            f"There is no small instance for oracle={config.oracle.name}: {refused} Name a dataset "
            "that it is for, as dataset=NAME."
        )


def _small(config: Any) -> Iterator[Dataset]:
    """Yield small instances of the structures that an oracle accepts."""
    for structure in config.structures or STRUCTURES:
        if structure not in STRUCTURES:
            raise ConfigError(
                f"oracle={config.name} is for {structure} labels, of which there is no small "
                "instance. Name a dataset of yours, as dataset=NAME."
            )
        for n_labels in (2, 3) if structure in ("independent", "chain", "graph") else (2,):
            yield small(structure, n_labels)


def _solver_of(
    config: RunConfig, build: Callable[[Dataset], Oracle], given: Dataset | None
) -> Iterator[Findings]:
    """Check a solver on the oracle of a given dataset, or on small built-in problems."""
    solver = config.solver
    module = registry.module("solver", solver.kind)
    if solver.needs_path:
        raise ConfigError(f"solver={solver.name} begins at the end of another run: check that one.")

    problems = [(given, build)] if given is not None else []
    for of, structure in ((multiclass, "independent"), (viterbi, "chain")):
        if given is None and structure in (solver.structures or (structure,)):
            ours = partial(of.build, of.Config(name=structure, kind=structure))
            problems.append((small(structure), ours))
    if not problems:
        raise ConfigError(
            f"solver={solver.name} is for {' and '.join(solver.structures)} labels. Name a dataset "
            "of those, as dataset=NAME."
        )
    for data, oracle_of_data in problems:
        findings = Findings(f"solver {solver.name} on {_described(data)}")
        check_solver(partial(module.build, solver), solver, oracle_of_data(data), findings)
        yield findings


def _described(data: Dataset) -> str:
    labels = f", {data.n_labels} labels" if data.n_labels else ""
    return f"{data.name} ({data.n} examples, {data.y.size} parts{labels})"


# ---- datasets --------------------------------------------------------------------------------


def check_dataset(
    load: Callable[[], Any], build: Callable[[Dataset], Oracle], findings: Findings
) -> None:
    """Check what a loader returns.

    Parameters
    ----------
    load : callable
        Loads the dataset.
    build : callable
        Builds the oracle of the dataset.
    findings : Findings
    """
    dataset: Any = None
    with findings.claim("load returns a Dataset, in which everything is in range"):
        dataset = load()
        expect(isinstance(dataset, Dataset), f"it returns a {type(dataset).__name__}")
    if not isinstance(dataset, Dataset):
        return
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
        expect(dataset.source in LOADED_FROM, f"{dataset.source!r} is not one of {known}")
    with findings.claim("its oracle can be built, of all examples and of some"):
        sizes = {build(dataset.head(3)).d, build(dataset.head(2)).d}
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


# ---- small instances --------------------------------------------------------------------------


N_FEATURES = 3
_SIZES = (3, 1, 4, 2, 3)  # numbers of parts of structured examples


def small(structure: str, n_labels: int = 3) -> Dataset:
    """Return a few examples of a structure; their features are informative of the labels."""
    bits = np.random.PCG64(7)
    if structure == LANDMARKS:
        return _landmarks(bits)
    if structure == SEGMENTS:
        return _segments(bits)
    sizes = np.array(_SIZES if structure in ("chain", "graph") else (1,) * 8)
    parts = int(sizes.sum())
    y = np.arange(parts) % n_labels
    x = 2.0 * approx_normal((n_labels, N_FEATURES), bits)[y] + 0.3 * approx_normal(
        (parts, N_FEATURES), bits
    )
    offsets, more = np.cumsum([0, *sizes]), dict[str, Any]()
    if structure == "graph":
        pairs = [[*combinations(range(size), 2)] for size in sizes]
        kept = [[pair for k, pair in enumerate(each) if k % 3 < 2] for each in pairs]
        more["edges"] = np.array([pair for each in kept for pair in each], np.int32)
        more["edge_offsets"] = np.cumsum([0, *map(len, kept)])
    if structure == "regression":
        return _instance(structure, x, approx_normal((parts,), bits), offsets, 0)
    if structure == "latent":
        x, n_labels = uniform((parts, 16), bits), 2
        more |= {"windows": Windows((4, 4), (3, 3), 1), "places": np.arange(parts) % 4}
    return _instance(structure, x, (y % n_labels).astype(np.uint8), offsets, n_labels, **more)


def _segments(bits: np.random.PCG64) -> Dataset:
    """Return texts over two characters, which are one and two columns wide."""
    alphabet = Alphabet(("i", "o"), (1, 2))
    texts = [(1,) * (size // 2) + (0,) * (size % 2) for size in _SIZES]
    y = np.concatenate([alphabet.columns(text) for text in texts]).astype(np.uint8)
    x = 2.0 * approx_normal((alphabet.n_labels, N_FEATURES), bits)[y]
    x += 0.3 * approx_normal((y.size, N_FEATURES), bits)
    offsets = np.cumsum([0, *_SIZES])
    return _instance(SEGMENTS, x, y, offsets, alphabet.n_labels, admissible=alphabet)


def _landmarks(bits: np.random.PCG64) -> Dataset:
    """Return images of noise, with three landmarks in boxes of 2 × 3 positions."""
    n, image = 4, (7, 8)
    corners = ((0, 0), (2, 4), (4, 1))
    boxes = Boxes(("a", "b", "c"), (-1, 0, 0), corners, ((2, 3),) * 3, image, (0, 1), (2,))
    at = np.array(corners) + (uniform((n, 3, 2), bits) * (2, 3)).astype(np.int64)
    y = (at @ np.array([image[1], 1])).ravel().astype(np.uint8)
    maps = pattern_maps((256 * uniform((n, *image), bits)).astype(np.uint8))
    return _instance(LANDMARKS, maps, y, 3 * np.arange(n + 1), 56, admissible=boxes)


def _instance(structure: str, x: Any, y: Any, offsets: Any, n_labels: int, **more: Any) -> Dataset:
    name = f"small {structure}"
    return Dataset(name, x, y, offsets, n_labels, structure, source="synthetic", **more)


# ---- Oracles ----------------------------------------------------------------------------------

SCALES = (0.0, 0.1, 1.0, 30.0)
ROUNDING = 1e-9
_FIRST, _RANDOM, _PASSES = 6, 12, 12


def check_oracle(oracle: Oracle, findings: Findings) -> None:
    """Check an oracle of a few examples."""
    OracleCheck(oracle, findings).all()


class OracleCheck:
    """The checks of one oracle.

    Attributes
    ----------
    weights : list of ndarray
        The w at which the oracle is called.
    labelings : list of list of ndarray
        Some labelings of each example, the ground truth first.
    """

    def __init__(self, oracle: Oracle, findings: Findings) -> None:
        self.oracle, self.findings = oracle, findings
        self.bits = np.random.PCG64(11)
        self.some = range(min(oracle.n, _FIRST))
        self.weights = [scale * approx_normal((oracle.d,), self.bits) for scale in SCALES]
        for w in self.weights:
            w[oracle.d - oracle.nonnegative :] = np.abs(w[oracle.d - oracle.nonnegative :])
        self.labelings: list[list[np.ndarray]] = []

    def all(self) -> None:
        """Check all claims, or only the first one if it yields no labelings."""
        with self.findings.claim("argmax and predict return labelings"):
            self.labelings = [self._some_labelings(i) for i in self.some]
        if not self.labelings:
            return
        for text, check in (
            ("the loss of the ground truth is 0, and no loss is negative", self._losses),
            (f"planes are φ = [ϕ(y) − ϕ(y_i); {self._offset()}]/n", self._planes),
            ("H_i(w) ≥ 0, and best_plane has its value", self._values),
            ("risk is the sum of the best planes", self._risk),
            ("the same call has the same answer, whatever is asked between", self._determinism),
            ("radius bounds ‖ϕ(y) − ϕ(y_i)‖", self._radius),
            ("dual ≤ primal while bcfw trains with it", self._duality),
        ):
            self.findings.check(text, check)
        text = "argmax and predict are no worse than the truth and other labelings"
        unless = "" if self.oracle.exact else "the oracle says that it is not exact"
        self.findings.check(text, self._maximisers, unless)
        if self.oracle.exact:
            self._ties()

    def _some_labelings(self, i: int) -> list[np.ndarray]:
        oracle = self.oracle
        truth = oracle.truth(i)
        found = [truth]
        for w in self.weights:
            found.append(oracle.argmax(w, i))
            if oracle.latent() is None:  # else predict maximises over more labelings
                found.append(oracle.predict(w, i))
        for y in found:
            expect(
                isinstance(y, np.ndarray) and y.shape == truth.shape and y.dtype == truth.dtype,
                f"example {i}: {_shown(y)}, and the ground truth is {_shown(truth)}",
            )
        if isinstance(oracle, PartsOracle) and getattr(oracle, "any_label", True):
            draws = np.abs(approx_normal((_RANDOM, truth.size), self.bits) * 1e6).astype(np.int64)
            found += [*(draws % oracle.features.n_labels).astype(truth.dtype)]
        return [y.copy() for y in found]

    def _offset(self) -> str:
        """Return the last entry of n planes; few oracles have a score that is not learned."""
        if type(self.oracle).fixed_score is Oracle.fixed_score:
            return "Δ"
        return "Δ + fixed_score(y) − fixed_score(y_i)"

    def _losses(self) -> None:
        for i in self.some:
            loss = check_loss(self.oracle, i, self.oracle.loss(i, self.oracle.truth(i)))
            expect(loss == 0.0, f"example {i}: that of the ground truth is {loss}")
            for y in self.labelings[i]:
                loss = check_loss(self.oracle, i, self.oracle.loss(i, y))
                expect(0.0 <= loss < math.inf, f"example {i}: the loss of {_shown(y)} is {loss}")

    def _defined(self, i: int, y: np.ndarray) -> np.ndarray:
        """Return n φ^{iy}, shape (d + 1,), by its definition."""
        oracle, truth = self.oracle, self.oracle.truth(i)
        plane = np.zeros(oracle.d + 1)
        for sign, labeling in ((1.0, y), (-1.0, truth)):
            indices, values = oracle.joint_feature(i, labeling)
            expect(
                np.unique(indices).size == len(indices),
                f"example {i}: joint_feature({_shown(labeling)}) has an index twice",
            )
            plane[np.asarray(indices)] += sign * np.asarray(values)
            plane[-1] += sign * oracle.fixed_score(i, labeling)
        plane[-1] += oracle.loss(i, y)
        return plane

    def _planes(self) -> None:
        for i in self.some:
            for y in self.labelings[i]:
                given = _dense(self.oracle.plane(i, y), self.oracle.d) * self.oracle.n
                wrong = np.abs(given - self._defined(i, y))
                k, size = int(wrong.argmax()), 1.0 + np.abs(given).max()
                expect(
                    wrong[k] <= ROUNDING * size,
                    f"example {i}: n φ of {_shown(y)} is off by {wrong[k]:.3g} in "
                    f"{'its offset' if k == self.oracle.d else f'weight {k}'}",
                )

    def _value(self, i: int, y: np.ndarray, w: np.ndarray, loss: float) -> tuple[float, float]:
        """Return score(y) − score(truth), with or without the loss, and a bound of its rounding."""
        plane = self._defined(i, y)
        plane[-1] -= (1.0 - loss) * self.oracle.loss(i, y)
        terms = plane * np.append(w, 1.0)
        return float(terms.sum()), ROUNDING * (1.0 + float(np.abs(terms).sum()))

    def _maximisers(self) -> None:
        which = ("argmax", 1.0), ("predict", 0.0)
        for i, w, (name, loss) in product(self.some, self.weights, which):
            y = getattr(self.oracle, name)(w, i)
            value, rounding = self._value(i, y, w, loss)
            for other in self.labelings[i]:
                better, _ = self._value(i, other, w, loss)
                expect(
                    better <= value + rounding,
                    f"example {i}: {name} returns {_shown(y)}, of score {value:.6g} above the "
                    f"truth's, and {_shown(other)} has {better:.6g}",
                )

    def _values(self) -> None:
        for i, w in product(self.some, self.weights):
            plane, value = self.oracle.best_plane(w, i)
            dense = _dense(plane, self.oracle.d)
            at = float(dense @ np.append(w, 1.0))
            rounding = ROUNDING * (1.0 + float(np.abs(dense * np.append(w, 1.0)).sum()))
            expect(abs(at - value) <= rounding, f"example {i}: value {value}, its plane {at}")
            low = value >= -rounding or not self.oracle.exact
            expect(low, f"example {i}: H_i(w) = {value:.6g}")

    def _risk(self) -> None:
        for w in self.weights:
            planes = [self.oracle.best_plane(w, i) for i in range(self.oracle.n)]
            risk = self.oracle.risk(w)
            total = sum(value for _, value in planes)
            size = 1.0 + sum(abs(value) for _, value in planes)
            expect(abs(risk.value - total) <= ROUNDING * size, f"{risk.value}, and {total} in sum")
            at = float(risk.star @ w) + risk.offset
            size += float(np.abs(risk.star * w).sum())
            expect(abs(at - risk.value) <= ROUNDING * size, f"its plane is {at}, not {risk.value}")

    def _determinism(self) -> None:
        oracle = self.oracle.fresh()
        asked = [(w, i) for w in self.weights for i in self.some]
        first = [oracle.argmax(w, i).copy() for w, i in asked]
        if oracle is not self.oracle:  # its results may depend on earlier calls
            oracle = self.oracle.fresh()
            again = [oracle.argmax(w, i) for w, i in asked]
        else:
            again = [oracle.argmax(w, i) for w, i in reversed(asked)][::-1]
        for (_, i), one, other in zip(asked, first, again, strict=True):
            same = np.array_equal(one, other)
            expect(same, f"example {i}: first {_shown(one)}, then {_shown(other)}")

    def _radius(self) -> None:
        radius = self.oracle.radius()
        if math.isnan(radius):
            return
        for i in self.some:
            for y in self.labelings[i]:
                length = float(np.linalg.norm(self._defined(i, y)[:-1]))
                expect(length <= radius * (1 + ROUNDING), f"example {i}: {length} > {radius}")

    def _ties(self) -> None:
        """Note a prediction at w = 0 that is not the first one of several best labelings."""
        for i in self.some:
            w = np.zeros(self.oracle.d)
            y = self.oracle.predict(w, i)
            value, rounding = self._value(i, y, w, 0.0)
            for other in self.labelings[i]:
                equal = abs(self._value(i, other, w, 0.0)[0] - value) <= rounding
                if equal and other.tolist() < y.tolist():
                    self.findings.note(
                        "ties are broken in another way than in oracles of ours",
                        f"at w = 0, example {i} has {_shown(y)}, and {_shown(other)} is as good "
                        "and comes first. Runs are sound; but where labelings tie, they are not "
                        "those of an oracle that takes the lowest label first",
                    )
                    return

    def _duality(self) -> None:
        problem = Problem(self.oracle.fresh(), 1.0 / self.oracle.n)
        config = BlockConfig(name="bcfw", kind="mpbcfw", N=0, M=0)
        solver: Any = build_block(config, problem, Clock("work"), 0)
        for k in range(_PASSES):
            w, dual = solver.reported()
            primal = problem.primal(w)
            rounding = ROUNDING * max(1.0, abs(primal))
            low = dual <= primal + rounding or not self.oracle.exact
            expect(low, f"after {k} passes, dual {dual:.9g} > primal {primal:.9g}")
            solver.iterate()


def _dense(plane: Any, d: int) -> np.ndarray:
    indices, values, offset = plane
    dense = np.zeros(d + 1)
    np.add.at(dense, np.asarray(indices), np.asarray(values))
    dense[-1] = offset
    return dense


def _shown(y: Any) -> str:
    if not isinstance(y, np.ndarray):
        return f"a {type(y).__name__}"
    text = np.array2string(y, threshold=8, max_line_width=1000)
    return f"{text} ({y.dtype}{list(y.shape)})" if y.ndim != 1 else text


# ---- Solvers ----------------------------------------------------------------------------------

Build = Callable[[Problem, Clock, int], Solver]

Row = tuple[np.ndarray, float, float]
"""w, primal and dual."""

_COUNTS = ("oracle_calls", "approx_calls", "oracle_time")

ITERATIONS = 40
LAM = 0.5  # every method is quick with it

_COSTS = (1e-5, 1e-7)
_RESTORED = 7


def _handed_on(name: str) -> Any:
    """Return a method of `Counting` that delegates to the inner oracle."""
    return lambda self, *arguments: getattr(self.inner, name)(*arguments)


class Counting(Oracle):
    """An oracle that counts its calls, and hides that it is compiled."""

    def __init__(self, inner: Oracle) -> None:
        self.inner, self.n, self.d, self.exact = inner, inner.n, inner.d, inner.exact
        self.calls = 0

    truth, predict, loss, joint_feature, fixed_score = (
        _handed_on(name) for name in ("truth", "predict", "loss", "joint_feature", "fixed_score")
    )

    def argmax(self, w: np.ndarray, i: int) -> np.ndarray:
        """Count a call."""
        self.calls += 1
        return self.inner.argmax(w, i)

    def best_plane(self, w: np.ndarray, i: int) -> tuple[Plane, float]:
        """Count a call."""
        self.calls += 1
        return self.inner.best_plane(w, i)

    def risk(self, w: np.ndarray, with_plane: bool = True, terms: range | None = None) -> Risk:
        """Count one call per term."""
        self.calls += self.n if terms is None else len(terms)
        return self.inner.risk(w, with_plane, terms)


def check_solver(build: Build, config: Any, oracle: Oracle, findings: Findings) -> None:
    """Check a solver on the problem of an oracle.

    Parameters
    ----------
    build : callable
        Builds the solver of a problem, given a clock and a seed.
    config : dataclass
        Its ``Config``.
    oracle : Oracle
        Exact, of a few terms.
    findings : Findings
    """
    rows: list[Row] = []
    with findings.claim("build returns a Solver"):
        built = _built(build, oracle)
        expect(isinstance(built, Solver), f"it returns {type(built).__name__}")
    if findings.broken:
        return
    with findings.claim("w is float64 of shape (d,), finite, and stays as reported"):
        rows = _trace(build, oracle)
    if not rows:
        return
    has_dual = config.has_dual
    findings.check(
        "dual ≤ primal in every row",
        lambda: _duality(rows),
        "" if has_dual else "the solver says that it has no dual value",
    )
    findings.check(
        "F rises, and the gap falls",
        lambda: _progress(rows),
        "" if has_dual else "the solver says that it has no dual value",
    )
    with findings.claim(f"primal is lower after {ITERATIONS} iterations than at the beginning"):
        first, last = rows[0][1], min(primal for _, primal, _ in rows[1:])
        expect(last < first, f"{last:.9g}, and {first:.9g} at the beginning")
    with findings.claim("the same seed makes the same trace"):
        _compare(rows, _trace(build, oracle))
    has_state = _has_state(built)
    findings.check(
        "a new one that takes its state continues with the same trace",
        lambda: _compare(rows, _trace(build, oracle, _RESTORED)),
        "" if has_state else "it does not define STATE: an interrupted run starts again",
    )
    with findings.claim("counts and time only rise"):
        _rises(build, oracle)
    findings.check(
        "every call of the oracle is on the clock",
        lambda: _counts(build, oracle),
        _why_uncounted(build, config, oracle),
    )


def _progress(rows: list[Row]) -> None:
    """Compare dual and gap at the end with those at the beginning."""
    (_, primal, dual), (_, last_primal, last_dual) = rows[0], rows[-1]
    gap, last = primal - dual, last_primal - last_dual
    solved = gap <= ROUNDING * max(1.0, abs(primal))
    text = f"the dual is {last_dual:.9g} after {ITERATIONS} iterations, and {dual:.9g} before"
    expect(solved or (math.isfinite(last_dual) and last_dual > dual), text)
    text = f"the gap is {last:.9g} after {ITERATIONS} iterations, and {gap:.9g} before"
    expect(solved or last < gap, text)


def _built(build: Build, oracle: Oracle) -> Solver:
    return build(Problem(oracle.fresh(), LAM), Clock("work", *_COSTS), 0)


def _duality(rows: list[Row]) -> None:
    best = min(primal for _, primal, _ in rows)
    for k, (_, _, dual) in enumerate(rows):
        expect(not math.isnan(dual), f"no dual value in row {k} (has_dual = False?)")
        low = dual <= best + ROUNDING * max(1.0, abs(best))
        expect(low, f"row {k} has the dual {dual:.9g}, and a primal is {best:.9g}")


def _trace(build: Build, oracle: Oracle, restored: int | None = None) -> list[Row]:
    """Return all rows; from index ``restored`` on, those of a solver restored from its state."""
    solver = _built(build, oracle)
    solver.begin()
    rows = []
    for k in range(ITERATIONS + 1):
        if k == restored:
            state = copy.deepcopy(checkpoints.of_solver(solver))
            solver = _built(build, oracle)
            checkpoints.restore_solver(solver, state)
        w, dual = solver.reported()
        expect(
            isinstance(w, np.ndarray) and w.shape == (oracle.d,) and w.dtype == np.float64,
            f"row {k}: w is {getattr(w, 'dtype', type(w).__name__)} {np.shape(w)}",
        )
        expect(bool(np.isfinite(w).all()), f"row {k}: w is not finite")
        again = solver.reported()
        same = np.array_equal(w, again.w) and _equal((dual,), (again.dual,))
        expect(same, f"row {k}: reported twice, it is another iterate")
        rows.append((w.copy(), Problem(oracle, LAM).primal(w), float(dual)))
        if k < ITERATIONS and not solver.converged and solver.ended is None:
            solver.iterate()
            expect(np.array_equal(w, rows[-1][0]), f"row {k}: the next iteration has changed its w")
    return rows


def _rises(build: Build, oracle: Oracle) -> None:
    """Compare what has been spent before and after iterations."""
    solver = _built(build, oracle)
    solver.begin()
    for k in range(1, ITERATIONS + 1):
        before = _spent(solver)
        if solver.converged or solver.ended is not None:
            return
        solver.iterate()
        for name, spent in _spent(solver).items():
            expect(spent >= before[name], f"{name} falls in iteration {k}")
        expect(solver.approx_passes >= 0, f"approx_passes is negative in iteration {k}")


def _spent(solver: Solver) -> dict[str, float]:
    """Return what only rises: the counts and the time of the solver's clock."""
    return {**{name: getattr(solver.clock, name) for name in _COUNTS}, "time": solver.clock.now()}


def _has_state(solver: Solver) -> bool:
    try:
        solver.state()
    except NotImplementedError:
        return False
    return True


def _compare(rows: list[Row], others: list[Row]) -> None:
    """Compare two traces."""
    for k, (one, other) in enumerate(zip(rows, others, strict=True)):
        same = np.array_equal(one[0], other[0]) and _equal(one[1:], other[1:])
        expect(same, f"row {k}: primal {one[1]!r}, then {other[1]!r}")


def _why_uncounted(build: Build, config: Any, oracle: Oracle) -> str:
    """Return why calls cannot be counted: the oracle is compiled into the solver; or nothing."""
    if config.needs_expectations:
        return "it asks for expectations, which are compiled"
    try:
        build(Problem(Counting(oracle), LAM), Clock("work", *_COSTS), 0)
    except ConfigError as error:
        return str(error)
    return ""


def _counts(build: Build, oracle: Oracle) -> None:
    """Compare the calls that were made with those on the clock, after every iteration."""
    counting, clock = Counting(oracle), Clock("work", *_COSTS)
    solver = build(Problem(counting, LAM), clock, 0)
    solver.begin()
    for k in range(4):
        expect(
            counting.calls == clock.oracle_calls,
            f"{counting.calls} calls after {k} iterations, and the clock has {clock.oracle_calls}",
        )
        if not solver.converged and solver.ended is None:
            solver.iterate()
    expect(counting.calls > 0, "it has called no oracle in three iterations")


def _equal(one: tuple[float, ...], other: tuple[float, ...]) -> bool:
    return bool(np.array_equal(np.array(one), np.array(other), equal_nan=True))
