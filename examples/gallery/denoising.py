"""Pictures: a graph of pixels, and minimum cuts.

Noisy pictures of blobs, a part a pixel, with edges between neighbours that prefer equal labels
(Potts). The oracle is a minimum cut. A threshold looks at each pixel alone. A wrong pixel of 576
costs 1/576, and Potts 0.004: weights of that size call for a λ like 10.
"""

import matplotlib.pyplot as plt
import numpy as np
from scipy.ndimage import gaussian_filter

from ssvm_bench import StructuredSVM

SIZE, NOISE = 24, 1.2
rng = np.random.default_rng(0)
places = np.arange(SIZE * SIZE).reshape(SIZE, SIZE)
pairs = [(places[:, :-1], places[:, 1:]), (places[:-1], places[1:])]
edges = np.vstack([np.stack([a.ravel(), b.ravel()], axis=1) for a, b in pairs])


def picture():
    """Return a graph of noisy pixels and the labels."""
    labels = (gaussian_filter(rng.normal(size=(SIZE, SIZE)), 3) > 0).astype(int).ravel()
    return (labels[:, None] + NOISE * rng.normal(size=(labels.size, 1)), edges), labels


X, y = zip(*[picture() for _ in range(16)], strict=True)
model = StructuredSVM("graph", potts=0.004, lam=10).fit(X[:12], y[:12])
found = model.predict(X[12:])

figure, rows = plt.subplots(4, 4, figsize=(6.4, 6.4), constrained_layout=True)
for k, (row, (pixels, _), truth, labels) in enumerate(
    zip(rows, X[12:], y[12:], found, strict=True)
):
    alone = pixels[:, 0] > 0.5
    shown = {"pixels": pixels[:, 0], "threshold": alone, "graph": labels, "truth": truth}
    for axes, (title, values) in zip(row, shown.items(), strict=True):
        axes.imshow(np.reshape(values, (SIZE, SIZE)), cmap="gray")
        axes.set(xticks=[], yticks=[], title="" if k else title)
    print(f"threshold {np.mean(alone == truth):.1%}, graph {np.mean(labels == truth):.1%} right")
plt.savefig("denoising.svg")
