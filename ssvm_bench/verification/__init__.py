"""Checks whether a results folder agrees with its runs: ``ssvm-bench verify``.

`verify` does all checks. Each is a function of a :class:`~ssvm_bench.verification.finding.Subject`
that yields findings. No check writes into the folder, or downloads anything.
"""
