"""Solvers: the slower the oracle, the more working sets gain.

BCFW, MP-BCFW and its fastest variant on the digits of scikit-learn, with an oracle call that counts
for 10 µs, 100 µs and 1 ms. Under `clock=work`, seconds are counted, so that this figure is the same
on every machine.
"""

import tempfile

import matplotlib.pyplot as plt

import ssvm_bench

SOLVERS = {"bcfw": "BCFW", "mpbcfw": "MP-BCFW", "mpbcfw_fast": "fastest variant"}
COSTS = {1e-5: "10 µs", 1e-4: "100 µs", 1e-3: "1 ms"}

figure, all_axes = plt.subplots(1, 3, figsize=(9, 3.3), sharey=True, constrained_layout=True)
with tempfile.TemporaryDirectory() as folder:
    for axes, (cost, words) in zip(all_axes, COSTS.items(), strict=True):
        for name, label in SOLVERS.items():
            run = ssvm_bench.run(
                *(f"solver={name}", "dataset=optdigits", "dataset.n_samples=500"),
                *("lam=1000/n", "budget.max_iterations=40"),
                *("clock=work", f"oracle.cost_call={cost}"),
                results_dir=folder,
            )
            trace = run.trace.iloc[1:]
            relative = trace.gap / trace.primal
            axes.loglog(trace.time, relative, label=label)
            reached = trace.time[relative <= 0.05]
            when = f"{reached.iloc[0]:.3f} s" if len(reached) else "more than 40 iterations"
            print(f"a call of {words:>6}, {label:15}: gap of 5 % after {when}")
        axes.axhline(0.05, color="black", linewidth=0.8, linestyle=":")
        axes.set(title=f"a call of {words}", xlabel="counted seconds")
all_axes[0].set(ylabel="relative gap", ylim=(1e-3, 1.5))
figure.legend(*all_axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=3)
plt.savefig("slow_oracles.svg")
