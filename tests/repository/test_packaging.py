"""What is installed: extras and what lacks them, the wheel, the lock file."""

import json
import re
import runpy
import shlex
import shutil
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import llvmlite
import numba
import numpy as np
import pytest
from program import call, config_of, environment, error_of

import ssvm_bench
from ssvm_bench import __main__ as program
from ssvm_bench import __version__
from ssvm_bench.base import errors
from ssvm_bench.base.errors import ConfigError, RunFailedError, needed
from ssvm_bench.cli.help import TOPICS
from ssvm_bench.datasets import horseseg, picture_table, sources, structures
from ssvm_bench.datasets.images import pictures, preparation
from ssvm_bench.oracles import cut

NO_EDGES = cut.graphs(np.zeros((0, 2), int), np.zeros(2, int), np.array([0, 1]))
ROOT = Path(__file__).parents[2]
ABOUT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
EXTRAS = ABOUT["optional-dependencies"]


def without(package, monkeypatch):
    """Let an import of a package fail, as where it is not installed."""
    for name in [name for name in sys.modules if name.partition(".")[0] == package]:
        monkeypatch.setitem(sys.modules, name, None)
    monkeypatch.setitem(sys.modules, package, None)


def install(extra):
    """Return the command that installs an extra into the environment of these tests."""
    return shlex.join([sys.executable, "-m", "pip", "install", "-e", f"{ROOT}[{extra}]"])


@pytest.mark.parametrize(
    ("package", "extra", "words"),
    [
        ("distributed", "dask", ("experiment", "main", "--backend=dask")),
        ("distributed", "dask", ("run", "parallel.address=tcp://127.0.0.1:9")),
        ("ray", "ray", ("experiment", "main", "--backend=ray")),
    ],
)
def test_a_command_that_lacks_a_package_says_how_to_get_it(package, extra, words, monkeypatch):
    without(package, monkeypatch)
    said = error_of(call(*words), status=2)
    assert f" needs the package {package}, which is not installed: " in said
    assert said.endswith(install(extra))


@pytest.mark.parametrize(
    ("package", "extra", "use"),
    [
        ("cv2", "images", lambda: preparation.gradients(np.zeros((9, 9, 3), np.uint8), 4, 4.0)),
        ("cv2", "images", lambda: pictures.decoded(b"", colour=True, what="picture")),
        ("skimage", "images", lambda: structures.pattern_maps(np.zeros((1, 9, 9), np.uint8))),
        ("h5py", "horseseg", lambda: horseseg.hdf5(Path("horses")).__enter__()),
        ("maxflow", "graphs", lambda: cut.Minimiser(NO_EDGES, 1, "pymaxflow")),
    ],
)
def test_data_and_oracles_that_lack_a_package_say_how_to_get_it(package, extra, use, monkeypatch):
    without(package, monkeypatch)
    message = rf"needs the package {package}[\w.]*, which .*: {re.escape(install(extra))}$"
    with pytest.raises(ConfigError, match=message):
        use()


def test_a_package_that_cannot_be_loaded_is_another_failure(tmp_path, monkeypatch):
    (tmp_path / "broken_package.py").write_text("raise ImportError('libx.so: not found')\n")
    monkeypatch.syspath_prepend(tmp_path)
    message = rf"libx\.so: not found\. Install it again: {re.escape(install('images'))}"
    with pytest.raises(RunFailedError, match=message), needed("images", "Reading pictures"):
        import broken_package  # noqa: F401


def test_the_advice_is_a_command_of_this_program_wherever_it_is_installed(monkeypatch):
    monkeypatch.setattr(errors, "_CHECKOUT", Path("/opt/site-packages"))
    monkeypatch.setattr(sys, "executable", "/home/me/my venv/bin/python")
    without("cv2", monkeypatch)
    with pytest.raises(ConfigError) as error:
        errors.check_installed("images", "dataset=weizmann")
    words = shlex.split(str(error.value).partition("installed: ")[2])
    assert words == ["/home/me/my venv/bin/python", "-m", "pip", "install", "ssvm-bench[images]"]


