"""Kernels that are installed compiled already: used where they fit exactly, else ignored."""

import json
import platform
import shutil
from pathlib import Path
from types import SimpleNamespace

import pytest
from program import path_with, put_odd, python

from ssvm_bench.base import errors, messages, precompiled
from ssvm_bench.base.precompiled import MANIFEST, PACKAGE, Precompiled, adopted, requirements

TARGET = "generic", "+sse2" if platform.machine() == "x86_64" else ""
UNSET = {"NUMBA_CPU_NAME": None, "NUMBA_CPU_FEATURES": None}

KERNELS = """
from ssvm_bench.base.jit import kernel

@kernel
def half(value):
    return 0.5 * value

@kernel
def quarter(value):
    return half(half(value))
"""

PROGRAM = """
import sys
from pathlib import Path
from ssvm_bench.base import errors, messages
errors._CHECKOUT = Path("/installed")
{before}
from ssvm_bench.base import jit, precompiled
from own_kernels import quarter
print(quarter(8.0), jit.numba.config.CPU_NAME, jit.CACHE_FOLDER, "numba.np.linalg" in sys.modules)
if sys.argv[1:]:
    pack, target = __import__("runpy").run_path(sys.argv[1])["pack"], tuple(sys.argv[3:])
    pack(jit.CACHE_FOLDER, Path(sys.argv[2]), target)
"""


def call(folder, *words, before="", **changes):
    """Call a kernel with an empty cache; return its value, the target and what was compiled."""
    cache = folder / "cache"
    shutil.rmtree(cache, ignore_errors=True)
    variables = {**UNSET, "NUMBA_CACHE_DIR": cache, "PYTHONPATH": path_with(folder), **changes}
    done = python("-c", PROGRAM.format(before=before), *words, **variables)
    assert done.returncode == 0, done.stderr
    value, target, place, compiles = done.stdout.split()
    names = {path.name.rpartition("-")[0] for path in Path(place).iterdir()}
    assert bool(names) == (compiles == "True")
    return float(value), target, names, done.stderr


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """Return a folder of packages with compiled kernels in it."""
    build = Path(__file__).parents[2] / "kernels" / "build.py"
    if not build.is_file():
        pytest.skip("only a checkout has what builds the package")
    folder = tmp_path_factory.mktemp("built")
    (folder / "own_kernels.py").write_text(KERNELS)
    cpu, features = TARGET
    target = {"NUMBA_CPU_NAME": cpu, "NUMBA_CPU_FEATURES": features}
    value, _, names, _ = call(folder, build, folder / PACKAGE, *TARGET, **target)
    assert (value, names) == (2.0, {"own_kernels.quarter", "own_kernels.half"})
    return folder


@pytest.fixture
def place(built, tmp_path):
    """Return a copy of that folder."""
    return shutil.copytree(built, tmp_path / "place")


def test_what_fits_is_loaded_and_nothing_is_compiled(place):
    assert call(place) == (2.0, "generic", set(), "")


def test_a_damaged_kernel_is_compiled_again(place):
    for file in (place / PACKAGE).glob("kernels-*/own_kernels.quarter-*"):
        content = file.read_bytes()
        file.write_bytes(content[:2000] + bytes([content[2000] ^ 1]) + content[2001:])
    assert call(place) == (2.0, "generic", {"own_kernels.quarter"}, "")


def test_what_does_not_fit_is_ignored_with_one_line(place):
    change(place, "requires", numba="0.1")
    said = "The package ssvm-bench-kernels is not used: it is for numba 0.1, not "
    value, target, names, line = call(place)
    assert (value, target, len(names)) == (2.0, "None", 2)
    assert line.startswith(said)
    assert line.count("\n") == 1
    # a child of a process that has said it does not repeat it
    reason = line.partition("used: ")[2].partition(". Kernels")[0]
    assert call(place, SSVM_BENCH_KERNELS_IGNORED=reason)[3] == ""


def test_numba_that_has_compiled_for_this_processor_keeps_its_target(place):
    before = "import numba; numba.njit(lambda x: x)(1)"
    value, target, names, line = call(place, before=before)
    assert (value, target, len(names)) == (2.0, "None", 2)
    assert "numba has compiled before ssvm_bench was imported" in line


# ---- each reason, in this process ----------------------------------------------------------------


def change(place, part, **changes):
    """Change a part of the manifest."""
    file = place / PACKAGE / MANIFEST
    content = json.loads(file.read_text())
    content[part].update(changes)
    file.write_text(json.dumps(content))


