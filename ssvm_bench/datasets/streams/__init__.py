"""Files of examples that `ssvm_bench.datasets.stream` reads in chunks.

``layout`` defines how examples are stored in a file, ``export`` writes one, and ``jitter`` deforms
images during the export.
"""
