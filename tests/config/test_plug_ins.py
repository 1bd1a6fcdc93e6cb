"""Components in files beside their YAML files; the example in ``examples/``; contracts, checked.

Each claim of a contract is broken once, by a component that is right in all else.
"""

import json
import re
import subprocess
import sys
import zipfile
from dataclasses import dataclass
from itertools import permutations
from math import inf, nan
from pathlib import Path
from typing import ClassVar

import numpy as np
import pandas as pd
import pytest
from helpers import Plain, oracle, random_chains, random_multiclass
from program import GRID, USPS, call, completed, error_of, install_solver, path_with, python

import ssvm_bench
from ssvm_bench.base.errors import RunFailedError, place_of
from ssvm_bench.config import registry
from ssvm_bench.config.compose import compose_runs
from ssvm_bench.figures import style
from ssvm_bench.runs.contracts import (
    BROKEN,
    STRUCTURES,
    Findings,
    check_dataset,
    check_oracle,
    check_solver,
    small,
)
from ssvm_bench.solvers.base import Iterate, Solver, SolverConfig

EXAMPLE = Path(__file__).parents[2] / "examples" / "ranking"
DIR = ("--config-dir", EXAMPLE / "ranking")
MODULE = "ssvm_bench_plug_in.solver.mine"

SOLVER = """
from dataclasses import dataclass
import numpy as np
from ssvm_bench.solvers.base import Iterate, Solver, SolverConfig

@dataclass(frozen=True)
class Config(SolverConfig):
    step: float = 0.5

class Mine(Solver):
    def __init__(self, config, problem, clock):
        super().__init__(problem, clock)
        self.step, self.w, self.offset = config.step, np.zeros(problem.d), 0.0

    def iterate(self):
        with self.clock.exact(self.problem.n):
            risk = self.problem.risk(self.w)
        self.w = self.w - self.step * (self.w + risk.star / self.problem.lam)
        self.offset += self.step * (risk.offset - self.offset)

    def reported(self):
        return Iterate(self.w, self.problem.dual(self.w, self.offset) + 0.00)

def build(config, problem, clock, seed):
    return Mine(config, problem, clock)
"""


@pytest.fixture(autouse=True)
def _own_folders(monkeypatch):
    """Let no folder of one test be seen by another."""
    monkeypatch.setattr(registry._PLUG_INS, "__path__", [])


@pytest.fixture
def mine(tmp_path):
    """Return a folder with one solver."""
    (tmp_path / "solver").mkdir()
    (tmp_path / "solver" / "mine.yaml").write_text("# my solver\nstep: 0.02\n")
    (tmp_path / "solver" / "mine.py").write_text(SOLVER)
    yield tmp_path
    sys.modules.pop(MODULE, None)


def solver_of(folder, name="mine"):
    """Return name, kind and step of a solver of a folder."""
    (run,) = compose_runs([f"solver={name}", "dataset=usps"], config_dirs=[folder])
    return run.solver.name, run.solver.kind, run.solver.step


def run_of(mine):
    """Return the words of a run with the solver of a folder."""
    return ("run", "solver=mine", *USPS, f"results_dir={mine / 'r'}", "--config-dir", mine)


def test_a_solver_is_a_file_beside_its_yaml(mine):
    result = call(*run_of(mine), "budget.max_iterations=3")
    assert result.exit_code == 0, result.stderr
    assert list((mine / "r" / "runs" / "usps" / "mine").iterdir())
    assert solver_of(mine) == ("mine", "mine", 0.02)
    assert "mine" in registry.kinds("solver")


def test_another_version_of_the_file_is_another_run(mine, monkeypatch):
    (run,) = compose_runs(["solver=mine", "dataset.source=synthetic"], config_dirs=[mine])
    before = run.hash()
    file = mine / "solver" / "mine.py"
    file.write_text(SOLVER + "\n# another thought\n")
    assert run.hash() != before
    file.write_text(SOLVER)
    assert run.hash() == before
    monkeypatch.setattr(registry.module("solver", "mine"), "CODE_VERSION", 3, raising=False)
    file.write_text(SOLVER + "\n# told by its version\n")
    assert run.hash() != before


