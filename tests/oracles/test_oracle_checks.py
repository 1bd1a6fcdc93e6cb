"""What an oracle returns is checked: a wrong index would corrupt memory, a wrong plane a bound."""

from typing import NamedTuple

import numpy as np
import pytest
from helpers import Plain, oracle, random_chains, random_graphs, solver

from ssvm_bench.base.clock import Clock
from ssvm_bench.base.errors import RunFailedError, described
from ssvm_bench.base.jit import implements
from ssvm_bench.config.compose import compose_runs
from ssvm_bench.oracles import viterbi
from ssvm_bench.oracles.base import Plane, Problem, Risk
from ssvm_bench.oracles.joint_features import JointFeatures
from ssvm_bench.oracles.labeling import LabelingOracle, maximise
from ssvm_bench.runs import components, runner
from ssvm_bench.runs.recorder import Recorder
from ssvm_bench.runs.terminal import Display

CHAINS = random_chains([3, 1, 4], 3, 2, seed=3)
SOLVERS = ["bcfw", "mpbcfw", "mpbcfw_fast", "cutting_plane", "one_slack", "bmrm", "fw", "ssg"]


def train(tested, name, lam=0.5, **options):
    """Let a solver run to its end, and return the rows and the stop reason."""
    (config,) = compose_runs([f"solver={name}", "dataset=ocr", "budget.max_iterations=40"])
    posed = Problem(tested, lam)
    recorder = Recorder(posed, Display())
    reason = runner.loop(config, components.build_solver(config, posed, Clock("work")), recorder)
    return recorder.rows, reason


class Incorrect(Plain):
    """An oracle that returns what it is given at example 1."""

    def __init__(self, plane=None, loss=None, exact=True):
        super().__init__(oracle(CHAINS))
        self.given, self.exact = {"plane": plane, "loss": loss}, exact

    def plane(self, i, y):
        plane = self.given["plane"]
        return super().plane(i, y) if plane is None or i != 1 else plane

    def loss(self, i, y):
        loss = self.given["loss"]
        return super().loss(i, y) if loss is None or i != 1 else loss


D = oracle(CHAINS).d
ONE = np.ones(1)
ENTRY = np.zeros(1, np.int64)
NO_PLANE, NOT_FINITE = "not (indices, values, offset)", "not a finite number"
OUTSIDE = Plane(np.array([D]), ONE, 0.5)


@pytest.mark.parametrize(
    ("plane", "message"),
    [
        *(((np.array([k]), ONE, 0.5), "an index outside 0 … d − 1") for k in (D, -1, 2**62)),
        ((np.array([3, 0, 3]), np.ones(3), 0.5), "an index twice"),
        *(((ENTRY, np.array([value]), 0.5), NOT_FINITE) for value in (np.nan, np.inf)),
        ((ENTRY, ONE, np.nan), NOT_FINITE),
        ((ENTRY, np.ones(2), 0.5), NO_PLANE),
        ((np.zeros(1), ONE, 0.5), NO_PLANE),
        ((ENTRY, np.array(["a"]), 0.5), NO_PLANE),
        ((ENTRY, ONE, "a lot"), NO_PLANE),
        ((ENTRY[None], ONE[None], 0.5), NO_PLANE),
        ((ENTRY, ONE), NO_PLANE),
    ],
)
def test_a_wrong_plane_is_reported_with_its_example(plane, message):
    plane = Plane(*plane) if len(plane) == 3 else plane
    with pytest.raises(RunFailedError) as caught:
        train(Incorrect(plane=plane, exact=False), "bcfw")
    assert "the oracle Incorrect is wrong at example 1: its plane" in str(caught.value)
    assert message in str(caught.value)


@pytest.mark.parametrize("name", SOLVERS)
def test_no_solver_takes_a_wrong_plane(name):
    with pytest.raises(RunFailedError, match="an index outside"):
        train(Incorrect(plane=OUTSIDE), name)


@pytest.mark.parametrize("name", ["bcfw", "fw"])
def test_planes_of_other_types_are_taken(name):
    """What numpy would take: narrow or unordered indices, integers as values."""
    odd = Plane(np.array([3, 0], np.int16), np.array([1, 0, 2, 0])[::2], np.float32(0.5))
    usual = Plane(np.array([0, 3]), np.array([2.0, 1.0]), 0.5)
    one, other = (train(Incorrect(plane=plane, exact=False), name)[0][-1] for plane in (odd, usual))
    assert one["dual"] == pytest.approx(other["dual"], rel=1e-9)


