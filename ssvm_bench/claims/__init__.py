"""Judging the claims of papers by our runs; the papers are in :mod:`ssvm_bench.papers`.

`claim` says what a claim is, `cases` selects the runs that it is judged by, `judging` judges it,
and `display` shows the verdicts. `questions` and `fidelity` are about what a paper leaves open.
`measures` has measures that any paper may name, and `paper` says what a paper consists of.
"""