UNDERIVED = SOLVER.replace("(SolverConfig):", ":\n    name: str\n    kind: str\n")


@pytest.mark.parametrize(
    ("code", "message"),
    [
        ("import nothing_of_that_name", "mine.py, line 1, which failed: ModuleNotFoundError"),
        ("\n\n1 / 0", "mine.py, line 3, which failed: ZeroDivisionError: division by zero. Repair"),
        ("x = (", "mine.py, line 1, which failed: SyntaxError"),
        ("", "it has no function build and no dataclass Config, derived from SolverConfig. Repair"),
        ("Config = 1", "which failed: TypeError: it has no function build"),
        ("def build(*a): pass", "which failed: TypeError: it has no dataclass Config"),
        (SOLVER.replace("@dataclass(frozen=True)", ""), "it has no @dataclass(frozen=True) above"),
        (SOLVER.replace("(SolverConfig)", ""), "it has no name and kind in its Config, as one der"),
        (UNDERIVED, "it has no Config that is derived from SolverConfig"),
        (SOLVER + "\ndef build(*a): pass\n", "solver=mine built NoneType, not a Solver"),
        (SOLVER.replace("risk.star /", "risk.stars /"), "has no attribute 'stars'"),
        (SOLVER.replace("risk.star /", "risk.stars /"), "solver/mine.py, line 18, which failed"),
    ],
)
def test_what_fails_in_a_file_is_named_with_its_line(mine, code, message):
    (mine / "solver" / "mine.py").write_text(code)
    assert message in error_of(call(*run_of(mine)), 1)


def test_a_component_in_a_folder_beside_is_told(mine, monkeypatch):
    monkeypatch.chdir(mine.parent)
    said = f"solver=mine is a plug-in that lies here: add --config-dir {mine.name} to the call."
    assert said in error_of(call("check", "solver", "mine"), 2)
    monkeypatch.chdir(mine)
    assert "add --config-dir . to the call." in error_of(call("check", "solver", "mine"), 2)
    monkeypatch.chdir(EXAMPLE.parent)
    told = error_of(call("run", "oracle=ranking", "dataset=usps"), 2)
    assert "add --config-dir ranking/ranking to the call." in told


def test_commands_that_read_a_run_name_the_folder_of_its_plug_in(tmp_path, monkeypatch):
    words = ("dataset=queries", "oracle=ranking", "solver=bcfw", "budget.max_iterations=2")
    assert call("run", *words, f"results_dir={tmp_path}", *DIR).exit_code == 0
    (run,) = tmp_path.glob("runs/queries/bcfw/*/seed=0")
    registry.forget()
    monkeypatch.chdir(tmp_path)
    for command in ("score", "predict"):
        told = error_of(call(command, run), 2)
        assert "Unknown dataset kind 'queries'." in told
        assert "If it is a plug-in, give the folder it lies in with --config-dir." in told
    monkeypatch.chdir(EXAMPLE.parent)
    for command in ("score", "predict"):
        told = error_of(call(command, run), 2)
        assert "'queries' is a plug-in that lies here: add --config-dir ranking/ranking to" in told
        assert "Valid" not in told


def test_an_oracle_that_does_not_fit_is_told_of_its_structures():
    words = ("run", *USPS, "oracle=ranking", "budget.max_iterations=1", *DIR)
    told = error_of(call(*words), 2)
    assert "it handles queries labels, and those of usps are independent." in told
    assert 'add "independent" to the `structures` of its Config.' in told
    own = error_of(call("run", *USPS, "oracle=viterbi", "budget.max_iterations=1"), 2)
    assert "structures" not in own


