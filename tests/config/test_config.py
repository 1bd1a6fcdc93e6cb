"""Overrides into run configs: what is accepted, what is refused, and in which words."""

import re
from dataclasses import dataclass, fields, replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ssvm_bench.base.errors import ConfigError
from ssvm_bench.config import catalog, registry, validation
from ssvm_bench.config.compose import compose_runs
from ssvm_bench.config.schema import Budget


def one(*overrides, **options):
    (config,) = compose_runs(overrides, **options)
    return config


def message(*overrides, **options):
    with pytest.raises(ConfigError) as caught:
        compose_runs(overrides, **options)
    text = str(caught.value)
    assert not any(word in text.lower() for word in ("\n", "append", "hydra", "omegaconf"))
    return text


def test_defaults_are_those_of_the_contract():
    config = one()
    names = (config.dataset.name, config.oracle.name, config.solver.name)
    assert names == ("ocr", "viterbi", "mpbcfw")
    assert (config.solver.N, config.solver.M, config.solver.T) == (1000, 1000, 10)
    assert config.resolved() == {
        **{group: config.resolved()[group] for group in catalog.COMPONENTS},
        "budget": {"max_iterations": 50, "max_seconds": None, "gap_tol": 0.0},
        "eval": {"every": 1, "growth": 1.0, "after_exact_pass": False, "bound": False},
        "seed": 0,
        "lam": None,
        "path": [],
        "prior": {"mean": 0.0, "variance": 1.0},
        "checkpoint": {"every": 60.0, "keep": False},
        "parallel": {"threads": None, "workers": 1, "batch": 1, "address": None},
        "clock": "wall",
        "results_dir": "results",
        "force": False,
        "quiet": False,
    }


def test_a_dataset_brings_its_oracle_and_an_explicit_one_wins():
    usps, viterbi = "dataset=usps", "oracle=viterbi"
    assert one(usps).oracle.name == one("oracle=multiclass").oracle.name == "multiclass"
    assert one(usps, viterbi).oracle.name == one(viterbi, usps).oracle.name == "viterbi"


def test_bcfw_is_mpbcfw_without_planes():
    bcfw, mpbcfw = one("solver=bcfw").solver, one("solver=mpbcfw").solver
    assert (bcfw.N, bcfw.M, bcfw.average) == (0, 0, False)
    same = {field.name for field in fields(bcfw)} - {"name", "N", "M"}
    assert all(getattr(bcfw, name) == getattr(mpbcfw, name) for name in same)
    assert one("solver=bcfw_avg").solver.average
    assert one("solver=mpbcfw_avg").solver.average


@pytest.mark.parametrize("group", catalog.COMPONENTS)
def test_a_yaml_says_what_differs_from_the_defaults_of_its_component(group):
    files = catalog.entries(group)
    for name, file in files.items():
        values = catalog.read_yaml(file) or {}
        options = catalog.read(group, name, files).options
        component = registry.module(group, options["kind"]).Config
        default = {each.name: each.default for each in fields(component)}
        for base in values.get("defaults", ()):
            default |= catalog.read(group, base, files).options
        further = {"oracle"} if group == "dataset" else set()  # of the run, not of the component
        for option in values.keys() - {"defaults", "kind", "budget"} - further:
            value = validation.convert(validation.hints(component)[option], values[option], option)
            assert value != default[option]
        assert values.get("kind") != name
        assert catalog.description(file)


def test_a_solver_or_a_dataset_brings_the_budget_it_needs(tmp_path):
    most = one("solver=dcadmm", "dataset=moons").budget.max_iterations
    assert most > one("solver=kernel_kmeans", "dataset=moons").budget.max_iterations == 50
    words = "solver=dcadmm", "dataset=moons"
    assert one(*words, "budget.max_iterations=7").budget == Budget(max_iterations=7)
    assert one(*words, "budget=default").budget == Budget()
    (tmp_path / "dataset").mkdir()
    file = tmp_path / "dataset" / "mine.yaml"
    brought = "budget: {max_iterations: 9, max_seconds: 3}\n"
    file.write_text(f"defaults: [ssl_bci]\nkind: ssl_bci\n{brought}")
    run = one("solver=dcadmm", "dataset=mine", config_dirs=[tmp_path])
    assert run.budget == Budget(max_iterations=most, max_seconds=3.0)
    file.write_text("kind: ssl_bci\nbudget: 9\n")
    assert "must be a mapping" in message("dataset=mine", config_dirs=[tmp_path])


