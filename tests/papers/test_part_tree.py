"""Trees of parts: the oracle against all placements, and the simulated figures."""

import itertools
from dataclasses import replace

import numpy as np
import pytest

from ssvm_bench.base.errors import ConfigError, RunFailedError
from ssvm_bench.datasets import export
from ssvm_bench.papers.dual_coordinate.datasets import stick_figures
from ssvm_bench.papers.dual_coordinate.datasets.stick_figures import Figures, Tree
from ssvm_bench.papers.dual_coordinate.oracles import part_tree

TREE = Tree((-1, 0, 1), ((0, 0), (0, 1), (1, -1)), reach=1, cells=4, window=2, features=2)
JOINTS = np.array([[3, 4, 6], [0, 0, 0], [1, 2, 4], [4, 4, 7]])


def figures(**changes):
    """Return images of 4 × 4 cells, with three parts at 3 × 3 positions."""
    x = np.random.default_rng(3).integers(0, 256, (4, 32)).astype(np.uint8)
    about = {"source": "drawn", "joints": JOINTS, "tree": TREE, **changes}
    y = np.array([1, 0, 1, 0], np.uint8)
    return Figures("small", x, y, np.arange(5), 2, stick_figures.FIGURES, **about)


def placements():
    """Yield all placements within the reach, in lexicographic order."""
    for joints in itertools.product(range(TREE.side**2), repeat=3):
        if np.abs(TREE.displacements(np.array([joints]))).max() <= TREE.reach:
            yield np.array(joints)


ALL = [*placements()]


def built(**changes):
    return part_tree.build(part_tree.Config("part_tree", "part_tree", bias=0.5), figures(**changes))


@pytest.mark.parametrize("scale", [0.0, 0.3, 3.0])
def test_the_oracle_finds_the_best_of_all_placements(scale):
    oracle = built()
    w = scale * np.random.default_rng(5).normal(size=oracle.d)
    none = np.zeros(3, np.uint16)
    for i in range(oracle.n):
        scores = [oracle.score(w, i, joints + 1) for joints in ALL]
        best = ALL[int(np.argmax(scores))] + 1  # the first of several
        assert oracle.predict(w, i).tolist() == (best if max(scores) > 0 else none).tolist()
        if i in (1, 3):  # no figure: every placement is a false alarm
            expected = best if 1 + max(scores) > 0 else none
        else:  # its places are known
            expected = oracle.truth(i) if oracle.score(w, i, oracle.truth(i)) > 1 else none
        assert oracle.argmax(w, i).tolist() == expected.tolist()


def test_planes_and_losses_follow_their_definitions():
    oracle, y = built(), np.array([1, 3, 5], np.uint16)
    indices, values = oracle.joint_feature(1, y)
    dense = np.zeros(oracle.d)
    dense[indices] = values
    cells = oracle.images[1].reshape(4, 4, 2) / 255
    windows = [cells[r : r + 2, c : c + 2].ravel() for r, c in ((0, 0), (0, 2), (1, 1))]
    assert dense[:24] == pytest.approx(np.concatenate(windows))
    assert dense[24:].tolist() == [0, 1, 0, 1, 0, 0, 0, 0, 0.5]  # one cell right of the anchor
    assert [oracle.loss(i, y) for i in range(4)] == [0, 1, 0, 1]
    assert [oracle.loss(i, 0 * y) for i in range(4)] == [1, 0, 1, 0]
    assert np.linalg.norm(dense) <= oracle.radius()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"joints": JOINTS + 9}, "joints"),
        ({"joints": JOINTS[:3]}, "joints"),
        ({"joints": np.array([[3, 4, 8], *JOINTS[1:]])}, "2 cells from its anchor"),
        ({"tree": TREE._replace(cells=5)}, "a tree's cells"),
        ({"tree": TREE._replace(parents=(-1, 2, 0))}, "before its parent"),
    ],
    ids=["outside", "few", "far", "size", "order"],
)
def test_figures_that_the_oracle_cannot_search_are_refused(changes, message):
    with pytest.raises(RunFailedError, match=message):
        figures(**changes)


def test_examples_keep_their_places():
    some = figures().take(np.array([2, 0]))
    assert some.joints.tolist() == JOINTS[[2, 0]].tolist()
    assert some.fingerprint != figures().fingerprint


def test_figures_are_not_exported(tmp_path):
    with pytest.raises(ConfigError, match="do not record joints, tree"):
        export.write(figures(), tmp_path / "a.parquet", export.Export())


def test_simulated_figures_are_drawn_by_their_seed():
    config = stick_figures.Config(
        "stick_figures", "stick_figures", positives=6, negatives=4, held_out=5
    )
    made, again = stick_figures.load(config), stick_figures.load(config)
    assert (made.source, made.n, made.y.sum()) == ("drawn", 10, 6)
    assert made.held_out["test"].y.sum() == 3
    assert made.fingerprint == again.fingerprint
    assert made.fingerprint != stick_figures.load(replace(config, draw=1)).fingerprint
    heads = made.tree.displacements(made.joints)[:, 0] + made.tree.anchors[1]
    assert (heads[made.y > 0, 0] < 0).all()  # above the torso
