"""What a small file or option makes large is refused before it is allocated, in one sentence."""

import ctypes
import resource
import tracemalloc
from pathlib import Path

import numpy as np
import pytest
from program import call, error_of

from ssvm_bench.base import memory

FREE = 1 << 30
MOST = 1 << 28
"""Bytes that may be allocated beside, before the refusal."""


@pytest.fixture
def refused(tmp_path, monkeypatch):
    """Return a function that runs a dataset in a file with some options, and checks the refusal."""

    def refuse(message, *options, data=None):
        words = [f"results_dir={tmp_path / 'r'}", "solver=bcfw", "quiet=true", *options]
        if data is not None:
            np.savez_compressed(tmp_path / "own.npz", **data)
            assert (tmp_path / "own.npz").stat().st_size < 1 << 20
            words += ["dataset=file", f"dataset.path={tmp_path / 'own.npz'}"]
        monkeypatch.setattr(memory, "available", lambda: FREE)
        tracemalloc.start()
        try:
            line = error_of(call("run", *words), 1)
        finally:
            peak = tracemalloc.get_traced_memory()[1]
            tracemalloc.stop()
        assert message in line
        assert "would take about" in line
        assert "1074 MB are free" in line
        assert peak < MOST

    return refuse


def chain(L, K=2, structure="chain"):
    """Return one example of L parts, which have labels 0, …, K − 1 (the last is there)."""
    y = np.arange(L) % K
    y[-1] = K - 1
    x = np.arange(2 * L).reshape(L, 2) % 5
    found = {"x": x, "y": y, "offsets": np.array([0, L]), "structure": np.array(structure)}
    if structure == "graph":
        found |= {"edges": np.array([[0, 1]]), "edge_offsets": np.array([0, 1])}
    return found


def classes(K):
    y = np.arange(K)
    return {"x": y[:, None] % 7, "y": y, "structure": np.array("independent")}


@pytest.mark.parametrize("kernel", ["rbf", "poly"])
def test_a_kernel_between_all_parts_of_a_long_chain(refused, kernel):
    options = ("oracle.gamma=1", f"oracle.kernel={kernel}")
    refused("of an example, of up to 20000 parts", *options, data=chain(20_000))


@pytest.mark.parametrize(
    ("oracle", "data"),
    [
        ("multiclass", classes(60_000)),
        ("viterbi", chain(60_000, 60_000)),
        ("alpha_expansion", chain(60_000, 60_000, "graph")),
        ("latent_chain", chain(60_000, 60_000)),
    ],
)
def test_a_loss_of_all_pairs_of_labels(refused, oracle, data):
    options = (f"oracle={oracle}", "oracle.loss=absolute")
    refused("The losses of all pairs of 60000 labels", *options, data=data)


def test_the_losses_of_hidden_states(refused):
    options = ("oracle=latent_chain", "oracle.states=30", "oracle.start=random")
    refused("of all pairs of 30000 states", *options, data=chain(3000, 1000))


@pytest.mark.parametrize("structure", ["chain", "graph"])
def test_scores_of_many_labels_of_a_long_example(refused, structure):
    refused("Scores of 30000 labels of up to 30000 parts", data=chain(30_000, 30_000, structure))


@pytest.mark.parametrize("structure", ["chain", "independent"])
def test_weights_of_all_pairs_of_labels(refused, structure):
    data = chain(20_000, 20_000, structure) | {"offsets": np.arange(0, 20_001, 10)}
    if structure == "independent":
        data = {"x": np.eye(100)[np.arange(40_000) % 100], "y": np.arange(40_000)}
        data["structure"] = np.array(structure)
        data["x"] = np.tile(data["x"], 20).astype(np.uint8)
    refused("A run with d = ", data=data)


def test_a_file_of_losses(refused, tmp_path):
    with (tmp_path / "loss").open("wb") as file:
        file.truncate(200 << 20)
    option = f"oracle.loss={tmp_path / 'loss'}"
    refused("oracle.loss=", option, "dataset=usps", "dataset.source=synthetic")


@pytest.mark.parametrize(
    "option",
    ["positives=100000000", "held_out=100000000", "negatives=1000000000000", "canvas=99999"],
)
def test_canvases(refused, option):
    options = ("dataset=latent", "dataset.source=synthetic", f"dataset.{option}")
    refused(" canvases of ", *options)


def test_cliques_of_points(refused):
    options = ("dataset=moons", "dataset.cliques=200000000", "solver=dcadmm")
    refused("200000000 cliques of 25 points", *options)


@pytest.mark.skipif(not hasattr(ctypes.CDLL(None), "malloc_trim"), reason="not glibc")
def test_what_was_freed_goes_back_to_the_system():
    def resident():
        return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()

    arrays = [np.ones(1 << 13) for _ in range(1000)]  # of 64 KB: too small for mappings
    last = arrays.pop()  # above the holes
    del arrays
    before = resident()
    memory.trim(1000)
    assert before - resident() < 50 << 16  # no long vector follows
    memory.trim(1 << 20)
    assert before - resident() > 500 << 16
    assert last.all()
