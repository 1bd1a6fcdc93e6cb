"""Data that come from a file, a cache or a plug-in are checked before a kernel sees them."""

import re
from dataclasses import replace
from types import SimpleNamespace
from typing import NamedTuple

import numpy as np
import pytest
from helpers import graphs, random_chains, random_graphs, random_multiclass
from linear import random_binary, random_regression
from program import USPS, call, error_of, run_folders
from scipy.sparse import csc_array, csr_array

from ssvm_bench.base.errors import ConfigError, RunFailedError
from ssvm_bench.config import registry
from ssvm_bench.config.compose import compose_runs
from ssvm_bench.datasets import cache, reading
from ssvm_bench.datasets.vocabulary import Vocabulary
from ssvm_bench.runs import components, resolved

CHAINS = random_chains([3, 1, 4], 3, 2, seed=3)
GRAPHS = random_graphs([4, 2, 3], 3, 2, seed=1)
SPARSE = replace(CHAINS, x=csr_array(CHAINS.x))
TARGETS, LABELS = random_regression(3, 2), random_binary(3, 2)
ODD_NAMES = Vocabulary(("a\nb", "c", "d"), "npz", "chain", 2)
NARROW = replace(CHAINS, x=CHAINS.x[:, :1])
SQUARE = graphs(np.ones((4, 1)), np.zeros(4, np.uint8), 2, [([(0, 1), (1, 2)], 4)])


class Mine(NamedTuple):
    """The config of somebody else's dataset."""

    name: str = "mine"
    kind: str = "mine"


def changed(array, place, value, dtype=None):
    """Return a copy of an array with one entry changed."""
    copy = np.array(array, dtype or array.dtype)
    copy[place] = value
    return copy


def sparse_with(name, value):
    """Return sparse features of which one is in another column, or is another number."""
    x = SPARSE.x.copy()
    setattr(x, name, changed(getattr(x, name), 5, value))
    return x


def edges(*pairs):
    return {"edges": np.array(pairs, np.int32), "edge_offsets": np.array([0, len(pairs)])}


def with_edge_x(found):
    return {**edges((0, 1), (1, 2)), "edge_x": np.array(found, float)}


@pytest.mark.parametrize("dtype", ["f2", ">f8", "i8", "g", "?"])
def test_arrays_get_the_types_of_a_dataset(dtype):
    x = np.asfortranarray(CHAINS.x > 0).astype(dtype)
    for given in (x, csr_array(x) if dtype not in ("f2", ">f8") else x):
        types = {"offsets": CHAINS.offsets.astype(np.uint8), "costs": np.ones(3, int)}
        data = replace(CHAINS, x=given, **types)
        kind = np.float64 if dtype == ">f8" else np.uint8
        found = data.x if isinstance(data.x, np.ndarray) else data.x.toarray()
        assert np.array_equal(found, x)
        assert found.flags.c_contiguous
        assert (data.x.dtype, data.offsets.dtype, data.costs.dtype) == (kind, np.int64, float)


