"""The command line: commands, options, help texts, and what is shown of a dataset."""

from ssvm_bench.cli.commands import main

__all__ = ["main"]