def test_values_are_typed():
    config = one("lam=1", "solver.N=1e3", "budget.max_seconds=5", "results_dir=~/x", "seed=3.0")
    assert (type(config.lam), config.lam) == (float, 1.0)
    assert (type(config.solver.N), config.solver.N) == (int, 1000)
    assert type(config.budget.max_seconds) is float
    assert (type(config.seed), config.seed) == (int, 3)
    assert config.results_dir == Path.home() / "x"


def test_lambda_in_units_of_one_over_n():
    config = one("lam=1000/n", "path=[1e5/n,'10000.0/n']")
    assert (config.lam, config.path) == ("1000/n", ("100000/n", "10000/n"))
    assert config.lam_of(50) == 20.0
    assert config.resolved()["path"] == ["100000/n", "10000/n"]
    assert [stage.lam_of(50) for stage in config.path_steps()] == [2000.0, 200.0, 20.0]
    assert [stage.path for stage in config.path_steps()] == [(), ("100000/n",), config.path]
    assert one("lam=0.25").lam_of(50) == 0.25
    assert one().lam_of(7) == one("lam=1/n").lam_of(7) == 1 / 7
    runs = compose_runs(["lam=1/n,0.5/n,null"], multirun=True)
    assert [run.lam for run in runs] == [None, "0.5/n", None]


@pytest.mark.parametrize("text", ["0/n", "-1/n", "n/n", "/n", "1e400/n", "1-1/n", "1 /n", "1/m"])
def test_what_is_not_one_over_n_is_refused(text):
    reason = f"must be a number or K/n (as 10/n), K a positive number, got {text!r}"
    assert f"lam {reason}" in message(f"lam={text}")
    assert f"path[1] {reason}" in message(f"path=[10/n,'{text}']")


def test_a_path_falls_whatever_its_units():
    assert "got 10/n, 100/n" in message("path=[10/n,100/n]")
    assert "got 0.1, 10/n, 0.2" in message("path=[0.1,10/n,0.2]")
    for path in ("[0.1,0.1]", "[0]", "[-1]"):
        assert "path" in message(f"path={path}")
    mixed = one("path=[0.1,10/n]")  # that depends on n
    assert mixed.lam_of(1000) == 0.001
    with pytest.raises(ConfigError, match=r"got 0.1, 10/n, 1/n with n = 50"):
        mixed.lam_of(50)


def test_of_two_values_the_last_one_counts():
    assert one("seed=1", "solver=fw", "seed=2", "solver=bcfw").seed == 2
    assert one("solver=fw", "solver.T=3", "solver=bcfw").solver.T == 3


@pytest.mark.parametrize(
    ("override", "value"),
    [
        ("solver.step=2n/(k+2n)", "2n/(k+2n)"),
        ("solver.step='2n/(k+2n)'", "2n/(k+2n)"),
        ("results_dir=it's (1)", Path("it's (1)")),
        ("results_dir='a b=c,d'", Path("a b=c,d")),
    ],
)
def test_values_with_symbols(override, value):
    config = one("solver=bcfw", override)
    assert value in (config.solver.step, config.results_dir)


def test_a_sweep_makes_every_combination_in_order():
    runs = compose_runs(["seed=range(2)", "solver=bcfw,mpbcfw", "solver.T=5"], multirun=True)
    found = [(run.seed, run.solver.name, run.solver.T) for run in runs]
    assert found == [(0, "bcfw", 5), (0, "mpbcfw", 5), (1, "bcfw", 5), (1, "mpbcfw", 5)]
    runs = compose_runs(["solver=glob(*bcfw)", "lam=1e-3,null"], multirun=True)
    found = [(run.solver.name, run.lam) for run in runs]
    assert found == [("bcfw", 1e-3), ("bcfw", None), ("mpbcfw", 1e-3), ("mpbcfw", None)]

    assert "solver.T must be ≥ 1, got 0" in message("solver.T=1,0", multirun=True)
    assert "Did you mean mpbcfw?" in message("solver=bcfw,mpbcwf", multirun=True)


