"""Words of a command line: runs are counted before there are any, and no secret is told."""

from pathlib import Path

import pytest
from program import at_most_calls, count_calls

from ssvm_bench.base.errors import ConfigError
from ssvm_bench.config import overrides
from ssvm_bench.config.compose import compose_runs
from ssvm_bench.report.experiment_files import load

SECRET = "hunter2-of-the-environment"


def message(words, multirun=True, **more):
    with pytest.raises(ConfigError) as caught:
        compose_runs(words, multirun, **more)
    return str(caught.value)


@pytest.mark.parametrize(
    ("sweep", "part"),
    [
        ("range(0,100000000)", "asks for 100,000,000 runs; there can be 100,000"),
        ("range(0,1,1e-9)", "asks for 1,000,000,000 runs"),
        ("shuffle(range(0,100000000))", "asks for 100,000,000 runs"),
        ("range(0,1e300)", "asks for too many runs"),
        ("range(0,10,0)", "a step that is not 0"),
        ("range(0,1e400)", "finite ends"),
        ("range(nan,1)", "finite ends"),
        ("range(3,1)", "has no values"),
        ("interval(0,1)", "an interval has no end of values"),
    ],
)
def test_runs_are_counted_before_there_are_any(sweep, part):
    with at_most_calls(2_000_000):
        assert part in message([f"seed={sweep}"])
        assert "There is no option solver.TT" in message([f"seed={sweep}", "solver.TT=1"])


def test_the_runs_of_all_sweeps_and_grids_are_counted_together(tmp_path, monkeypatch):
    monkeypatch.setenv(overrides.MOST_RUNS_VARIABLE, "12")
    assert len(compose_runs(["seed=range(6)", "solver=bcfw,mpbcfw"], True)) == 12
    assert "asks for 14 runs; there can be 12" in message(["seed=range(7)", "solver=bcfw,mpbcfw"])
    file = tmp_path / "mine.yaml"
    file.write_text("grid: [{seed: range(7)}, {seed: 'range(7,14)'}]\nfigures: {}\n")
    with pytest.raises(ConfigError, match="asks for 14 runs"):
        load(str(file)).configs()
    monkeypatch.setenv(overrides.MOST_RUNS_VARIABLE, "many")
    assert "must be a number of runs" in message(["seed=1"])


def test_a_long_sweep_is_quick_and_shares_what_is_equal():
    compose_runs(["seed=0", "solver.T=3"], True)  # what is imported and read once
    with count_calls() as few:
        compose_runs(["seed=range(200)", "solver.T=3"], True)
    with at_most_calls(15 * few.calls):
        runs = compose_runs(["seed=range(2000)", "solver.T=3"], True)
    assert len({id(run.solver) for run in runs}) == 1
    assert [run.seed for run in runs] == list(range(2000))


@pytest.mark.parametrize(
    "value",
    [
        *("${oc.env:SSVM_BENCH_SECRET}", "[${oc.env:SSVM_BENCH_SECRET}]", "${oc.${seed}:HOME}"),
        *("$\\{oc.env:SSVM_BENCH_SECRET\\}", "'${oc.env:SSVM_BENCH_SECRET}'", "{a: {'${b}': 1}}"),
        *("${oc.decode:${oc.env:SSVM_BENCH_SECRET}}", "a,${oc.env:SSVM_BENCH_SECRET}", "x ${"),
    ],
)
def test_nothing_is_interpolated(value, monkeypatch):
    monkeypatch.setenv("SSVM_BENCH_SECRET", SECRET)
    for option in ("results_dir", "clock", "dataset.source", "seed"):
        text = message([f"{option}={value}"])
        assert SECRET not in text
        assert "interpolations" in text
    for option in ("solver", "dataset"):
        assert SECRET not in message([f"{option}={value}"])


@pytest.mark.parametrize(
    "word",
    [
        *("hydra.run.dir=x", "hydra.searchpath=[x]", "solver@foo=bcfw", "_target_=x", "~seed"),
        *("a=" + "[" * 3000, "a=" + "{a:" * 900, "seed=" + "f(" * 500, "solver._target_=os.abort"),
    ],
)
def test_the_rest_of_hydras_grammar_is_refused(word):
    assert len(message([word])) < 1000


@pytest.mark.parametrize(
    ("word", "part"),
    [
        ("seed=" + "9" * 30, "seed must be an integer of at most 64 bits"),
        ("lam=" + "9" * 400, "lam must be"),
        ("solver.T=1e300", "solver.T must be"),
        ("results_dir='a\0b'", "results_dir must be a path"),
        ("results_dir=\ud800", "results_dir must be a path"),
        ("results_dir=~nobody-of-that-name/x", "results_dir must be a path"),
        ("clock='wa\x1bll'", "clock must be text"),
    ],
)
def test_values_fit_into_the_machine(word, part):
    assert part in message([word], False)


def test_a_name_may_have_commas_or_begin_with_a_tilde(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("a,b", "~nobody-of-that-name"):
        with pytest.raises(ConfigError):
            compose_runs([f"results_dir={name}"])
        (tmp_path / name).mkdir()
        (run,) = compose_runs([f"results_dir={name}"])
        assert run.results_dir == Path(name)
    (run,) = compose_runs(['results_dir="c,d"'])
    assert run.results_dir == Path("c,d")
    with pytest.raises(ConfigError, match=r"""quote it: 'results_dir="c,d"'"""):
        compose_runs(["results_dir=c,d"])
    assert len(compose_runs(["seed=0,1", "results_dir=x"], multirun=True)) == 2
