"""``python -m ssvm_bench`` is ``ssvm-bench``."""

from ssvm_bench.cli import main

main()
