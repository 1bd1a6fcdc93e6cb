"""BCFW with inexact subproblems."""
