"""The transduction paper: Laude et al. 2018."""
