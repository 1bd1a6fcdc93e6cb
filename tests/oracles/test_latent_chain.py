"""Chains with hidden states, against all labelings of states; and their rounds."""

from dataclasses import replace

import numpy as np
import pytest
from helpers import Table, random_chains
from program import call, error_of, run_here
from test_latent import check_rounds

from ssvm_bench import StructuredSVM
from ssvm_bench.base.state import StateError
from ssvm_bench.config.validation import NamedNumbers as Weights
from ssvm_bench.oracles import latent_chain, viterbi
from ssvm_bench.results.trace import read_trace

# Sums of tens of numbers of order 1, each rounded to 2⁻⁵³.
CLOSE = 1e-12
S = 2
DATA = random_chains([3, 1, 4, 2], 2, 2, seed=3)
LOSSES = {"loss": ((0.0, 0.5), (3.0, 0.0)), "class_weight": Weights({"1": 2.0})}
CASES = {"clusters": {}, "random": {"start": "random"}}
CASES["losses and weights"] = {"start": "random", **LOSSES}


def built(data=DATA, states=S, **options):
    config = latent_chain.Config("latent_chain", "latent_chain", states=states, **options)
    return latent_chain.build(config, data)


def of_states(states):
    """Return all labelings of states, of which these are those of the examples."""
    return Table(replace(DATA, y=states.astype(np.uint8), n_labels=S * DATA.n_labels))


