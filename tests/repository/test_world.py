"""Other programs on the same data: the scripts, their lines, a sweep, and the page."""

import json
import runpy
from dataclasses import replace

import numpy as np
import pytest
from helpers import random_chains, random_graphs
from program import of_a_checkout
from scipy.sparse import csr_array, csr_matrix

from benchmarks import world, world_fit

pytestmark = of_a_checkout


@pytest.fixture(scope="module")
def chains(tmp_path_factory):
    """Return an archive of chains, of which training and test examples are the same."""
    data = random_chains([3, 2, 4, 5, 3], K=3, f=4, seed=1)
    file = tmp_path_factory.mktemp("chains") / "data.npz"
    assert world.write(data, data, file) == 4
    return data, file


def program(**more):
    (found,) = (each for each in world.programs("chain") if each.name.startswith("subgradient"))
    return found._replace(**more)


def test_every_program_has_a_script_and_lines_are_those_of_code(tmp_path):
    for structure, named in (("independent", 0), ("chain", 0), ("chain", 1), ("graph", 0)):
        for each in world.programs(structure, named=bool(named)):
            assert world.lines(world.SCRIPTS / f"{each.script}.py") > 2
            assert list(each.values) == sorted(
                each.values, reverse=each.option in ("tol", "gap_tol")
            )
    script = tmp_path / "script.py"
    head = '"""Head.\n\nMore.\n"""\n\nimport os  # it is\n\n\n# why\n'
    script.write_text(head + 'def f():\n    """Do."""\n    return "#"\n')
    assert world.lines(script) == 3


def test_lam_of_parts_is_that_of_chains_without_pairs():
    rng, n, length, K, f = np.random.default_rng(0), 5, 4, 3, 6
    x, y = rng.standard_normal((n * length, f)), rng.integers(K, size=n * length)
    w = rng.standard_normal((f, K))

    def hinges(w, loss):
        scores = x @ w + loss * (np.arange(K) != y[:, None])
        return scores.max(axis=1) - (x @ w)[np.arange(n * length), y]

    (lam,) = (each.fixed["lam"] for each in world.programs("chain", length) if "LIB" in each.name)
    chains = world.OUR_LAM / 2 * (w**2).sum() + hinges(w, 1 / length).sum() / n
    parts = lam / 2 * ((length * w) ** 2).sum() + hinges(length * w, 1).mean()
    assert parts == pytest.approx(chains, rel=1e-12)


@pytest.mark.parametrize("script", ["liblinear", "sgd"])
def test_parts_by_names_are_those_of_a_matrix(tmp_path, script):
    data = random_chains([3, 2, 4, 5, 3], K=3, f=4, seed=1)
    data = replace(data, x=(data.x > 0).astype(float))
    file = tmp_path / "data.npz"
    world.write(data, data, file)
    options = {"sgd": {"max_iter": 100}}.get(script, {"lam": 0.1, "tol": 1e-6})
    found = []
    for name, form in ((script, "rows"), (f"{script}_names", "names")):
        x, y = world_fit.read(file, "train", form)
        train = runpy.run_path(str(world.SCRIPTS / f"{name}.py"))["train"]
        x = csr_matrix(x) if form == "rows" else x  # SGDClassifier learns dense intercepts faster
        found.append(train(x, y, **options)(x))
    assert [str(label) for label in found[0]] == found[1].tolist()


def test_each_form_has_all_parts(chains):
    data, file = chains
    for form in ("rows", "dense"):
        x, y = world_fit.read(file, "test", form)
        assert (x == data.x).all()
        assert (y == data.y).all()
    x, y = world_fit.read(file, "train", "lists")
    assert [len(each) for each in x] == [len(each) for each in y] == [3, 2, 4, 5, 3]
    assert (world_fit.together(y) == data.y).all()
    names, labels = world_fit.read(file, "train", "names")
    assert names[0][0] == [f"f{j}" for j in np.flatnonzero(data.x[0])]
    assert labels[0] == [str(label) for label in data.y[:3].tolist()]
    graphs = random_graphs([3, 4], 2, 3, seed=3)
    graphs = replace(graphs, x=csr_array(graphs.x))
    world.write(graphs, graphs, file.with_name("graphs.npz"))
    x, _ = world_fit.read(file.with_name("graphs.npz"), "train", "arrays")
    assert [type(rows) for rows, _ in x] == [np.ndarray] * 2
    assert (np.vstack([rows for rows, _ in x]) == graphs.x.toarray()).all()
    assert [edges.tolist() for _, edges in x] == [
        graphs.edges[a:b].tolist()
        for a, b in zip(graphs.edge_offsets, graphs.edge_offsets[1:], strict=False)
    ]


def test_a_sweep_ends_with_the_first_run_that_is_equal(chains):
    _, file = chains
    rows, peak, why = world.fits(file, program(), (1, 2, 3), target=1.0, repeats=2)
    assert [row["value"] for row in rows] == [1]
    assert (why, peak > 10**7) == ("", True)
    assert world.swept(file, program(values=(1, 2)), 1.0) == (1, "")
    value, why = world.swept(file, program(values=(1, 2)), -1.0)
    assert value is None
    assert why.startswith("not equal in ")
    value, why = world.swept(file, program(script="no_such"), 1.0)
    assert value is None
    assert "no_such" in why


def test_a_program_that_is_not_installed_has_a_row(chains, monkeypatch):
    data, _ = chains
    missing = program(needs="no_such_module", name="missing")
    ours = program(name="ours", option="passes", values=(1,))
    monkeypatch.setattr(world, "programs", lambda *_: [ours, missing])
    monkeypatch.setattr(world, "split", lambda *_: (data, data))
    monkeypatch.setattr(world, "OUR_GAP", 2)
    monkeypatch.setattr(world, "EQUAL", 1.0)
    reference, swept, absent = world.measured("ocr", None)
    assert (reference["default"], swept["default"]) == (True, False)
    assert (reference["option"], swept["option"]) == ("passes=2", "passes=1")
    assert (absent["why_not"], absent["option"]) == ("not installed", "")
    json.dumps([reference, swept])


def test_the_page_is_that_of_the_table():
    text = world.PAGE.read_text(encoding="utf-8")
    assert world.page(text, world.known()) == text, "python -m benchmarks.world --page"
