"""Structural SVMs as estimators of scikit-learn: trained on what a Python program has.

.. code-block:: python

    from ssvm_bench import StructuredSVM

    tagger = StructuredSVM("chain", lam="200/n").fit(sentences, labels)
    tagger.predict(others)
    tagger.history_.plot("time", ["primal", "dual"])

What X and y are, by structure, :mod:`ssvm_bench.datasets.given` says. Examples become a `Dataset`,
and from there on everything is what a run of the command line does, files aside: the same options,
oracles, solvers and trace. But for the clock: ``work``, so that the same ``random_state`` gives the
same model however busy the machine is. Other clocks measure, and solvers with approximate passes
decide by what they measure.

A fit is all or nothing: it is made on a copy, which takes the place of the estimator at its end.
"""

from ssvm_bench.estimator.svm import StructuredSVM

__all__ = ["StructuredSVM"]
