"""Every solver on every type of features, and on every built-in dataset, with a report.

The whole grid takes an hour or more, most of it compiling: ``pytest -m whole``. The normal suite has
a sample: every solver on one dataset, every dataset with one solver, every type of features.
"""

import numpy as np
import pytest
from helpers import dataset, iterated, random_chains, random_multiclass
from helpers import solver as made_of
from program import call, forget_data, small_pictures

from ssvm_bench.base.errors import ConfigError
from ssvm_bench.config import catalog
from ssvm_bench.datasets.checks import check_examples
