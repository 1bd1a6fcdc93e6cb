"""Files of examples that `ssvm_bench.datasets.stream` reads in chunks.

``layout`` says how examples lie in a file, ``export`` writes one, ``jitter`` deforms images on the
way.
"""