def test_a_module_without_a_config_file_is_told(mine):
    (mine / "solver" / "mine.yaml").unlink()
    message = error_of(call("run", "solver=mine", "--config-dir", mine), 2)
    assert "has a module, but no config file. Write solver/mine.yaml, with the line" in message
    message = error_of(call("run", "-m", "solver=mine,fw", "--config-dir", mine), 2)
    assert "has a module, but no config file" in message


def test_so_is_that_of_an_installed_package(tmp_path, monkeypatch):
    install_solver(tmp_path, "packaged", "1 / 0")
    (tmp_path / "solver" / "packaged.yaml").unlink()
    monkeypatch.syspath_prepend(tmp_path)
    message = error_of(call("run", "solver=packaged"), 2)
    assert "Write solver/packaged.yaml, with the line `kind: packaged`" in message


RAISES = SOLVER.replace("risk = self.problem", "self.problem.n > 2 and 1 / 0; risk = self.problem")
AT = "ZeroDivisionError: division by zero ({}, line 17)"


@pytest.mark.parametrize("jobs", [(), ("--jobs=2",)])
def test_an_experiment_names_the_line_that_fails(mine, jobs):
    (mine / "solver" / "mine.py").write_text(RAISES)
    (mine / "experiments").mkdir()
    (mine / "experiments" / "both.yaml").write_text(GRID)
    words = ("--config-dir", mine, f"results_dir={mine / 'r'}", "solver=mine", *jobs)
    done = completed(mine / "log", "experiment", "both", *words)
    assert done.returncode == 1
    assert AT.format(mine / "solver" / "mine.py") in done.stderr


def test_a_check_names_the_line_that_fails_and_shows_the_traceback_if_it_is_asked_for(mine):
    file = mine / "solver" / "mine.py"
    file.write_text(RAISES)
    words = ("check", "solver", "mine", "--config-dir", mine)
    told = call(*words)
    assert told.exit_code == 1
    assert AT.format(file) in told.stdout
    assert "Traceback" not in told.stderr
    assert "and 1 / 0; risk" in call(*words, "--debug").stderr


def test_python_names_the_line_that_fails(mine):
    """Also where the line calls the program, which then raises."""
    file = mine / "solver" / "mine.py"
    file.write_text(SOLVER.replace("risk(self.w)", "risk(self.w[:-1] * {})"))
    with pytest.raises(RunFailedError, match=rf"{re.escape(str(file))}, line 17"):
        ssvm_bench.run("solver=mine", *USPS, config_dirs=[mine], results_dir=mine / "r")


def test_places_are_those_of_others():
    def of(act):
        with pytest.raises(Exception) as caught:  # noqa: PT011
            act()
        return place_of(caught.value)

    assert of(lambda: json.loads("{")).startswith(f"{__file__}, line ")
    with pytest.raises(json.JSONDecodeError) as caught:
        json.loads("{")
    caught.value.__traceback__ = caught.value.__traceback__.tb_next
    assert place_of(caught.value) == ""  # nothing but a library
    assert place_of(ValueError("never raised")) == ""


def test_a_file_cannot_take_the_place_of_ours(mine):
    (mine / "solver" / "fw.py").write_text(SOLVER)
    (mine / "solver" / "fast.yaml").write_text("kind: fw\nstep: 0.5\n")
    with pytest.raises(registry.ConfigError, match=r"fw\.py has the kind of a solver of ours"):
        compose_runs(["solver=fast"], config_dirs=[mine])


def test_a_yaml_file_may_add_to_another_or_say_nothing_and_then_needs_a_module(mine):
    (mine / "solver" / "other.yaml").write_text("defaults: [mine]\nstep: 0.25\n")
    assert solver_of(mine, "other") == ("other", "mine", 0.25)
    (mine / "solver" / "mine.yaml").write_text("# my solver\n")
    assert solver_of(mine) == ("mine", "mine", 0.5)
    (mine / "solver" / "alone.yaml").write_text("# without a module\n")
    message = error_of(call("check", "solver", "alone", "--config-dir", mine), 2)
    assert "'alone': no folder of --config-dir has solver/alone.py" in message


