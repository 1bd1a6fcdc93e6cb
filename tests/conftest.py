"""Settings of all tests."""

import os
import signal
import sys
from pathlib import Path

import pytest
from hypothesis import settings

os.environ["SSVM_BENCH_OFFLINE"] = "1"  # here, not in a fixture: programs that tests start see it

# workers of pytest, which this process starts, hash alike: they have to collect the same tests
os.environ.setdefault("PYTHONHASHSEED", "0")

# tests go on beside each other, a core each: more threads would wait for each other
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

# files are on disk after a failure of power, which no test sees: each would wait for milliseconds
os.fsync = lambda descriptor: None

# a shell starts what runs in the background deaf to Ctrl-C, and nohup to the end of a terminal;
# programs inherit what is ignored, and not what is handled
signal.signal(signal.SIGINT, signal.default_int_handler)
if signal.getsignal(signal.SIGHUP) == signal.SIG_IGN:
    signal.signal(signal.SIGHUP, lambda *_: None)

# compilation makes the first example of a test slow; the same examples on every run
settings.register_profile("ssvm-bench", deadline=None, derandomize=True, max_examples=50)
settings.load_profile("ssvm-bench")


def pytest_make_parametrize_id(val, argname):
    """Name a case by the size of its bytes: gzip writes the second in which it packs them.

    Workers of pytest that collect in two different seconds would have two different suites. A test
    that names its cases itself is not asked here: it gives gzip a time.
    """
    return f"{argname}-{len(val)}-bytes" if isinstance(val, bytes) else None


@pytest.fixture(autouse=True)
def _forgotten_folders(tmp_path_factory):
    """Leave no temporary folder of components to other tests: two may have a file of one name."""
    from ssvm_bench.config import registry

    before, temporary = registry.folders(), tmp_path_factory.getbasetemp()
    yield
    registry._PLUG_INS.__path__ = [
        str(one) for one in registry.folders() if one in before or temporary not in one.parents
    ]
    for name in registry._imported_names():
        if temporary in Path(getattr(sys.modules[name], "__file__", None) or "").parents:
            del sys.modules[name]


@pytest.fixture
def grid(tmp_path):
    """Return the file of an experiment of four runs."""
    from program import GRID

    file = tmp_path / "grid.yaml"
    file.write_text(GRID)
    return file


@pytest.fixture
def blank(monkeypatch):
    """Leave the figures empty: drawing takes a second, and is tested elsewhere."""
    from matplotlib.figure import Figure

    from ssvm_bench.figures import drawing

    monkeypatch.setattr(drawing, "draw_curves", lambda *args: Figure(figsize=(1, 1)))


@pytest.fixture(scope="module")
def own_cache(tmp_path_factory):
    """Let a file of tests have a cache folder of its own."""
    with pytest.MonkeyPatch.context() as patch:
        folder = tmp_path_factory.mktemp("cache")
        patch.setattr("ssvm_bench.datasets.reading.user_folder", lambda: folder)
        yield folder


@pytest.fixture(scope="module")
def picture_folder(tmp_path_factory):
    """Return the cache folder of the small datasets of images of a file of tests."""
    return tmp_path_factory.mktemp("pictures")


@pytest.fixture
def few_pictures(picture_folder, request, monkeypatch):
    """Let synthetic datasets of images have as few pictures as a file of tests says."""
    from program import forget_data, small_pictures

    monkeypatch.setattr("ssvm_bench.datasets.reading.user_folder", lambda: picture_folder)
    small_pictures(monkeypatch, request.module.N_PICTURES)
    yield
    forget_data()


@pytest.fixture(scope="module")
def browser():
    """Return Chromium; without one, the test is skipped."""
    from browser import chromium

    with chromium() as started:
        yield started