@pytest.mark.parametrize("loss", [-0.25, np.nan, np.inf])
def test_a_loss_below_0_is_reported_with_its_example(loss):
    tested, w = Incorrect(loss=loss), np.zeros(D)
    for ask in (tested.risk, tested.mean_loss, lambda w: tested.best_plane(w, 1)):
        with pytest.raises(RunFailedError, match=r"at example 1: the loss of its labeling is"):
            ask(w)


@pytest.mark.parametrize(
    ("loss", "found"),
    [
        (np.array([1.0, 0.0]), r"ndarray of shape \(2,\)"),
        (np.ones(1), r"ndarray of shape \(1,\)"),
        ("1", "str"),
        ([1.0], "list"),
        (1j, "complex"),
    ],
)
def test_a_loss_that_is_no_number_names_the_method(loss, found):
    """Of an array: "setting an array element with a sequence.. Run again with --debug"."""
    tested, w = Incorrect(loss=loss), np.zeros(D)
    for ask in (tested.risk, tested.mean_loss, lambda w: tested.best_plane(w, 1)):
        with pytest.raises(RunFailedError, match=rf"at example 1: loss\(i, y\) returned {found}"):
            ask(w)


def test_a_message_that_is_part_of_a_sentence_has_no_full_stop():
    assert described(ValueError("a sequence.")) == "ValueError: a sequence"
    assert described(ValueError("")) == "ValueError"
    assert described(RunFailedError("It failed.")) == "It failed."


class Random(Plain):
    """An oracle that says it is exact, and returns any labeling."""

    def __init__(self, inner, exact):
        super().__init__(inner)
        self.exact, self.bits = exact, np.random.default_rng(0)

    def argmax(self, w, i):
        return self.bits.integers(0, 3, self.truth(i).size).astype(np.uint8)


class Late(Plain):
    """An oracle that is exact at w = 0, and never better than the truth afterwards."""

    def argmax(self, w, i):
        return super().argmax(w, i) if not w.any() else self.truth(i)


@pytest.mark.parametrize("name", SOLVERS)
def test_an_incorrect_oracle_is_reported_with_its_example(name):
    with pytest.raises(RunFailedError, match=r"at example \d: its labeling scores less than the"):
        train(Random(oracle(CHAINS), exact=True), name)
    assert train(Random(oracle(CHAINS), exact=False), name)


@pytest.mark.parametrize("name", [name for name in SOLVERS if name != "ssg"])
def test_a_dual_above_the_primal_names_an_example(name):
    """H_i(w) = 0 is possible: only that the planes found before are higher gives it away."""
    with pytest.raises(RunFailedError, match=r"is above the primal one.*not at example \d"):
        train(Late(oracle(CHAINS)), name, lam=50.0)


class Compiled(NamedTuple):
    """A compiled oracle that writes one label everywhere."""

    features: JointFeatures
    label: int


@implements(maximise, Compiled)
def _maximise(oracle, w, i, theta, loss, y):
    for l in range(oracle.features.offsets[i + 1] - oracle.features.offsets[i]):
        y[l] = oracle.label


@pytest.mark.parametrize("name", ["bcfw", "cutting_plane", "fw", "ssg"])  # the others' kernels, too
def test_a_compiled_oracle_is_checked_too(name):
    features = oracle(CHAINS).features
    wrong = r"the oracle LabelingOracle is wrong at example \d: its labeling has a label that does"
    for label in (3, 255):
        with pytest.raises(RunFailedError, match=wrong):
            train(LabelingOracle(Compiled(features, label)), name)
    with pytest.raises(RunFailedError, match="its labeling scores less than the ground truth"):
        train(LabelingOracle(Compiled(features, 0)), name)
    approximate = LabelingOracle(Compiled(features, 0))
    approximate.exact = False
    assert train(approximate, name)