WRONG = {
    "label K": (CHAINS, {"y": changed(CHAINS.y, 4, 3)}, "part 0 of example 2 is 3, and labels"),
    "labels from 1": (CHAINS, {"y": 1 + np.arange(8) % 3}, "they seem to begin at 1"),
    "labels ±1": (CHAINS, {"y": np.array([1, -1] * 4), "n_labels": 2}, "they seem to be −1 and 1"),
    "label 300": (CHAINS, {"y": changed(CHAINS.y, 0, 300, np.int64)}, "example 0 is 300"),
    "float labels": (CHAINS, {"y": CHAINS.y.astype(float)}, "y must be an array of integers"),
    "many labels": (CHAINS, {"n_labels": 65537}, "1 to 65536 labels, and n_labels is 65537"),
    "labels missing": (CHAINS, {"y": CHAINS.y[:-1]}, "offsets end at 8, and there are 7 labels"),
    "offsets not from 0": (CHAINS, {"offsets": CHAINS.offsets + 1}, "begin with 0"),
    "empty example": (CHAINS, {"offsets": np.array([0, 3, 3, 8])}, "example 1 is empty"),
    "offsets fall": (CHAINS, {"offsets": np.array([0, 5, 4, 8])}, "example 1 ends before"),
    "rows missing": (CHAINS, {"x": CHAINS.x[:-1]}, "there are 8 parts"),
    "no matrix": (CHAINS, {"x": CHAINS.x.ravel()}, "x must be a matrix"),
    "texts": (CHAINS, {"x": CHAINS.x.astype(str)}, "x must be an array of numbers"),
    "nan": (CHAINS, {"x": changed(CHAINS.x, (4, 1), np.nan)}, "part 0 of example 2 is nan"),
    "inf": (SPARSE, {"x": sparse_with("data", np.inf)}, "part 2 of example 0 is inf, not finite"),
    "small": (CHAINS, {"x": changed(CHAINS.x, (4, 1), np.inf, "f4")}, "part 0 of example 2 is inf"),
    "inf costs": (CHAINS, {"costs": np.array([1, np.inf, 1], np.float32)}, "example 1 is inf, and"),
    "huge": (CHAINS, {"x": CHAINS.x * 1e200}, "scale the features"),
    "column d": (SPARSE, {"x": sparse_with("indices", 2)}, "part 2 of example 0 has feature 2"),
    "column −1": (SPARSE, {"x": sparse_with("indices", -1)}, "part 2 of example 0 has feature -1"),
    "edge out": (SQUARE, edges((0, 1), (2, 4)), "edge (2, 4) of example 0 leaves its 4 parts"),
    "edge −1": (SQUARE, edges((-1, 1)), "edge (-1, 1) of example 0 leaves"),
    "loop": (SQUARE, edges((2, 2)), "edge (2, 2) of example 0 is a loop"),
    "order": (SQUARE, edges((2, 1)), "must name the lower part first"),
    "twice": (SQUARE, edges((0, 1), (1, 2), (0, 1)), "edge (0, 1) of example 0 is there twice"),
    "no edges": (GRAPHS, {"edges": None}, "a graph needs edges"),
    "edge offsets": (GRAPHS, {"edge_offsets": GRAPHS.edge_offsets[:-1]}, "edge_offsets end at"),
    "negative edge_x": (SQUARE, with_edge_x([[1, 2], [0, -1]]), "edge_x of edge 1 is -1, and must"),
    "edge_x nan": (SQUARE, with_edge_x([[1, np.nan], [0, 1]]), "edge_x of edge 0 is nan, and must"),
    "edge_x short": (SQUARE, with_edge_x([[1, 2]]), "edge_x must be an array of numbers of shap"),
    "edge_x empty": (SQUARE, with_edge_x(np.ones((2, 0))), "and no features: leave it out"),
    "edge_x of no edges": (CHAINS, {"edge_x": np.ones((8, 1))}, "and there are no edges"),
    "edge_x held out": (
        *(SQUARE, {**with_edge_x([[1, 2], [3, 4]]), "held_out": {"test": SQUARE}}),
        "edge_x of the test examples has 0 features an edge, that of the examples to train on 2",
    ),
    "masked": (CHAINS, {"x": np.ma.masked_equal(CHAINS.x, 0)}, "of shape (…, …), got MaskedArray"),
    "csc": (CHAINS, {"x": csc_array(CHAINS.x)}, "must be an ndarray or a csr_array, got csc_array"),
    "long": (CHAINS, {"x": np.full((8, 1), 2**53 + 1)}, "float64 does not hold this number"),
    "rows of examples": (CHAINS, {"x": CHAINS.x[:3]}, "repeat its row, as np.repeat(x, np.diff("),
    "time": (CHAINS, {"offsets": CHAINS.offsets.astype("m8[s]")}, "offsets must be an array of in"),
    "names": (CHAINS, {"vocabulary": ODD_NAMES}, r"'a\nb' in the labels is no name"),
    "folds": (CHAINS, {"fold": np.zeros(2)}, "of shape (3,), got float64 of shape (2,)"),
    "other features": (CHAINS, {"held_out": {"test": NARROW}}, "test examples have 3 labels and 1"),
}


