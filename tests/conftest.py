"""Settings of all tests."""

import os
import signal
from pathlib import Path

import platformdirs
from hypothesis import settings

os.environ["SSVM_BENCH_OFFLINE"] = "1"  # here, not in a fixture: programs that tests start see it

# a shell starts what runs in the background deaf to Ctrl-C, and programs of tests inherit that
signal.signal(signal.SIGINT, signal.default_int_handler)

# numba's cache on disk is not made for processes that compile the same function at the same time
worker = os.environ.get("PYTEST_XDIST_WORKER")
if worker:
    root = os.environ.get("NUMBA_CACHE_DIR") or platformdirs.user_cache_path("ssvm-bench") / "numba"
    os.environ["NUMBA_CACHE_DIR"] = str(Path(root) / worker)

# compilation makes the first example of a test slow; the same examples on every run
settings.register_profile("ssvm-bench", deadline=None, derandomize=True)
settings.load_profile("ssvm-bench")
