"""Chromium, where there is one: by `$SSVM_BENCH_CHROMIUM`, on the path, or Playwright's own."""

import os
import shutil
from contextlib import contextmanager
from pathlib import Path

import pytest

NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")


@contextmanager
def chromium():
    """Start Chromium; skip the tests that ask for it if there is none.

    Raises
    ------
    FileNotFoundError
        If `$SSVM_BENCH_CHROMIUM` names a file that is missing: who names one wants these tests.
    """
    sync_api = pytest.importorskip("playwright.sync_api")
    named = os.environ.get("SSVM_BENCH_CHROMIUM")
    binary = named or next(filter(None, map(shutil.which, NAMES)), None)
    with sync_api.sync_playwright() as playwright:
        binary = binary or playwright.chromium.executable_path
        if not Path(binary).exists():
            if named:
                raise FileNotFoundError(f"SSVM_BENCH_CHROMIUM={named}: there is no such file")
            pytest.skip("no Chromium")
        browser = playwright.chromium.launch(executable_path=binary, args=["--no-sandbox"])
        yield browser
        browser.close()