ADDED, REMOVED = "an option cannot be added, only set", "cannot be removed"
MISTAKES = [
    ("seed=range(3)", "Add -m"),
    ("solver=bcfw,mpbcfw", "Add -m"),
    # choices
    ("solver=mpbcwf", "solver=mpbcwf is not known. Did you mean mpbcfw?"),
    ("dataset=orc", "Did you mean ocr? Valid: abalone, adult, conll2000, davis_bmx_trees, "),
    ("oracle=vitrebi", "Did you mean viterbi?"),
    ("solver=../budget/default", "is not known"),
    ("solver=null", "solver=None is not known"),
    ("solver=[bcfw]", "is not known"),
    ("solver={T:3}", "is not known"),
    # names of options
    ("max_iterations=3", "Did you mean budget.max_iterations?"),
    ("budget.gaptol=3", "Did you mean budget.gap_tol?"),
    ("sovler=bcfw", "Did you mean solver?"),
    ("sovler.T=3", "Did you mean solver?"),
    ("budget.max_iterations.x=3", "no option budget.max_iterations.x"),
    ("eval=3", "eval is a section. Its options: eval.every, eval.growth"),
    ("solver.name=mine", "solver.name cannot be set"),
    ("solver.kind=fw", "solver.kind cannot be set"),
    *((f"+{each}", ADDED) for each in ("solver.T=3", "+solver.T=3", "seed=3", "solver=bcfw")),
    *((f"~{each}", REMOVED) for each in ("solver.T", "solver", "oracle=viterbi")),
    # types
    *((f"solver.T={t}", f"solver.T must be an integer, got {t}") for t in ("'3'", "true", "null")),
    ("solver.T=abc", "solver.T must be an integer, got 'abc'"),
    ("solver.T=", "solver.T must be an integer, got ''"),
    ("solver.T=[1,2]", "solver.T must be an integer, got [1, 2]"),
    ("solver.average=1", "solver.average must be true or false, got 1"),
    ("budget.max_iterations=1.5", "budget.max_iterations must be an integer or null, got 1.5"),
    ("seed=x", "seed must be an integer, got 'x'"),
    ("seed=null", "seed must be an integer, got null"),
    ("lam=abc", "lam must be a number or K/n (as 10/n), K a positive number, got 'abc'"),
    ("lam=true", "lam must be a number or K/n (as 10/n) or null, got true"),
    ("lam=nan", "lam must be a number or K/n (as 10/n) or null, got nan"),
    ("lam=inf", "lam must be a number or K/n (as 10/n) or null, got inf"),
    ("path=10/n", "path must be a list in brackets, got '10/n'"),
    ("budget.gap_tol=nan", "budget.gap_tol must be a number, got nan"),
    ("budget.max_seconds=inf", "budget.max_seconds must be a number or null, got inf"),
    ("clock=1", "clock must be text, got 1"),
    ("results_dir=", "results_dir must be a path, got ''"),
    ("results_dir=null", "results_dir must be a path, got null"),
    ("force=maybe", "force must be true or false, got 'maybe'"),
    ("dataset.n_samples=many", "dataset.n_samples must be"),
    *((f"seed={t}", f"seed must be an integer, got '{t}'") for t in ("=", "[1", "range(3")),
    # ranges
    ("lam=0", "lam must be a positive number, got 0"),
    ("lam=-1", "lam must be a positive number, got -1"),
    ("solver.T=0", "solver.T must be ≥ 1, got 0"),
    ("solver.N=-1", "solver.N must be ≥ 0, got -1"),
    ("solver.M=-1", "solver.M must be ≥ 0, got -1"),
    ("solver.step=linesearch", "Did you mean line_search?"),
    ("solver.step=2n/(k+2n)", "Set solver.M=0, or solver.step=line_search"),
    ("solver.sampling=permuted", "Did you mean permutation?"),
    ("budget.max_iterations=-1", "budget.max_iterations must be ≥ 0, got -1"),
    ("budget.max_seconds=-1", "budget.max_seconds must be a positive number, got -1"),
    ("budget.gap_tol=-0.1", "budget.gap_tol must be ≥ 0, got -0.1"),
    ("eval.every=0", "eval.every must be ≥ 1, got 0"),
    ("eval.growth=0.9", "eval.growth must be ≥ 1, got 0.9"),
    ("clock=cup", "clock=cup is not known. Did you mean cpu?"),
    ("seed=-1", "seed must be ≥ 0, got -1"),
    ("dataset.source=fake", "dataset.source"),
    ("dataset.n_samples=0", "dataset.n_samples"),
    ("budget.max_iterations=null", "never end"),
]