@pytest.mark.parametrize("name", ["fw", "bcfw", "mpbcfw", "mpbcfw_fast"])
def test_the_planes_of_the_start_are_checked_too(name):
    compiled = LabelingOracle(Compiled(oracle(CHAINS).features, 3))
    for tested in (Incorrect(plane=OUTSIDE), compiled):
        solver(Problem(tested, 0.5), name)  # which has called no oracle yet
        with pytest.raises(RunFailedError, match=r"is wrong at example \d: its"):
            solver(Problem(tested, 0.5), name, start="oracle")


@pytest.mark.parametrize("K", [2, 3])
@pytest.mark.parametrize(
    "y",
    [np.array([0, 7], np.uint8), np.zeros(1, np.uint8), np.zeros(4, np.uint8), np.zeros(2), None],
    ids=["label", "short", "long", "real", "none"],
)
def test_a_labeling_of_a_graph_is_checked(K, y):
    tested = oracle(random_graphs([2, 3], K, 2, seed=1))
    tested.labeling = lambda w, i, augmented: y
    for ask, which in ((tested.argmax, [0]), (tested.predict, [0]), (tested.risk, [])):
        with pytest.raises(RunFailedError, match="is wrong at example 0: its labeling"):
            ask(np.zeros(tested.d), *which)


@pytest.mark.parametrize("K", [2, 3])
def test_an_incorrect_graph_oracle_is_reported(K):
    tested = oracle(random_graphs([4, 3], K, 2, seed=1))
    tested.exact = True
    truth = tested.truth(0)
    wrong = (truth + 1) % K
    tested.labeling = lambda w, i, augmented: tested.truth(i) if i else wrong
    one, other = (tested.score(np.ones(tested.d), 0, y) for y in (truth, wrong))
    w = np.sign(one - other) * 100 * np.ones(tested.d)
    indices, values = tested.joint_feature(0, truth)
    w[indices] = 100 * values
    with pytest.raises(RunFailedError, match="example 0: its labeling scores less than the ground"):
        tested.risk(w)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *(("offsets", np.array(ends)) for ends in ([0, 3, 4, 9], [0, 4, 3, 8])),
        ("truth", np.full(8, 3, np.uint8)),
        ("indices", np.full(16, 8, np.uint16)),
        ("indptr", np.arange(9) * 3),
        *(("values", np.ones(3)), ("gram", np.ones(3))),
        ("gram_start", np.array([0, 9, 10, 99])),
        *(("stride", 2), ("n_labels", 5)),
    ],
)
def test_features_that_contradict_each_other_are_refused(name, value):
    features = oracle(CHAINS).features
    LabelingOracle(Compiled(features, 0))
    with pytest.raises(RunFailedError, match="arrays do not fit together"):
        LabelingOracle(Compiled(features._replace(**{name: value}), 0))


@pytest.mark.parametrize("name", ["fw", "bmrm"])
def test_the_risk_of_a_plug_in_is_checked(name):
    class Short(Plain):
        def risk(self, w, with_plane=True, terms=None):
            return Risk(1.0, np.zeros(D - 1), 1.0)

    with pytest.raises(RunFailedError, match="the oracle Short is wrong: its risk is no Risk"):
        train(Short(oracle(CHAINS)), name)


class Huge(Plain):
    """An oracle whose features are so large that the squares of planes overflow."""

    def joint_feature(self, i, y):
        indices, values = super().joint_feature(i, y)
        return indices, 1e200 * values


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("name", SOLVERS)
def test_overflow_is_never_convergence(name):
    try:
        _, reason = train(Huge(oracle(CHAINS)), name)
    except RunFailedError:
        return
    assert reason == "diverged"


def test_what_a_component_builds_is_an_oracle(monkeypatch):
    (config,) = compose_runs(["dataset=ocr", "dataset.source=synthetic", "dataset.n_samples=3"])
    empty = Plain(oracle(CHAINS))
    empty.n = 0
    for built in (None, Risk(0.0, ONE, 0.0), empty):
        monkeypatch.setattr(viterbi, "build", lambda *_, built=built: built)
        components.oracle_of_thread.cache_clear()
        with pytest.raises(RunFailedError, match=r"oracle=viterbi built .*, not an Oracle"):
            components.build_oracle(config.oracle, config.dataset)
    components.oracle_of_thread.cache_clear()