SYNTHETIC = "dataset.source=synthetic"
FURTHER = {
    "weizmann": ("cv2", "images", ("dataset=usps,weizmann", SYNTHETIC)),
    "stanford": ("skimage", "images", ("dataset=usps,stanford", SYNTHETIC)),
    "horseseg": ("cv2", "images", ("dataset=usps,horseseg", SYNTHETIC)),
    "davis": ("cv2", "images", ("dataset=usps,davis_car_shadow", SYNTHETIC)),
    "scribbles": ("skimage", "images", ("dataset=usps,scribbles", SYNTHETIC)),
    "landmarks": ("skimage", "images", ("dataset=usps,landmarks",)),
    "engine": ("maxflow", "graphs", ("dataset=weizmann", SYNTHETIC, "oracle.engine=pymaxflow")),
    "address": ("distributed", "dask", ("dataset=usps", "parallel.address=tcp://127.0.0.1:9")),
}


@pytest.mark.parametrize("case", FURTHER)
@pytest.mark.parametrize("command", ["experiment", "run"])
def test_extras_are_looked_for_before_the_first_run(case, command, tmp_path, monkeypatch):
    """The runs that need none come first, and are not made either."""
    package, extra, words = FURTHER[case]
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))  # nothing is kept there
    without(package, monkeypatch)
    file, results = tmp_path / "some.yaml", tmp_path / "results"
    file.write_text("grid: {solver: bcfw, seed: [0, 1], budget.max_iterations: 1}\n")
    first = ("experiment", file) if command == "experiment" else ("run", "-m", "seed=0,1")
    said = error_of(call(*first, *words, f"results_dir={results}"), status=2)
    assert f"needs the package {package}, which is not installed" in said
    assert said.endswith(install(extra))
    assert not any(results.rglob("*.parquet"))


def test_data_that_are_kept_need_no_extra(tmp_path, monkeypatch):
    def extra(*words):
        return sources.extra_of(config_of(tmp_path, data=words).dataset)

    for name in ("weizmann", "stanford", "davis_bmx_trees", "horseseg", "landmarks"):
        monkeypatch.setattr(sources, "kept_in", lambda *_: None)
        monkeypatch.setattr(picture_table, "stored_key", lambda _: "")
        assert extra(f"dataset={name}") == "images"  # there is no raw file
        monkeypatch.setattr(sources, "kept_in", lambda *_: Path("kept"))
        monkeypatch.setattr(picture_table, "stored_key", lambda _: "landmarks drawn v1")
        assert extra(f"dataset={name}") == ""
    assert extra("dataset=horseseg", "dataset.source=real") == ""
    monkeypatch.setattr(sources, "kept_in", lambda *_: None)
    assert extra("dataset=horseseg", "dataset.source=real") == "horseseg"
    for name in ("usps", "ocr", "mnist", "plates", "moons", "ssl_bci"):
        assert extra(f"dataset={name}") == ""


def test_what_has_finished_needs_no_extra(tmp_path, monkeypatch):
    """Runs that an experiment only looks up load no data."""
    file, options = tmp_path / "some.yaml", (SYNTHETIC, f"results_dir={tmp_path}")
    file.write_text("grid: {dataset: usps, solver: bcfw, budget.max_iterations: 1}\n")
    assert call("experiment", file, *options).exit_code == 0
    monkeypatch.setattr(sources, "extra_of", lambda _: "images")
    without("cv2", monkeypatch)
    assert call("experiment", file, *options).exit_code == 0
    error_of(call("experiment", file, *options, "seed=1"), status=2)


