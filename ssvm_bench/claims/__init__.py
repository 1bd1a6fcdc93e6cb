"""How runs judge what a paper says; the papers are in :mod:`ssvm_bench.papers`.

`claim` says what a claim is, `cases` which runs it is judged by, `judging` judges, and `table`
shows the verdicts. `fidelity` is about what a paper leaves open. `comparisons` has
measures that several papers use, and `paper` what a paper offers.
"""
