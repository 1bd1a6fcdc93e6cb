"""Structural SVMs as scikit-learn estimators, trained on the data of a Python program.

.. code-block:: python

    from ssvm_bench import StructuredSVM

    tagger = StructuredSVM("chain", lam="200/n").fit(sentences, labels)
    tagger.predict(others)
    tagger.history_.plot("time", ["primal", "dual"])

:mod:`ssvm_bench.datasets.given` defines X and y for each structure. Examples become a `Dataset`.
From then on, everything is as in a run of the command line, without its files: the same options,
oracles, solvers and trace. Only the clock differs: it is ``work``, so that a ``random_state`` gives
the same model however busy the machine is. Other clocks measure time, and solvers with approximate
passes decide by the measured time.

A fit succeeds or changes nothing: it trains a copy, which replaces the estimator at the end.
"""

from ssvm_bench.estimator.svm import StructuredSVM

__all__ = ["StructuredSVM"]