def test_workers_find_the_files(mine):
    (mine / "experiments").mkdir()
    (mine / "experiments" / "both.yaml").write_text(GRID)
    words = ("--jobs=2", "--config-dir", mine, f"results_dir={mine / 'r'}", "solver=mine,fw")
    done = completed(mine / "log", "experiment", "both", *words)
    assert (mine / "r" / "runs" / "usps" / "mine").is_dir(), done.stderr


@pytest.mark.parametrize(
    "words",
    [("oracle", "ranking", "dataset=queries"), ("solver", "averaged"), ("dataset", "queries")],
)
def test_the_example_keeps_its_contracts(words):
    result = call("check", *words, *DIR)
    assert result.exit_code == 0, result.stdout + result.stderr
    assert "no claims of the contract broken" in result.stdout
    assert result.stdout.count("✓") >= 4


@pytest.mark.parametrize("name", ["dcd_online", "bcfw_inexact"])
def test_no_call_is_left_out_of_the_clock_or_it_is_said_why(name):
    # one asked twice for an example without space in its cache; the other has a compiled oracle
    result = call("check", "solver", name)
    assert result.exit_code == 0, result.stdout + result.stderr
    assert "no claims of the contract broken" in result.stdout


def test_the_example_trains_and_its_entry_points_are_there(tmp_path):
    words = ("dataset=queries", "solver=averaged", "budget.max_iterations=60")
    result = call("run", *words, f"results_dir={tmp_path}", *DIR)
    assert result.exit_code == 0, result.stderr
    (folder,) = tmp_path.glob("runs/queries/averaged/*/seed=0")
    assert "predicts no labels" in error_of(call("predict", folder, *DIR), 2)
    about = (EXAMPLE / "pyproject.toml").read_text()
    entries = re.findall(r'entry-points."(.*)"\]\n(\w+) = "(.*)"', about)
    assert len(entries) == 3
    for group, name, module in entries:
        file = EXAMPLE / f"{module.replace('.', '/')}.py"
        assert {file, file.with_suffix(".yaml")} <= {*file.parent.iterdir()}
        assert (group, name) == (f"ssvm_bench.{file.parent.name}s", file.stem)


class OnlyTruth(Plain):
    def argmax(self, w, i):
        return self.truth(i).copy()


class Forgetful(Plain):
    calls = 0

    def argmax(self, w, i):
        self.calls += 1
        return self.truth(i).copy() if self.calls % 7 == 0 else super().argmax(w, i)


class LastOfTheBest(Plain):
    def predict(self, w, i):
        y = super().predict(w, i)
        return y if w.any() else np.full_like(y, self.inner.features.n_labels - 1)


def changed(**methods):
    return type("Changed", (Plain,), methods)


ORACLES = {
    "planes are": changed(plane=lambda s, i, y: Plain.plane(s, i, y)._replace(offset=0.5)),
    "the loss of the ground truth": changed(loss=lambda s, i, y: 0.1),
    "argmax and predict are no worse": OnlyTruth,
    "the same call has the same answer": Forgetful,
    "radius bounds": changed(radius=lambda s: 1e-3),
    "argmax and predict return": changed(argmax=lambda s, w, i: s.truth(i).astype(np.int64)),
    "risk is the sum": changed(risk=lambda *a, **k: Plain.risk(*a, **k)._replace(value=-1.0)),
}


def found_by(check, *about):
    """Return the findings of a check, and which claims are broken."""
    findings = Findings()
    check(*about, findings)
    return findings, [text for mark, text, _ in findings.lines if mark == BROKEN]


INNER = oracle(random_chains([2, 1, 3], 3, 2))


