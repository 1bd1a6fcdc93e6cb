"""Where kernels and caches go without a home, and that a damaged kernel is only compiled again."""

import shutil
from pathlib import Path

import pytest
from program import put_odd, python

import ssvm_bench
from ssvm_bench.base import compiler, jit

KERNEL = """
import sys
from pathlib import Path
from ssvm_bench.base import jit
sys.path.insert(0, sys.argv[1])
from kernels import twice
twice(2.0)
print(twice(2.0), jit.CACHE_FOLDER)
print(sum(twice._cache_hits.values()), file=sys.stderr)
"""
PACKAGE = Path(ssvm_bench.__file__).parent


@pytest.fixture
def call(tmp_path):
    """Return what calls a kernel in a process with an environment of its own."""
    (tmp_path / "kernels.py").write_text(
        "from ssvm_bench.base.jit import kernel\n@kernel\ndef twice(x):\n    return 2.0 * x\n"
    )
    (tmp_path / "tmp").mkdir()

    def run(**changes):
        done = python("-c", KERNEL, tmp_path, TMPDIR=tmp_path / "tmp", **changes)
        assert done.returncode == 0, done.stderr
        value, folder = done.stdout.split()
        assert value == "4.0"
        *said, hits = done.stderr.splitlines()
        return Path(folder), said, int(hits)

    return run


PLACES = {
    "no home": {"HOME": None},
    "a home that is a file": {"HOME": "{file}"},
    "a file": {"NUMBA_CACHE_DIR": "{file}"},
    "below a file": {"NUMBA_CACHE_DIR": "{file}/below"},
    "not a place at all": {"NUMBA_CACHE_DIR": "/proc/nothing"},
}


@pytest.mark.parametrize("places", PLACES.values(), ids=PLACES)
def test_without_a_place_for_kernels_there_is_a_temporary_one(tmp_path, call, places):
    before, temporary = set(PACKAGE.rglob("*.nb?")), tmp_path / "tmp"
    (tmp_path / "file").write_text("no folder")
    places = {
        name: place and place.format(file=tmp_path / "file") for name, place in places.items()
    }
    folder, (said,), _ = call(**{"NUMBA_CACHE_DIR": None, "XDG_CACHE_HOME": None, **places})
    assert str(temporary / folder.relative_to(temporary).parts[0]) in said
    assert list(temporary.iterdir()) == []  # removed with the process
    assert set(PACKAGE.rglob("*.nb?")) == before


def test_kernels_in_a_folder_of_others_are_not_read(tmp_path, call):
    mine = {"NUMBA_CACHE_DIR": str(tmp_path / "shared")}
    folder, said, _ = call(**mine)
    assert (folder.parent, said) == (tmp_path / "shared", [])
    folder.chmod(0o777)
    other, (told,), hits = call(**mine)
    assert other != folder
    assert "others may write to it" in told
    assert hits == 0


def test_a_child_uses_the_temporary_folder_of_its_parent_and_says_nothing(tmp_path, call):
    (tmp_path / "parent").mkdir()
    changes = {"NUMBA_CACHE_DIR": "/proc/nothing", "SSVM_BENCH_TEMPORARY": str(tmp_path / "parent")}
    folder, said, hits = call(**changes)
    assert folder.parent == tmp_path / "parent"
    assert (said, hits) == ([], 0)
    assert call(**changes)[2] == 1
    shutil.rmtree(tmp_path / "parent")  # a parent that has died: then one of its own
    assert len(call(**changes)[1]) == 1


@pytest.mark.parametrize("damage", ["flipped", "cut", "empty", "swapped", "folder", "loop"])
def test_a_damaged_kernel_is_compiled_again(tmp_path, monkeypatch, capfd, damage):
    monkeypatch.setattr(compiler, "FOLDER", tmp_path)

    def loaded(function):
        """Tell whether a kernel that this process does not have yet is found in the cache."""
        made = jit.kernel(function)
        assert made(2.0) == function(2.0)
        return sum(made._cache_hits.values())

    assert (loaded(twice), loaded(twice), loaded(thrice)) == (0, 1, 0)
    # the intermediate code, which callers inline, and the machine code
    both, others = (sorted(tmp_path.glob(f"*{name}-*")) for name in ("twice", "thrice"))
    assert len(both) == len(others) == 2
    for file, other in zip(both, others, strict=True):
        content = file.read_bytes()
        flipped = content[:2000] + bytes([content[2000] ^ 1]) + content[2001:]
        changed = {"flipped": flipped, "cut": content[:-1], "empty": b""}
        changed["swapped"] = other.read_bytes()
        if damage in changed:
            file.write_bytes(changed[damage])
        else:
            put_odd(file, damage)
    assert (loaded(twice), loaded(twice)) == (0, damage != "folder")
    assert capfd.readouterr() == ("", "")


def twice(x):
    return 2.0 * x


def thrice(x):
    return 3.0 * x


def test_a_kernel_that_cannot_be_kept_is_only_compiled_again(monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(compiler.files, "write", full)
    assert jit.kernel(thrice)(2.0) == 6.0


def test_figures_are_drawn_without_a_home(tmp_path):
    code = "from ssvm_bench.figures.drawing import mpl; print(mpl.get_cachedir())"
    gone = {"XDG_CACHE_HOME": None, "MPLCONFIGDIR": None}
    done = python("-c", code, HOME="/proc/nothing", TMPDIR=tmp_path, **gone)
    assert Path(done.stdout.strip()).is_relative_to(tmp_path)
    (line,) = done.stderr.splitlines()
    assert line.startswith("Cannot use /proc/nothing")
    assert list(tmp_path.iterdir()) == []
