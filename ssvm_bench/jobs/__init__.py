"""Executes the runs of an experiment: several at once, on this machine or on others.

============  ==============================================================================
``local``     processes of this machine: :mod:`ssvm_bench.jobs.processes`
``dask``      the workers of a dask scheduler, or of a cluster of its own
``ray``       the workers of a ray cluster, or of one of its own
``submitit``  an array job of SLURM
============  ==============================================================================

Each backend is an `Executor`. One loop, `Dispatcher.make`, submits jobs to it and receives their
results (:mod:`ssvm_bench.jobs.dispatch`). Every run is executed by a separate process with one
thread. Nodes share the results folder. There, the process that executes a run locks it, and resumes
it from its checkpoint if an earlier process has died: a job may be started twice, but no run is
executed twice.
"""