@pytest.mark.parametrize("case", CASES)
def test_inference_and_imputation_are_those_of_all_labelings(case):
    made = built(**CASES[case])
    matrix = np.array(CASES[case].get("loss", ((0, 1), (1, 0))))
    weight = np.array([1.0, 2.0 if "class_weight" in CASES[case] else 1.0])
    for seed in range(5):
        states = made.latent() - 1
        np.testing.assert_array_equal(states // S, DATA.y)
        table = of_states(states)
        w = np.random.default_rng(seed).normal(size=made.d)
        better, changes = made.update_latent(w)
        before = after = mean = 0.0
        imputed, predicted = [], []
        for i, labelings in enumerate(table.labelings):
            y = DATA.y[DATA.offsets[i] : DATA.offsets[i + 1]]
            scores, labels = table.features[i] @ w, labelings // S
            losses = (weight[y] * matrix[y, labels]).mean(axis=1)
            agree = (labels == y).all(axis=1)
            highest, best = (scores + losses).max(), scores[agree].max()
            term = (highest - scores[table.truth[i]]) / DATA.n
            assert made.best_plane(w, i)[1] == pytest.approx(term, abs=CLOSE)
            row = table.row(i, made.argmax(w, i))
            assert (scores + losses)[row] == pytest.approx(highest, abs=CLOSE)
            assert made.loss(i, labelings[row]) == pytest.approx(losses[row], abs=CLOSE)
            before, after = before + term, after + (highest - best) / DATA.n
            imputed += [*labelings[agree][scores[agree].argmax()]]
            predicted += [*labels[scores.argmax()]]
            mean += matrix[y, labels[scores.argmax()]].mean() / DATA.n
        assert (better.latent() - 1).tolist() == imputed
        assert changes == np.count_nonzero(better.latent() != made.latent())
        assert made.risk(w).value == pytest.approx(before, abs=CLOSE)
        assert better.risk(w).value == pytest.approx(after, abs=CLOSE)
        assert after <= before + CLOSE
        assert better.update_latent(w)[1] == 0
        assert made.predictions(w).tolist() == predicted
        assert made.mean_loss(w) == better.mean_loss(w) == pytest.approx(mean, abs=CLOSE)
        made = better


def test_with_one_state_a_label_it_is_viterbi():
    one, plain = built(states=1), viterbi.build(viterbi.Config("viterbi", "viterbi"), DATA)
    w = np.random.default_rng(0).normal(size=plain.d)
    assert one.d == plain.d
    assert one.risk(w).value == pytest.approx(plain.risk(w).value, abs=CLOSE)
    assert one.mean_loss(w) == plain.mean_loss(w)
    assert one.update_latent(w)[1] == 0


def test_equal_states_stay_and_those_of_other_labels_are_refused():
    made = built(start="random")
    assert made.update_latent(np.zeros(made.d))[1] == 0
    with pytest.raises(StateError, match="has states of other labels"):
        made.with_latent(1 + (made.latent() - 1 + S) % (2 * S))


def test_the_starts():
    one, same = built(start="random"), built(start="random")
    assert one.latent().tolist() == same.latent().tolist()
    assert one.latent().tolist() != built(start="random", seed=1).latent().tolist()
    # two groups of a label, far from each other
    far = replace(DATA, x=DATA.x + 100.0 * (np.arange(DATA.y.size) % 2)[:, None])
    h = (built(far).latent() - 1) % S
    for label in (0, 1):
        groups = {(p % 2, h[p]) for p in np.flatnonzero(DATA.y == label)}
        assert len(groups) == len({of for of, _ in groups})
    few = built(DATA.take(np.array([1])), states=3)  # more states than parts
    assert few.latent().size == 1


@pytest.fixture
def mine(tmp_path):
    """Return options of a run on chains in which a label is told by its neighbours' words."""
    rng = np.random.default_rng(0)
    words = "".join(
        "".join(f"{'abcd'[s ^ (rng.random() < 0.2)]} {'XY'[s // 2]}\n" for s in states) + "\n"
        for states in (np.cumsum(rng.random(6) < 0.8) + rng.integers(4, size=(20, 1))) % 4
    )
    (tmp_path / "train.txt").write_text(words)
    data = "dataset=file", f"dataset.path={tmp_path}/train.txt", "oracle=latent_chain"
    return (*data, "oracle.start=random", "clock=work", f"results_dir={tmp_path}")


@pytest.mark.parametrize("name", ["mpbcfw_fast", "dcd", "bmrm", "ssg", "eg"])
def test_the_objective_never_rises_from_round_to_round(mine, name, tmp_path):
    words = f"solver={name}", "solver.latent_rounds=3", "budget.max_iterations=20", "lam=0.3"
    trace = read_trace(run_here(tmp_path, *words, data=mine).folder)
    frame = trace.frame if name != "ssg" else trace.frame.assign(dual=0.0)  # it has none
    rounds = check_rounds(frame)
    assert len(rounds) > 1
    # an imputation is a call for each example
    calls = rounds[1]["oracle_calls"].iloc[0] - rounds[0]["oracle_calls"].iloc[-1]
    assert calls == 20


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("oracle.states=40000",), "for each of the 2 labels of file are more than 65536 states"),
        (("oracle.states=0",), "oracle.states must be ≥ 1"),
        (("oracle.start=ink",), "oracle.start=ink is not known"),
        (("oracle=viterbi", "solver.latent_rounds=2"), "are for oracles with latent values"),
    ],
)
def test_bad_calls_are_one_message(mine, words, message):
    start = tuple(word for word in mine if word != "oracle.start=random")
    assert message in error_of(call("run", *start, *words), 2)


def test_hidden_states_separate_what_labels_alone_do_not():
    corners, rng = np.array([[1, 1], [-1, -1], [1, -1], [-1, 1]]), np.random.default_rng(0)

    def chain():
        states = (np.cumsum(rng.random(10) < 0.8) + rng.integers(4)) % 4
        return corners[states] + 0.5 * rng.normal(size=(10, 2)), np.array(["a", "b"])[states // 2]

    X, y = zip(*[chain() for _ in range(60)], strict=True)
    alone = StructuredSVM("chain", lam="10/n").fit(X[:30], y[:30])
    options = {"solver.latent_rounds": 5}
    hidden = StructuredSVM("chain", oracle="latent_chain", lam="10/n", options=options)
    hidden.fit(X[:30], y[:30])
    assert alone.score(X[30:], y[30:]) < 0.7
    assert hidden.score(X[30:], y[30:]) > 0.9
    assert set(np.concatenate(hidden.predict(X[30:]))) == {"a", "b"}
    wrong = [np.mean(a != b) for a, b in zip(y[30:], hidden.predict(X[30:]), strict=True)]
    assert hidden.mean_loss(X[30:], y[30:]) == pytest.approx(np.mean(wrong))
    with pytest.raises(AttributeError):
        _ = hidden.coef_
