"""Block-coordinate Frank–Wolfe: BCFW, MP-BCFW, and steps beyond the papers."""
