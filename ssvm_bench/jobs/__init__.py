"""Making the runs of an experiment: several at once, on this machine or on others.

============  ==============================================================================
``local``     processes of this machine: :mod:`ssvm_bench.jobs.processes`
``dask``      the workers of a dask scheduler, or of a cluster of its own
``ray``       the same with ray
``submitit``  an array job of SLURM
============  ==============================================================================

Each of them is an `Executor`. One loop, `Dispatcher.make`, hands jobs to it and takes what became
of them (:mod:`ssvm_bench.jobs.dispatch`). Wherever a job is put, its run is made by a process of
its own with one thread. Nodes share the results folder. There, whoever makes a run locks it, and
resumes it from its checkpoint if the process before has died: a job may be started twice, but no
run is made twice.
"""