@pytest.mark.parametrize("claim", ORACLES)
def test_a_broken_oracle_is_found_out(claim):
    findings, broken = found_by(check_oracle, ORACLES[claim](INNER))
    assert any(text.startswith(claim) for text in broken), [*findings.shown()]


def test_a_sound_oracle_has_no_findings_and_ties_are_told():
    for made, marks in ((Plain(INNER), {"✓"}), (LastOfTheBest(INNER), {"✓", "!"})):
        findings, _ = found_by(check_oracle, made)
        assert {mark for mark, _, _ in findings.lines} == marks, [*findings.shown()]


@dataclass(frozen=True)
class Config(SolverConfig):
    has_dual: ClassVar[bool] = True


class Steps(Solver):
    """Subgradient steps, with the highest dual value of the means of their planes."""

    STATE = ("w", "k", "offset", "dual")

    def __init__(self, problem, clock, seed):
        super().__init__(problem, clock)
        self.w, self.k = np.zeros(problem.d), 0
        self.offset = self.dual = 0.0

    def iterate(self):
        with self.clock.exact(self.problem.n):
            self.step()

    def step(self):
        risk = self.problem.risk(self.w)
        self.k += 1
        self.w = (1 - 1 / self.k) * self.w - risk.star / self.k / self.problem.lam
        self.offset += (risk.offset - self.offset) / self.k
        self.dual = max(self.dual, self.problem.dual(self.w, self.offset))

    def reported(self):
        return Iterate(self.w, self.dual)


class Twice(Steps):
    def iterate(self):
        super().iterate()
        self.step()


class Moody(Steps):
    asked = 0

    def step(self):
        Moody.asked += 1
        super().step()
        self.w *= 1 + 1e-6 * Moody.asked


class Falling(Steps):
    """The dual value of wrong sign: −λ/2 ‖w‖² in place of φ∘ − λ/2 ‖w‖²."""

    def reported(self):
        return Iterate(self.w, -0.5 * self.problem.lam * self.w @ self.w)


class Growing(Steps):
    """After 25 steps, w grows by half each time, and the dual value remains."""

    def step(self):
        super().step()
        self.w *= 1.5 if self.k > 25 else 1.0


class Saving(Steps):
    def step(self):
        super().step()
        self.clock.approx_calls = 5 - self.k


class InPlace(Steps):
    def step(self):
        before = self.w
        super().step()
        before[:], self.w = self.w, before


SOLVERS = {
    "build returns": lambda *_: None,
    "dual ≤ primal": type("High", (Steps,), {"reported": lambda s: Iterate(s.w, 1.5)}),
    "every call of the oracle": Twice,
    "the same seed": Moody,
    "a new one that takes its state": type("Forgetful", (Steps,), {"STATE": ("w",)}),
    "primal is lower": type("Idle", (Steps,), {"step": lambda s: s.problem.risk(s.w)}),
    # its dual falls from 0, which is a lower bound all the same
    "F rises": Falling,
    "counts and time only rise": Saving,
    "w is float64 of shape (d,), finite, and stays": InPlace,
    "w is float64": type("Half", (Steps,), {"reported": lambda s: Iterate(s.w[:-1], 0.0)}),
}


def of_solver(kind):
    return found_by(check_solver, kind, Config("s", "s"), oracle(small("independent")))


@pytest.mark.parametrize("claim", [*SOLVERS, None])
def test_a_broken_solver_is_found_out(claim):
    _, broken = of_solver(SOLVERS.get(claim, Steps))
    assert broken == [] if claim is None else any(each.startswith(claim) for each in broken), broken


def test_a_gap_that_grows_is_found_out():
    _, broken = of_solver(Growing)
    assert broken == ["F rises, and the gap falls"]


@pytest.mark.parametrize("dual", [0.0, -1.0, -inf])
def test_a_dual_that_never_rises_is_found_out(dual):
    _, broken = of_solver(type("Still", (Steps,), {"reported": lambda s: Iterate(s.w, dual)}))
    assert "F rises, and the gap falls" in broken


