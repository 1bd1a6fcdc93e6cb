"""Engines: the runs of an experiment beyond the processes of one machine.

============  ==============================================================================
``local``     processes of this machine: :mod:`ssvm_bench.runs.workers`
``dask``      the workers of a dask scheduler, or of a cluster of its own
``ray``       the same with ray
``submitit``  an array job of SLURM
============  ==============================================================================

All but the first have one path: `conductor` hands jobs (`contract`) to the engine and takes what
became of them; wherever the engine puts a job, `nodes.perform` makes its run, in a process of its
own with one thread. Nodes share the results folder. There, a run is locked by whoever makes it, and
goes on from its checkpoint when that one has died: so a job may be started twice, and no run is.
"""
