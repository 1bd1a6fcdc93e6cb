"""How fast the solvers are on this machine, as ratios: ``python -m benchmarks``.

Seconds say more about the machine and its load than about the code, so every pass is compared
with a yardstick that is timed right beside it, in the same process and on one core: the BLAS
product of all parts' features with the unary weights, (parts × f) by (f × K) in float64 (of sparse
features: scipy's), which the scores of one pass need once.

=============  ===================================================================================
module         what it measures
=============  ===================================================================================
``passes``     exact and approximate passes, averaging, evaluation; in one process
``graphs``     calls of the oracles on graphs, and their share of the solvers' time
``processes``  start-up, a run's overhead, peak memory, compilation; each in a process of its own
``first_minute``: the first fit and the first prediction; each in a process of its own
``threads``    passes by several threads beside one; scheduled for more cores by its own command
``rivals``     time to an accuracy beside scikit-learn's LinearSVC; ``quadratic``: inner QPs, PIQP
``coordinate`` dual coordinate descent beside LIBLINEAR and ``mpbcfw_fast``
``gaps``       time of ``mpbcfw_fast`` to relative gaps
``chunking``   chunks of sentences beside CRFsuite (``crfsuite``: in a process of its own)
``serving``    one prediction, a batch, a loaded model and a fit beside CRFsuite and LinearSVC
``streams``    passes over a file of examples beside those in memory; peak memory
``dynamic_programs``: oracles of plates and landmarks; ``several_models``: P-BMRM beside BMRM
``jobs``       which of it is measured on which dataset: all, or what matters
``report``     the numbers with their targets: a table, and JSON
``against``    the same of another checkout, in turn with this one: ratios
=============  ===================================================================================
"""
