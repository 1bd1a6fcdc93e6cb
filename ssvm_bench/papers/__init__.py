"""What each paper says, and how our runs judge it.

`claim` says what a claim is, `cases` which runs it is judged by, `judging` judges, and
`claims_table` shows. A paper is a package: its claims, and the measures that they are judged by.
"""
