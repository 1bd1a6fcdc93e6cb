"""Weights of classes in the loss of structures: against all labelings, written out."""

import numpy as np
import pytest
from helpers import COST_CALL, COST_PLANE, Table, random_chains, random_graphs

from ssvm_bench.base.errors import ConfigError
from ssvm_bench.config.compose import compose_runs
from ssvm_bench.config.typed import Table as Weights
from ssvm_bench.oracles import alpha_expansion, mincut, viterbi

COSTS = {"name": "tiny", "kind": "tiny", "cost_call": COST_CALL, "cost_plane": COST_PLANE}
ALPHA = {"partial_optimality": True, "warm_start": False}

CASES = {
    "chain": (viterbi, random_chains([3, 1, 4], 3, 2, seed=3), {}),
    "two labels": (mincut, random_graphs([4, 2, 3], 2, 2, seed=1), {}),
    "graph": (alpha_expansion, random_graphs([4, 2, 3], 3, 2, seed=1), ALPHA),
}


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("option", ["balanced", Weights({"1": 5.0})])
def test_a_wrong_label_counts_what_its_class_does(case, option):
    module, data, options = CASES[case]
    made = module.build(module.Config(**COSTS, **options, class_weight=option), data)
    plain = module.build(module.Config(**COSTS, **options), data)
    of_class = np.where(np.arange(data.n_labels) == 1, 5.0, 1.0)
    if option == "balanced":
        counts = np.bincount(data.y, minlength=data.n_labels)
        of_class = data.y.size / (np.count_nonzero(counts) * np.maximum(counts, 1))
    table, rng = Table(data), np.random.default_rng(0)
    for i in range(data.n):
        truth = data.y[data.offsets[i] : data.offsets[i + 1]]
        losses = (of_class[truth] * (table.labelings[i] != truth)).mean(axis=1)
        for scale in (0.0, 1.0, 3.0):
            w = scale * rng.normal(size=made.d)
            values = table.features[i] @ w + table.fixed[i] + losses
            plane, value = made.best_plane(w, i)
            best = (values - values[table.truth[i]]).max() / data.n
            if made.exact:
                assert value == pytest.approx(best, abs=1e-12)
            assert 0 <= value <= best + 1e-12
            row = table.row(i, made.argmax(w, i))
            assert made.loss(i, made.argmax(w, i)) == pytest.approx(losses[row], abs=1e-15)
            assert plane.offset == pytest.approx(
                (losses[row] + table.fixed[i][row] - table.fixed[i][table.truth[i]]) / data.n
            )
            assert made.mean_loss(w) == plain.mean_loss(w)


def test_weights_are_given_by_name_and_leave_other_hashes_alone():
    words = ["dataset=conll2000", "dataset.source=synthetic"]
    (run,) = compose_runs([*words, "oracle.class_weight={B-NP: 2}"])
    (plain,) = compose_runs(words)
    assert run.oracle.class_weight == {"B-NP": 2.0}
    assert run.hash() != plain.hash()
    data = random_chains([2], 2, 2)
    config = viterbi.Config(**COSTS, class_weight=Weights({"B-NP": 2.0}))
    with pytest.raises(ConfigError, match=r"a weight for B-NP, and the labels of tiny are 0, 1\."):
        config.part_weights(data)
