"""What is echoed and printed is one short line, whatever was typed."""

import os
import pickle
import resource
import subprocess
import sys

import numpy as np
import pytest
from program import USPS, call, error_of, install_solver

from ssvm_bench import StructuredSVM
from ssvm_bench.base.errors import ConfigError, RunFailedError, readable
from ssvm_bench.cli.commands import explain, report
from ssvm_bench.figures import drawing, style


def test_a_message_is_one_line_of_bounded_length(capsys):
    text = readable(f"a\n\x1b[2J b  {'y' * 900}z " + "word " * 5000)
    assert text.isprintable()
    assert text.startswith(r"a \x1b[2J b yyy")
    assert "yz word" in text
    assert len(text) <= 1500
    report(ConfigError("long\n" * 5000))
    (line,) = capsys.readouterr().err.splitlines()
    assert len(line) < 2000


@pytest.mark.parametrize(
    "word",
    [
        *("seed=" + "9" * 4500, "seed=" + "x" * 100_000, "x" * 5000, "solver=" + "x" * 3000),
        *("x" * 3000 + "=1", "dataset=\x1b[2J\u202e\udcff", "lam=" + "9" * 3000 + "/n"),
        "seed=a\nb",
    ],
)
def test_whatever_is_typed_the_explanation_is_seen(word):
    line = error_of(call("run", word), 2)
    assert len(line) < 700
    assert line.isprintable()


def test_what_the_system_refuses_is_no_fault_of_the_program():
    for error in (OSError(36, "File name too long", "x" * 9000), OSError("odd"), OSError(40, "x")):
        text, status = explain(error)
        assert "--debug" not in text
        assert len(text) < 400
        assert status == 1


def test_a_current_folder_that_is_gone(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # so that it goes back
    (tmp_path / "here").mkdir()
    os.chdir(tmp_path / "here")
    (tmp_path / "here").rmdir()
    assert "current folder does not exist" in error_of(call("list", "--config-dir", ".."), 1)


FIELDS = (
    "from dataclasses import dataclass\n@dataclass(frozen=True)\nclass Config:\n"
    "    name: str\n    kind: str\n    step: str\n"
)


@pytest.mark.parametrize(
    "code",
    [
        "raise RuntimeError('\\x1b[2J' * 999)",
        "raise SystemExit(0)",
        "raise KeyboardInterrupt",
        "Config = 3",
        "",
        FIELDS.replace("kind: str", "kind: 'Nowhere'"),
        f"{FIELDS}    def __post_init__(self): raise KeyError(1)\n",
        FIELDS,
        f"{FIELDS}def build(*_): pass\n",
        f"{FIELDS}CODE_VERSION = 1\ndef build(*_): raise KeyError\n",
    ],
)
def test_a_plug_in_that_fails_is_named(tmp_path, monkeypatch, code):
    name = f"odd{abs(hash(code))}"
    options = install_solver(tmp_path, name, code)
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    line = error_of(call("run", *options, *USPS, f"results_dir={tmp_path}"), 1)
    assert "another installed package" in line
    assert "--debug" not in line


@pytest.mark.parametrize("title", ["costs $5", "$x", "$\\frac{1}$", "\\$", "$a$ and $b"])
def test_a_title_is_drawn_as_it_stands(title):
    legend = drawing.legend_of({title: style.Stroke("k", "-")})
    with drawing.page(title, [title], (1, 1), legend) as (figure, _):
        pass
    assert figure._suptitle.get_text().replace(r"\$", "$") == title
    drawing.rendered(figure, "png")


def test_runs_that_fail_alike_are_told_once(tmp_path):
    words = ("seed=range(20)", "solver=ssg", "budget.max_iterations=null", "budget.gap_tol=0.1")
    result = call("run", "-m", *words, *USPS, f"results_dir={tmp_path}", "quiet=true")
    assert result.exit_code == 2
    assert len(result.stderr.splitlines()) == 2
    assert "20 of 20 runs did not finish" in result.stderr


def test_a_message_is_bounded_when_it_is_made():
    for kind in (ConfigError, RunFailedError):
        assert str(kind("short")) == "short"
        assert len(str(kind("x" * 1_000_000))) < 10_000
        assert len(str(pickle.loads(pickle.dumps(kind("x" * 1_000_000))))) < 10_000
    weights = {f"label{k}": 1.0 for k in range(30_000)}
    model = StructuredSVM("multiclass", class_weight=weights)
    with pytest.raises(Exception, match="label0") as raised:
        model.fit(np.zeros((4, 2)), [0, 1, 0, 1])
    assert len(str(raised.value)) < 10_000


@pytest.mark.parametrize("megabytes", [300, 400, 450, 500, 550])
def test_an_address_space_without_room_for_the_libraries_is_told(tmp_path, megabytes):
    command = [sys.executable, "-m", "ssvm_bench", "report", f"results_dir={tmp_path}"]
    limit = (megabytes << 20,) * 2
    done = subprocess.run(
        command,
        capture_output=True,
        text=True,
        check=False,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, limit),
    )
    line = error_of(done, 1)
    assert "Raise its limit (ulimit -v)" in line or "There are no runs" in line