@pytest.mark.parametrize(("override", "part"), MISTAKES)
def test_a_mistake_is_one_message(override, part):
    assert part in message(override)


def test_a_file_in_the_place_of_a_dataset_is_told_where_files_go(tmp_path):
    file = tmp_path / "train.txt"
    with pytest.raises(ConfigError, match=r"is not known"):
        compose_runs([f"dataset={file}"])
    file.touch()
    with pytest.raises(ConfigError, match=rf"dataset=file dataset\.path={file} trains on it\.$"):
        compose_runs([f"dataset={file}"])


@pytest.mark.parametrize("prefix", ["", "+", "++"])
def test_unknown_options_name_the_nearest(prefix):
    text = message(f"{prefix}solver.lamda=1")
    assert "no option solver.lamda with solver=mpbcfw. Did you mean lam?" in text
    assert "solver.M, solver.N, solver.T, solver.approx_order, solver.average" in text
    assert "Did you mean lam?" in message(f"{prefix}lamda=1")
    # the options that are listed are those of what is chosen
    assert message("sovler=bcfw").count(" clock,") == 1
    assert "with solver=fw" in message("solver=fw", "solver.T=3")


@pytest.mark.parametrize("override", ["solver", "a b", "=3", "", "-x", "a b=3", "solver@x=bcfw"])
def test_malformed_overrides_are_shown(override):
    text = message(override)
    assert "Cannot read" in text
    assert repr(override) in text


def test_true_is_a_word_where_it_is_one_to_choose():
    run = one("solver=dcd", "solver.bound=true")
    assert run.solver.bound == "true"
    assert run == one("solver=dcd", "solver.bound='true'")
    assert "solver.bound must be text, got false" in message("solver=dcd", "solver.bound=false")


def test_a_run_needs_an_end():
    for other in ("gap_tol=0.1", "max_seconds=2"):
        assert one("budget.max_iterations=null", f"budget.{other}").budget.max_iterations is None


@settings(max_examples=30, deadline=None)
@given(st.text(alphabet="ab.=+~@,:'\"\\\\[]{}()$ 01\n/", max_size=8))
def test_whatever_is_typed_there_is_no_crash(text):
    for override in (text, f"clock={text}"):
        with pytest.raises(ConfigError):
            compose_runs([override], multirun=True)


@pytest.fixture
def mine(tmp_path):
    folder = tmp_path / "it's, [mine]"
    for name in ("solver", "dataset", "experiments"):
        (folder / name).mkdir(parents=True)
    return folder


def test_a_folder_of_the_user_adds_choices(mine):
    short = "# short memory\ndefaults: [mpbcfw, _self_]\nname: short\nT: 2\n"
    (mine / "solver" / "short.yaml").write_text(short)
    config = one("solver=short", config_dirs=[mine])
    assert (config.solver.name, config.solver.T, config.solver.N) == ("short", 2, 1000)
    assert "short" in message("solver=shrt", config_dirs=[mine])
    assert "solver=short is not known" in message("solver=short")
    (mine / "solver" / "shorter.yaml").write_text("defaults: [short]\nM: 1e1\nlatent_rounds: 2\n")
    solver = one("solver=shorter", config_dirs=[mine]).solver
    assert (solver.name, solver.kind, solver.T, solver.M) == ("shorter", "mpbcfw", 2, 10)
    (mine / "dataset" / "pages.yaml").write_text("defaults: [usps]\nkind: usps\n")
    assert one("dataset=pages", config_dirs=[mine]).oracle.name == "multiclass"


def test_a_file_of_the_user_with_a_mistake(mine):
    file = mine / "solver" / "odd.yaml"
    for content, part in (
        ("defaults: [mpbcfw, _self_]\nname: odd\nTT: 2\n", "no option solver.TT"),
        ("defaults: [mpbcfw, _self_]\nname: odd\nT: none\n", "solver.T must be an integer"),
        ("name: even\nkind: fw\n", "calls itself name: even"),
        ("name: odd\n", "Unknown solver kind 'odd'"),
        ("name: odd\nkind: fw\nstep: ???\n", "solver.step"),
        ("name: odd\nkind: mpbfcw\n", "Did you mean mpbcfw?"),
        ("a: [", "odd.yaml: line 1"),
        ("defaults: [mpbfcw]\n", "odd.yaml begins with 'mpbfcw'. Did you mean mpbcfw?"),
        ("- 1\n", "odd.yaml must be a mapping"),
        ("\t", "odd.yaml: line 1"),
    ):
        file.write_text(content)
        assert part in message("solver=odd", config_dirs=[mine])