def test_a_dual_may_be_unknown_at_first():
    def reported(solver):
        return Iterate(solver.w, solver.dual if solver.k else -inf)

    assert not of_solver(type("Later", (Steps,), {"reported": reported}))[1]


def test_a_missing_state_is_told_and_a_missing_dual_value():
    findings, broken = of_solver(type("Stateless", (Steps,), {"STATE": None}))
    assert not broken
    assert "it does not define STATE" in "\n".join(findings.shown())
    findings, _ = of_solver(type("NoDual", (Steps,), {"reported": lambda s: Iterate(s.w, nan)}))
    assert "has_dual = False" in "\n".join(findings.shown())


def test_a_broken_dataset_is_found_out():
    first = random_multiclass(6, 3, 2)
    for load, claim in (
        (lambda: None, "load returns a Dataset"),
        (lambda: 1 / 0, "load returns a Dataset"),
        (iter([first, random_multiclass(6, 3, 2, 1)]).__next__, "loaded again"),
        (lambda: first.derived(source="mine"), "its source is one"),
    ):
        findings, broken = found_by(check_dataset, load, oracle)
        assert any(text.startswith(claim) for text in broken), [*findings.shown()]
    findings, broken = found_by(check_dataset, lambda: first.derived(y=0 * first.y), oracle)
    assert not broken
    assert "2 labels have no example: 1, 2" in "\n".join(findings.shown())


def test_small_instances_are_of_every_structure():
    for structure in STRUCTURES:
        assert small(structure).structure == structure


def test_a_check_fails_with_its_exit_status(mine):
    result = call("check", "solver", "mine", "--config-dir", mine)
    assert (result.exit_code, "✓" in result.stdout) == (0, True), result.stdout
    (mine / "solver" / "mine.py").write_text(SOLVER.replace("+ 0.00)", "+ 9.0)"))  # of another size
    del sys.modules[MODULE]  # a file of the same size and second would be loaded as compiled before
    result = call("check", "solver", "mine", "--config-dir", mine)
    assert result.exit_code == 1
    assert "✗ dual ≤ primal in every row: row 0 has the dual 9" in result.stdout
    assert "solver=nothing is not known" in error_of(call("check", "solver", "nothing"), 2)


def test_the_example_of_a_term_by_term_solver_makes_bcfw_s_steps(tmp_path):
    words = (*USPS, "clock=work", "budget.max_iterations=5", "seed=3", f"results_dir={tmp_path}")
    folder = EXAMPLE.parent / "bcfw"
    mine = ssvm_bench.run("solver=plain_bcfw", *words, config_dirs=[folder])
    ours = ssvm_bench.run("solver=bcfw", *words)
    assert mine.trace["dual"].tolist() == pytest.approx(ours.trace["dual"].tolist(), rel=1e-9)
    assert mine.trace["oracle_calls"].tolist() == ours.trace["oracle_calls"].tolist()


