"""What hatchling cannot know of the wheel: its version, its pins and its tag."""

from __future__ import annotations

import json
from importlib import metadata
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface
from hatchling.metadata.plugin.interface import MetadataHookInterface


class Pins(MetadataHookInterface):
    """The program's version, and exactly the packages with which kernels were compiled."""

    PLUGIN_NAME = "custom"

    def update(self, metadata: dict[str, Any]) -> None:
        """Set the version and the dependencies from the manifest."""
        manifest = Path(self.root, "ssvm_bench_kernels", "manifest.json")
        if not manifest.is_file():
            raise FileNotFoundError(f"{manifest} is missing: `make kernels` compiles and writes it")
        required = json.loads(manifest.read_text(encoding="utf-8"))["requires"]
        metadata["version"] = required["ssvm-bench"]
        pinned = ("ssvm-bench", "numba", "llvmlite")
        metadata["dependencies"] = [f"{name}=={required[name]}" for name in pinned]


class Tag(BuildHookInterface):
    """The tag of numba's wheel: one version of Python, and the systems that it runs on."""

    PLUGIN_NAME = "custom"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Set the tag of the wheel."""
        about = metadata.distribution("numba").read_text("WHEEL") or ""
        lines = [line.split() for line in about.splitlines()]
        tags = [words[1].split("-") for words in lines if words[:1] == ["Tag:"]]
        if not tags or tags[0][2] == "any":
            raise RuntimeError("numba is not from a wheel for this system: install it by pip")
        python, abi, _ = tags[0]
        systems = ".".join(sorted(system for _, _, system in tags))
        build_data.update(tag=f"{python}-{abi}-{systems}", pure_python=False)