def test_the_conda_recipe_needs_what_the_package_needs():
    """By names and lowest versions; PyMaxflow, which is GPL-3, is no dependency there."""
    lines = (ROOT / "docs/conda/meta.yaml").read_text(encoding="utf-8").splitlines()
    there = [line.removeprefix("    - ") for line in lines if line.startswith("    - ")]
    ours = [
        re.sub(r"^([\w-]+)", r"\1 ", of.partition(";")[0].strip()) for of in ABOUT["dependencies"]
    ]
    ours = [of.replace("matplotlib ", "matplotlib-base ") for of in ours if "pymaxflow" not in of]
    assert sorted(there) == sorted([*ours, f"python {ABOUT['requires-python']}", "__unix"])


def test_an_installation_that_has_grown_is_found(monkeypatch):
    """The real one takes an environment of its own, and is measured in CI."""
    monkeypatch.syspath_prepend(ROOT / "docs")
    footprint = runpy.run_path(str(ROOT / "docs" / "footprint.py"))
    before = {"package [MB]": 4.0, "import [times]": 2.0}
    compared, share = footprint["compared"], footprint["OTHERWISE"]
    of_package = footprint["GROWTH"]["package [MB]"]
    most = {"package [MB]": 4.0 * of_package, "import [times]": 2.0 * share}
    lines, grown = compared(most, before)
    assert (lines[1], grown) == (f"import [times]: {2 * share:g}, {share:.2f} times that", [])
    for name, factor in (("package [MB]", of_package), ("import [times]", share)):
        assert compared({**before, name: 1.01 * factor * before[name]}, before)[1] == [name]
    stored = json.loads((ROOT / "docs" / "footprint.json").read_text(encoding="utf-8"))
    assert stored["version"] in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    workflow = (ROOT / ".github/workflows/tests.yml").read_text(encoding="utf-8")
    assert f'python-version: "{stored["python"]}" # that of docs/footprint.json' in workflow
    page = (ROOT / "docs" / "choices.md").read_text(encoding="utf-8")
    assert f"more than {share:g} times what" in page
    assert f"package alone more than {of_package:g} times" in page


def test_windows_gets_a_sentence(monkeypatch, tmp_path):
    monkeypatch.setattr(sys, "platform", "win32")
    with pytest.raises(SystemExit, match="error: ssvm-bench runs on Linux and macOS"):
        program.main()
    monkeypatch.delitem(vars(ssvm_bench), "StructuredSVM", raising=False)
    with pytest.raises(ImportError, match="in WSL"):
        ssvm_bench.StructuredSVM  # noqa: B018


def test_an_extra_that_is_asked_for_is_one():
    files = (ROOT / "ssvm_bench").rglob("*.py")
    text = "".join(file.read_text(encoding="utf-8") for file in files)
    asked = set(re.findall(r'needed\("(\w+)"', text))
    assert {"images", "horseseg", "graphs", "dask"} == asked
    assert {*asked, "ray", "slurm", "network", "all", "dev", "docs"} == set(EXTRAS)
    assert set(errors.EXTRAS) == {*asked, "ray"}


def test_the_lock_file_has_all_that_is_needed():
    lines = (ROOT / "experiments/requirements.lock").read_text(encoding="utf-8").splitlines()
    locked = {line.partition("==")[0] for line in lines if not line.startswith("#")}
    others = ("dev", "docs", "network")
    of_users = [part for name in EXTRAS if name not in others for part in EXTRAS[name][:1]]
    parts = (*ABOUT["dependencies"], *of_users)
    assert {re.match(r"[\w-]+", part)[0] for part in parts} <= locked


def build(target, source, place):
    """Build an sdist or a wheel."""
    command = (sys.executable, "-m", "hatchling", "build", "-t", target, "-d", place)
    subprocess.run(command, cwd=source, check=True, capture_output=True)


