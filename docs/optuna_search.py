"""Search options of runs with Optuna: each trial is a run, and finished ones are not repeated.

    pip install optuna
    python docs/optuna_search.py

The loss of the validation examples is minimised over λ, and the trace is where all runs have
theirs: ``ssvm_bench.load_runs("search")`` reads it.
"""

import ssvm_bench

DATA = ("dataset=ocr", "dataset.folds=[0]")  # the other nine folds are held out, as "test"


def objective(trial, words=DATA, results_dir="search"):
    """Return the loss of held-out examples with the options that a trial suggests."""
    options = {
        "lam": trial.suggest_float("lam", 1e-4, 1.0, log=True),
        "solver.T": trial.suggest_int("T", 2, 20),
    }
    run = ssvm_bench.run(
        "solver=mpbcfw", *words, "budget.gap_tol=0.01", results_dir=results_dir, **options
    )
    trial.set_user_attr("folder", str(run.folder))
    return float(run.summary["test_loss"])


if __name__ == "__main__":
    import optuna

    study = optuna.create_study(sampler=optuna.samplers.TPESampler(seed=0))
    study.optimize(objective, n_trials=30)
    print(study.best_params, study.best_value)
