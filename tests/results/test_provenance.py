"""What is said of the machine that computed a number."""

from pathlib import Path

import pytest

from ssvm_bench.results import provenance

VIRTUAL = """processor\t: 0
vendor_id\t: AuthenticAMD
cpu family\t: 26
model\t\t: 2
model name\t: AMD EPYC

processor\t: 1
model\t\t: 3
"""
ARM = "processor\t: 0\nBogoMIPS\t: 50.00\nCPU implementer\t: 0x41\n"


@pytest.fixture(autouse=True)
def of_today():
    """Forget what was read before, and after."""
    provenance.cpu_model.cache_clear()
    yield
    provenance.cpu_model.cache_clear()


@pytest.mark.parametrize(
    ("told", "said"),
    [(VIRTUAL, "AMD EPYC (family 26, model 2)"), (ARM, "aarch64"), ("", "aarch64")],
)
def test_generations_of_a_processor_have_different_names(monkeypatch, told, said):
    monkeypatch.setattr(provenance.platform, "system", lambda: "Linux")
    monkeypatch.setattr(provenance.platform, "processor", lambda: "")
    monkeypatch.setattr(provenance.platform, "machine", lambda: "aarch64")
    monkeypatch.setattr(Path, "read_text", lambda self, *_: told)

    assert provenance.cpu_model() == said
