"""Text chunking from Python, in cells: train on a file, predict another, print the F1 of chunks.

    python docs/chunking.py train.txt.gz test.txt.gz

The files are those of CoNLL-2000, or others of that form: a word, its tag and its label in a line,
an empty line behind each sentence. Editors that know ``# %%`` run it cell by cell.
"""

# %% Read the sentences: a list of (word, tag, label) each
import gzip
import sys
from pathlib import Path

from ssvm_bench import StructuredSVM, chunk_scores


def sentences(path):
    """Return the sentences of a file."""
    raw = Path(path).read_bytes()
    text = gzip.decompress(raw) if path.endswith(".gz") else raw
    blocks = text.decode().strip().split("\n\n")
    return [[tuple(line.split()) for line in block.splitlines()] for block in blocks]


training, test = (sentences(path) for path in sys.argv[1:3])
print(f"{len(training)} sentences to train on, {len(test)} to test")

# %% Describe the words: names and values of features, those of CRFsuite's example for chunking
NEAR = [(-2,), (-1,), (0,), (1,), (2,), (-1, 0), (0, 1)]
MORE = [(-2, -1), (1, 2), (-2, -1, 0), (-1, 0, 1), (0, 1, 2)]
TEMPLATES = [(0, rows) for rows in NEAR] + [(1, rows) for rows in NEAR + MORE]


def features(sentence):
    """Return a mapping for each word: of words and tags around it, one, two or three at a time."""
    found = [{} for _ in sentence]
    for column, rows in TEMPLATES:
        name, entries = f"{column}{rows}", [line[column] for line in sentence]
        for here in range(max(-rows[0], 0), len(sentence) - max(rows[-1], 0)):
            found[here][name] = "/".join([entries[here + row] for row in rows])
    found[0]["first"] = found[-1]["last"] = True
    return found


def labels(sentence):
    """Return the label of each word."""
    return [line[-1] for line in sentence]


X, y = [features(each) for each in training], [labels(each) for each in training]

# %% Train to a duality gap of 1 %
model = StructuredSVM("chain", lam="200/n", bias=0, gap_tol=0.01, verbose=True)
model.fit(X, y)
print(model.history_[["iteration", "oracle_calls", "time", "primal", "dual", "gap"]].tail(3))

# %% Predict the test sentences
truth = [labels(each) for each in test]
predicted = model.predict([features(each) for each in test])
found = chunk_scores(truth, predicted)
print(found.round(4))
print(f"F1 {found.loc['all', 'f1']:.2%}")