WRONG_EXAMPLES = (
    (TARGETS, {"y": np.array(["1", "2", "3"])}, "y must be an array of numbers"),
    (TARGETS, {"y": np.array([1.0, np.nan, 2.0])}, "y of example 1 is nan"),
    (TARGETS, {"y": np.array([1.0, 2.0, np.inf])}, "y of example 2 is inf"),
    (TARGETS, {"y": TARGETS.y[:2]}, "offsets end at 3, and there are 2 targets"),
    (TARGETS, {"offsets": np.array([0, 1, 3])}, "regression have one part each"),
    (TARGETS, {"n_labels": 2}, "a regression has no labels, and n_labels is 2"),
    (LABELS, {"costs": np.ones(2)}, "costs must be an array of numbers of shape (3,)"),
    (LABELS, {"costs": np.array([1.0, 0.0, 1.0])}, "costs of example 1 is 0, and must be abo"),
    (LABELS, {"costs": np.array([1.0, -1.0, 1.0])}, "costs of example 1 is -1"),
    (LABELS, {"costs": np.array([1.0, np.nan, 1.0])}, "costs of example 1 is nan"),
    (LABELS, {"costs": [1.0, 1.0, 1.0]}, "costs must be an array of numbers"),
    (LABELS, {"margins": np.array([1.0, 1.0, -0.5])}, "margins of example 2 is -0.5"),
    (LABELS, {"margins": np.array([1.0, 1.0, np.inf])}, "margins of example 2 is inf"),
    (LABELS, {"held_out": {"test": random_binary(2, 3)}}, "the test examples have 2 labels"),
)


@pytest.mark.parametrize(
    ("data", "changes", "message"),
    [*WRONG.values(), *WRONG_EXAMPLES],
    ids=[*WRONG, *(message for *_, message in WRONG_EXAMPLES)],
)
def test_what_is_wrong_is_told_with_its_place(data, changes, message):
    with pytest.raises(RunFailedError) as failure:
        replace(data, **changes)
    assert message in str(failure.value)
    assert str(failure.value).startswith("The data of tiny cannot be used: ")


def test_what_a_loader_returns_is_a_dataset(monkeypatch):
    loader = SimpleNamespace(load=lambda config: {"x": CHAINS.x})
    monkeypatch.setattr(registry, "module", lambda *_: loader)
    with pytest.raises(RunFailedError, match=r"loader of dataset=mine returned dict, not a Data"):
        components.load_dataset(Mine())


def test_a_prepared_file_with_other_labels_reaches_no_run(tmp_path, monkeypatch):
    """Labels that no raw file could give: in a file saved by other hands, and in a forged one."""
    monkeypatch.setattr(reading, "user_folder", lambda: tmp_path / "user")
    words = ("solver=bcfw", "budget.max_iterations=1", f"results_dir={tmp_path}", "force=true")

    def made():
        components.load_dataset.cache_clear()
        return call("run", *USPS, *words)

    assert made().exit_code == 0
    (file,) = (tmp_path / "user").rglob("*.npz")
    arrays = dict(np.load(file))
    arrays["y"][:] = 200
    np.savez(file, **arrays)
    assert made().exit_code == 0  # made again
    forged = {**cache.stored(file, cache.stored_key(file)), "y": arrays["y"]}
    cache._keep(file, cache.stored_key(file), forged)
    message = error_of(made(), 1)
    assert re.search("the label of part 0 of example .* is 200, and labels are 0 to 9", message)
    assert run_folders(tmp_path) == ["seed=0"]
    components.load_dataset.cache_clear()


def test_a_lambda_that_overflows_is_refused(tmp_path):
    message = error_of(call("run", *USPS, "lam=1e-300", f"results_dir={tmp_path}"), 2)
    assert "lam=1e-300 is too small for features of up to" in message
    assert not run_folders(tmp_path)


def test_weights_of_classes_count_where_numbers_could_overflow(tmp_path):
    def check(*options):
        (config,) = compose_runs(["solver=bcfw", "dataset=usps", *options])
        resolved.check_data(config, data)

    data = replace(random_multiclass(6, 10, 2), y=np.array([0, 0, 0, 0, 3, 7]))

    check("lam=1e-250", "oracle.class_weight={3: 1e10}")
    with pytest.raises(ConfigError, match=r"lam=1e-250 is too small for features of up to"):
        check("lam=1e-250", "oracle.class_weight={3: 1e50}")
    check("lam=1e-250", "oracle.class_weight={4: 1e50}")  # of which there is no example


def test_features_may_all_be_zero():
    (config,) = compose_runs(["solver=bcfw", "dataset=ocr"])
    resolved.check_data(config, replace(SPARSE, x=csr_array((8, 2))))
