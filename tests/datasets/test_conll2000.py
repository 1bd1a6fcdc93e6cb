"""CoNLL-2000: what is kept of its files, and the real files."""

import numpy as np
import pytest
from program import real_data
from raw_data import put_files

from ssvm_bench.base.errors import RunFailedError
from ssvm_bench.datasets import conll2000

TRAIN = b"He PRP B-NP\nsat VBD B-VP\n\nHe PRP B-NP\n"
TEST = b"She PRP B-NP\nsat VBD I-LST\n"


pytestmark = pytest.mark.usefixtures("own_cache")


def load(source):
    return conll2000.load(conll2000.Config("conll2000", "conll2000", source))


def test_sentences_to_train_on_and_held_out(tmp_path, monkeypatch):
    put_files(tmp_path, monkeypatch, conll2000, (TRAIN, TEST), 2)
    for _ in range(2):  # parsed, then from the cache
        data = load("real")
        names, x = np.array(data.vocabulary.features), data.x.toarray()
        assert data.offsets.tolist() == [0, 2, 3]
        assert [data.label_names[y] for y in data.y] == ["B-NP", "B-VP", "B-NP"]
        assert {"%x[0,0]=He", "%x[0,0]/%x[1,0]=He/sat", "__BOS__"} <= {*names[x[0] > 0]}
        assert not any("_B" in name for name in names if not name.startswith("__"))
        test = data.held_out["test"]
        assert "%x[0,0]=She" not in names
        assert {"%x[0,1]=PRP", "__BOS__"} <= {*names[test.x.toarray()[0] > 0]}
        assert (test.unseen.mask.tolist(), test.unseen.names) == ([False, True], ("I-LST",))
        assert data.unseen is None


def test_what_is_no_file_of_chunks_is_one_message(tmp_path, monkeypatch):
    for train, message in (
        (b"He PRP\n", r"train\.txt\.gz: line 1: 2 columns, expected 3"),
        (b"He PRP B-NP\nsat VBD\n", r"train\.txt\.gz: line 2: 2 columns, and line 1 has 3"),
        (b"He PRP B-XX\n", "'B-XX' in the training set is no label of a chunk"),
    ):
        put_files(tmp_path, monkeypatch, conll2000, (train, TEST), 2)
        with pytest.raises(RunFailedError, match=message):
            load("real")


@real_data("conll2000/train.txt.gz")
def test_real_conll2000():
    data = load("real")
    test = data.held_out["test"]
    assert (data.n, data.y.size, test.n, test.y.size) == (8936, 211727, 2012, 47377)
    # as many attributes as CRFsuite's example finds
    assert (data.n_labels, data.n_features) == (22, 335674)
    assert (test.unseen.mask.sum(), test.unseen.names) == (2, ("I-LST",))
