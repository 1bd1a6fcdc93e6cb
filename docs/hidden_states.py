"""Letters of two shapes each: chains with hidden states against chains without, on words of OCR.

    python docs/hidden_states.py

The test examples are one of three folds; the next one is to choose λ on; training is on the eight
others, or on one of them. Two states a letter start as clusters of its pictures. One round leaves
them, three choose them anew twice. `mpbcfw_fast` with `solver.in_out=null`, each convex problem to
a relative gap of 0.05. Errors are of letters, on each fold and on average; the table is kept in
``results/figures/hidden_states``.
"""

import time

import numpy as np
from stored import keep

from ssvm_bench import StructuredSVM
from ssvm_bench.config.compose import compose_runs
from ssvm_bench.runs.components import load_dataset

SPLITS, FIXED = 3, "30/n"
LAMS = {1: ("10/n", FIXED, "100/n"), 8: ("3/n", "10/n", FIXED)}
MODELS = {
    "letters alone": {},
    "two states, one round": {"solver.latent_rounds": 1},
    "two states, three rounds": {"solver.latent_rounds": 3},
}


def words():
    """Return the features and labels of all words, and their folds."""
    (config,) = compose_runs(["dataset=ocr", "dataset.source=real"])
    data = load_dataset(config.dataset)
    rows = data.x.astype(float), data.y.astype(int)
    return *(np.split(each, data.offsets[1:-1]) for each in rows), data.fold


def table():
    """Yield the rows of the table."""
    x, y, fold = words()

    def of(*folds):
        chosen = np.flatnonzero(np.isin(fold, folds))
        return [x[i] for i in chosen], [y[i] for i in chosen]

    for count, lams in LAMS.items():
        for name, options in MODELS.items():
            hidden = {"oracle": "latent_chain"} if options else {}
            hidden["options"] = {**options, "solver.in_out": None}
            begin, errors, picked = time.process_time(), [], []
            for split in range(SPLITS):
                train = of(*((split + 2 + k) % 10 for k in range(count)))
                choose, test = of((split + 1) % 10), of(split)
                fits = [
                    StructuredSVM("chain", lam=lam, gap_tol=0.05, **hidden).fit(*train)
                    for lam in lams
                ]
                best = int(np.argmax([model.score(*choose) for model in fits]))
                errors.append([1 - fits[k].score(*test) for k in (lams.index(FIXED), best)])
                picked.append(lams[best])
            spent = (time.process_time() - begin) / (SPLITS * len(lams))
            row = {"folds": count, "model": name, "seconds": spent, "lam": " ".join(picked)}
            for column, found in zip(("fixed", "chosen"), np.transpose(errors), strict=True):
                row |= {column: found.mean()}
                row |= {f"{column}_{split}": error for split, error in enumerate(found, 1)}
            yield row


if __name__ == "__main__":
    keep("hidden_states/hidden_states", table())