def test_a_wheel_made_of_the_sdist_runs_in_an_empty_folder(tmp_path):
    pytest.importorskip("hatch_fancy_pypi_readme")

    build("sdist", ROOT, tmp_path)
    (made,) = tmp_path.glob("*.tar.gz")
    subprocess.run(["tar", "-xzf", made], cwd=tmp_path, check=True)
    source = next(path for path in tmp_path.iterdir() if path.is_dir())
    assert {"CITATION.cff", "LICENSE"} <= {path.name for path in source.iterdir()}
    assert not [
        name for name in ("kernels", "results", "site", ".github") if (source / name).exists()
    ]
    build("wheel", source, tmp_path)
    place, empty = tmp_path / "site", tmp_path / "empty"
    with zipfile.ZipFile(next(tmp_path.glob("*.whl"))) as archive:
        archive.extractall(place)
    (about,) = place.glob("*.dist-info/METADATA")
    links = re.findall(r"\]\(([^)]*)\)", about.read_text(encoding="utf-8"))
    home = ABOUT["urls"]["Repository"].removeprefix("https://github.com/")
    files = re.compile(
        rf"https://(?:github|raw\.githubusercontent)\.com/{home}/(?:blob/)?v([^/]+)/(.+)"
    )
    found = [match for link in links if (match := files.fullmatch(link))]
    assert len(found) == len(links) > 20  # on the page of a package index, no link is relative
    assert {match[1] for match in found} == {__version__}
    if (ROOT / "results").is_dir():
        assert all((ROOT / match[2].partition("#")[0]).exists() for match in found)
    empty.mkdir()
    script = (
        f"import sys; sys.path.insert(0, {str(place)!r})\n"
        "import runpy, ssvm_bench; print(ssvm_bench.__file__, flush=True)\n"
        "runpy.run_module('ssvm_bench', run_name='__main__')"
    )
    nowhere = environment(SSVM_BENCH_DATA=None, XDG_CACHE_HOME=empty)  # the letters are on board
    calls = [
        ("mpbcfw_fast", "list"),
        ("6 missing", "experiment", "main", "--status"),
        ("6877 to train on of 52152 parts", "data", "card", "ocr"),
        ("no differences from the genuine data", "data", "check", "ocr"),
        *(("\n## ", "help", topic) for topic in TOPICS),
    ]
    for said, *words in calls:
        done = subprocess.run(
            (sys.executable, "-c", script, *words),
            cwd=empty, env=nowhere, capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        assert done.stdout.startswith(str(place))
        assert said in done.stdout, done.stdout


@pytest.mark.skipif(not (ROOT / "kernels").is_dir(), reason="only a checkout has its sources")
def test_a_wheel_of_kernels_is_for_one_python_and_needs_what_compiled_them(tmp_path):
    pytest.importorskip("hatchling")
    package, cache = "ssvm_bench_kernels", tmp_path / f"kernels-{'0' * 16}"
    ours = shutil.ignore_patterns(package, "__pycache__")
    source = shutil.copytree(ROOT / "kernels", tmp_path / "kernels", ignore=ours)
    shutil.copy(ROOT / "LICENSE", tmp_path)
    cache.mkdir()
    (cache / "a.kernel-0").write_bytes(b"machine code")
    (cache / ".lock").touch()
    runpy.run_path(str(source / "build.py"))["pack"](cache, source / package, ("generic", ""))
    build("wheel", source, tmp_path)
    (wheel,) = tmp_path.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        names = {name for name in archive.namelist() if name.startswith(f"{package}/")}
        about = archive.read(f"{package}-{__version__}.dist-info/METADATA").decode()
    python = f"cp{sys.version_info.major}{sys.version_info.minor}"
    assert wheel.name.startswith(f"{package}-{__version__}-{python}-{python}-")
    assert not wheel.name.endswith("-any.whl")
    files = ("LICENSE", "__init__.py", "manifest.json", f"{cache.name}/a.kernel-0")
    assert names == {f"{package}/{name}" for name in files}
    needed = {
        line.split(": ")[1] for line in about.splitlines() if line.startswith("Requires-Dist")
    }
    versions = (
        ("ssvm-bench", __version__),
        ("numba", numba.__version__),
        ("llvmlite", llvmlite.__version__),
    )
    assert needed == {f"{name}=={version}" for name, version in versions}
