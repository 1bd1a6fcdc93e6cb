"""The MP-BCFW paper: Shah, Kolmogorov and Lampert, CVPR 2015."""
