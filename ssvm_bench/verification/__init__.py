"""Whether a results folder says what its runs say: ``ssvm-bench verify``.

`verify` makes all checks, each a function of a :class:`~ssvm_bench.verification.finding.Subject`
that yields findings. None of them writes into the folder, or downloads anything.
"""
