"""The command line: commands, options, help texts, and views of datasets."""

from ssvm_bench.cli.commands import main

__all__ = ["main"]
