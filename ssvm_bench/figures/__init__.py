"""Figures and tables, made from traces only: nothing here runs a solver or loads data.

Two steps, kept apart so that a picture, a CSV file and a report show the same numbers:
`curves` turns traces into one tidy table, `draw` turns such a table into a figure, in the colours
of `style`.
"""