@pytest.fixture
def manifest(tmp_path, monkeypatch):
    """Return the manifest of a package that fits, in a process in which numba has not compiled."""
    config = SimpleNamespace(**{**vars(precompiled.config), "CPU_NAME": None, "CPU_FEATURES": None})
    monkeypatch.setattr(precompiled, "config", config)
    monkeypatch.setattr(precompiled, "registry", SimpleNamespace(cpu_target=SimpleNamespace()))
    monkeypatch.setattr(precompiled, "_installed", lambda: tmp_path)
    monkeypatch.setattr(errors, "_CHECKOUT", tmp_path)
    monkeypatch.delenv(precompiled._SAID, raising=False)
    content = {"requires": requirements("0" * 16), "target": TARGET, "files": {}}
    (tmp_path / MANIFEST).write_text(json.dumps(content))
    return tmp_path / MANIFEST


def said_of(manifest):
    """Return what is said of a package, which is not used then."""
    with messages.shown_by((said := []).append):
        found = adopted("0" * 16)
    chosen = precompiled.config.CPU_NAME, precompiled.config.CPU_FEATURES
    assert (found == Precompiled(manifest.parent / f"kernels-{'0' * 16}")) == (chosen == TARGET)
    assert (found == Precompiled()) == (len(said) == 1)
    return "".join(said)


def test_one_that_fits_sets_the_target(manifest):
    assert said_of(manifest) == ""
    assert precompiled.config.CPU_NAME == "generic"


@pytest.mark.parametrize("what", requirements(""))
def test_all_that_is_required_is_compared(manifest, what):
    content = json.loads(manifest.read_text())
    content["requires"][what] = "another"
    manifest.write_text(json.dumps(content))
    why = (
        "it was compiled without {}=" if what.startswith("NUMBA_") else "it is for {} another, not "
    )
    assert why.format(what) in said_of(manifest)


@pytest.mark.parametrize("name", ["CPU_NAME", "CPU_FEATURES"])
def test_a_processor_that_the_user_names_wins(manifest, name):
    setattr(precompiled.config, name, "+sse3")
    assert "NUMBA_CPU_NAME or NUMBA_CPU_FEATURES names another" in said_of(manifest)


def test_a_processor_without_a_feature_is_left_alone(manifest):
    content = json.loads(manifest.read_text())
    manifest.write_text(json.dumps({**content, "target": ["generic", "+sixth_sense"]}))
    assert "this processor lacks +sixth_sense" in said_of(manifest)


DAMAGES = {
    "cut": lambda text: text[:-20],
    "no object": lambda text: "[1]",
    "no target": lambda text: text.replace("target", "tarpit"),
    "no list": lambda text: text.replace('"files": {}', '"files": [1]'),
    "odd sizes": lambda text: text.replace('"files": {}', '"files": {"a": [null, ""]}'),
    "endless sizes": lambda text: text.replace('"files": {}', '"files": {"a": [1e999, ""]}'),
    "deep": lambda text: "[" * 100_000,
    "not UTF-8": lambda text: "\udcff",
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_manifest_is_named(manifest, damage):
    text = DAMAGES[damage](manifest.read_text())
    manifest.write_text(text, errors="surrogateescape")
    assert f"{manifest} cannot be read (" in said_of(manifest)


@pytest.mark.parametrize("kind", ["missing", "pipe", "folder", "loop", "endless"])
def test_what_is_no_manifest_is_named(manifest, kind):
    put_odd(manifest, kind)
    assert f"{manifest} cannot be read (" in said_of(manifest)


def test_no_package_is_no_reason_for_a_word(monkeypatch, caplog):
    monkeypatch.setattr(precompiled, "PACKAGE", "no_such_package")
    assert adopted("0" * 16) == Precompiled()
    assert caplog.messages == []


def test_a_package_in_the_current_folder_is_not_an_installed_one(tmp_path, monkeypatch):
    (tmp_path / "at" / PACKAGE).mkdir(parents=True)
    (tmp_path / "at" / PACKAGE / "__init__.py").touch()
    for at in ("", ".", str(tmp_path / "at")):
        monkeypatch.chdir(tmp_path)
        monkeypatch.setattr(precompiled.sys, "path", [at])
        assert precompiled._installed() == (tmp_path / at / PACKAGE if len(at) > 1 else None)
        monkeypatch.chdir(tmp_path / "at")
        assert precompiled._installed() is None
    # but next to this program it is
    own = str(tmp_path / "at" / "ssvm_bench" / "base" / "precompiled.py")
    monkeypatch.setattr(precompiled, "__file__", own)
    assert precompiled._installed() == tmp_path / "at" / PACKAGE


def test_a_checkout_says_how_to_build_it_anew(manifest, monkeypatch, capfd):
    monkeypatch.setattr(precompiled, "is_checkout", lambda: True)
    manifest.write_text("")
    assert adopted("0" * 16) == Precompiled()
    assert capfd.readouterr().err.endswith("compiled instead. `make kernels` builds it anew.\n")
