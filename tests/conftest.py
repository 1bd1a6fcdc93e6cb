"""Settings of all tests."""

import os

from hypothesis import settings

os.environ["SSVM_BENCH_OFFLINE"] = "1"  # here, not in a fixture: programs that tests start see it

# compilation makes the first example of a test slow; the same examples on every run
settings.register_profile("ssvm-bench", deadline=None, derandomize=True)
settings.load_profile("ssvm-bench")