def test_folders_that_cannot_be_used_are_refused(mine):
    (mine / "solver" / "fw.yaml").write_text("name: fw\nkind: fw\n")
    assert "Rename one of them" in message(config_dirs=[mine])
    assert "there is no such folder" in message(config_dirs=[mine / "nowhere"])
    (mine / "loop").symlink_to(mine / "loop")
    assert "there is no such folder" in message(config_dirs=[mine / "loop"])


def test_description_is_the_first_comment(tmp_path):
    file = tmp_path / "x.yaml"
    for content, expected in (("\n#  one \n# two\n", "one"), ("a: 1\n# no\n", ""), ("", "")):
        file.write_text(content)
        assert catalog.description(file) == expected


@pytest.mark.parametrize("kind", ["budget", "dataset", "oracle", "solver", "experiments"])
def test_descriptions_are_whole(kind):
    for file in catalog.entries(kind).values():
        first, second, *_ = [*file.read_text(encoding="utf-8").splitlines(), ""]
        assert first == f"# {catalog.description(file)}"
        assert not re.search(r"[,:;(-]$", first), file
        assert not re.match(r"# *[^ (A-Z]", second), f"{file}: the first line goes on in the second"


def test_the_hash_covers_what_changes_the_result():
    def digest(*overrides, source="real"):
        return one(*overrides).with_source(source).hash()

    base = digest()
    assert base == digest("dataset.source=real")
    elsewhere = ("results_dir=elsewhere", "force=true", "quiet=true", "checkpoint.every=5")
    assert base == digest("seed=7", *elsewhere)
    assert digest("lam=1") == digest("lam=1.0")
    assert digest("lam=1/n") == base
    assert digest("lam=1e1/n") == digest("lam=10/n") != digest("lam=10")
    assert digest("path=[10/n]") == digest("path=[10.0/n]", "lam=1/n") != digest("path=[10]")
    changes = (
        *("lam=0.1", "solver.T=9", "clock=work", "eval.every=2", "dataset.n_samples=5"),
        *("path=[1]", "solver.latent_rounds=2", "oracle.cost_call=1", "oracle.cost_visit=1"),
        "solver=mpbcfw_avg",
    )
    changed = [*map(digest, changes), digest(source="synthetic")]
    assert digest("oracle.cost_visit=0") == base
    assert len({base, *changed}) == len(changed) + 1
    assert re.fullmatch("[0-9a-f]{12}", base)


@pytest.mark.parametrize("option", ["max_iterations=51", "max_seconds=3", "gap_tol=0.1"])
def test_the_budget_is_in_the_own_hash_alone(option):
    def both(*begins):
        return (one(*words, *begins).with_source("real") for words in ((), (f"budget.{option}",)))

    plain, other = both()
    assert other.hash() == plain.hash()
    assert len({plain.hash(), plain.own_hash(), other.own_hash()}) == 3
    # where a run ends decides on where the next one begins
    for begins in ("path=[1]", "solver.latent_rounds=2"):
        plain, other = both(begins)
        assert plain.hash() == plain.own_hash() != other.hash()


def test_an_option_that_is_added_later_leaves_hashes_alone():
    config = one("solver=fw").with_source("real")
    before, solver = config.hash(), type(config.solver)
    more = {"__annotations__": {"sizes": "tuple[int, ...]"}, "sizes": ()}
    later = dataclass(frozen=True)(type("Later", (solver,), more))
    options = {field.name: getattr(config.solver, field.name) for field in fields(solver)}
    assert replace(config, solver=later(**options)).hash() == before
    changed = replace(config, solver=later(**options, sizes=(1, 2)))
    assert changed.hash() != before
    assert changed.resolved()["solver"]["sizes"] == [1, 2]


def test_the_hash_covers_the_version_of_the_code(monkeypatch):
    config = one("solver=fw").with_source("real")
    before = config.hash()
    solver = registry.module("solver", "fw")
    monkeypatch.setattr(solver, "CODE_VERSION", f"{solver.CODE_VERSION} changed")
    assert config.hash() != before
    with pytest.raises(ValueError, match="source"):
        one().hash()
