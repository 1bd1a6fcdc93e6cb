"""``python -m ssvm_bench`` is ``ssvm-bench``."""

from ssvm_bench.cli.commands import main

main()