def test_drawn_data_of_ones_own_are_no_stand_in(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert call("new", "dataset", "drawings").exit_code == 0
    (tmp_path / "mine.yaml").write_text(
        "grid: {dataset: drawings, solver: bcfw, budget.max_iterations: 2}\n"
        "figures: {suboptimality: [iteration]}\n"
    )
    done = call("experiment", "mine.yaml", "--config-dir", "drawings")
    assert done.exit_code == 0, done.stderr
    assert (tmp_path / "results/figures/mine/iterations.png").is_file()
    table = pd.read_csv("results/figures/mine/iterations.csv")
    assert style.problem_title(table.iloc[0]).startswith("drawings: simulated, n = ")
    assert call("report").exit_code == 0
    page = Path("results/report.html").read_text()
    assert "simulated" in page
    for mark in ("SYNTHETIC", "no real data", "as in the paper"):
        assert mark not in page
    assert style.source_name("drawn", "moons") == "drawn as in the paper"


@pytest.mark.parametrize(
    ("kind", "more"), [("solver", ()), ("oracle", ("dataset=queries",)), ("dataset", ())]
)
def test_what_new_writes_passes_the_check(tmp_path, monkeypatch, kind, more):
    monkeypatch.chdir(tmp_path)
    told = call("new", kind, "mine").stdout
    command = next(line for line in told.splitlines() if " check " in line).split()
    assert command[1:] == ["check", kind, "mine", *more, "--config-dir", "mine"]
    assert "no claims of the contract broken" in call(*command[1:]).stdout
    assert "is there already" in error_of(call("new", kind, "mine"), status=2)


@pytest.mark.parametrize("kind", ["solver", "oracle", "dataset"])
def test_a_new_package_can_be_installed_and_its_test_passes(tmp_path, monkeypatch, kind):
    pytest.importorskip("hatchling")
    monkeypatch.chdir(tmp_path)
    told = call("new", kind, "mine", "--package").stdout
    assert "mine is there already" in error_of(call("new", kind, "mine", "--package"), status=2)
    command = (sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", tmp_path)
    subprocess.run(command, cwd="mine", check=True, capture_output=True)
    (wheel,) = tmp_path.glob("ssvm_bench_mine-*.whl")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall("site")
    installed = {"PYTHONPATH": path_with(tmp_path / "site")}
    assert python("-m", "pytest", "-q", "mine", **installed).returncode == 0
    (run,) = re.findall(r"^  ssvm-bench (run .*)$", told, re.MULTILINE)
    assert f"ssvm-bench {run}\n" in (tmp_path / "mine" / "README.md").read_text()
    without_data = installed | {"SSVM_BENCH_DATA": ""}
    done = python("-m", "ssvm_bench", *run.split(), "budget.max_iterations=1", **without_data)
    assert done.returncode == 0, done.stderr
    assert "NOT THE REAL" not in done.stderr
    listed = python("-m", "ssvm_bench", "list", f"{kind}s", **installed).stdout
    assert re.search(r"^mine +\w", listed, re.MULTILINE)


@pytest.mark.parametrize("kinds", [*permutations(("solver", "oracle", "dataset"))])
def test_a_plug_in_has_one_folder_and_several_groups(tmp_path, monkeypatch, kinds):
    monkeypatch.chdir(tmp_path)
    for kind in kinds:
        assert call("new", kind, "mine").exit_code == 0
        for again in kinds[: kinds.index(kind) + 1]:
            assert "is there already" in error_of(call("new", again, "mine"), status=2)
    checked = call("check", "oracle", "mine", "dataset=mine", "--config-dir", "mine")
    assert "no claims of the contract broken" in checked.stdout
    options = ("solver=mine", "oracle=mine", "dataset=mine", "--config-dir", "mine")
    assert call("run", *options, "budget.max_iterations=2").exit_code == 0


@pytest.mark.parametrize("made", [Path.mkdir, Path.touch, lambda path: path.symlink_to("nowhere")])
def test_new_writes_to_no_folder_of_another_kind(tmp_path, monkeypatch, made):
    monkeypatch.chdir(tmp_path)
    made(Path("mine"))
    assert "mine is there already" in error_of(call("new", "solver", "mine"), status=2)
    assert [*tmp_path.rglob("*")] == [tmp_path / "mine"]


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("a-b", "'a-b' cannot be the name of a Python module"),
        ("../up", "cannot be the name of a Python module"),
        ("bcfw", "There is a solver of the name bcfw"),
    ],
)
def test_a_name_that_new_cannot_take_is_said(tmp_path, monkeypatch, name, said):
    monkeypatch.chdir(tmp_path)
    assert said in error_of(call("new", "solver", name), status=2)
    assert not list(tmp_path.iterdir())
