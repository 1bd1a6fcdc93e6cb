"""Features of superpixels from a file of the user's."""

import numpy as np
import pytest

from ssvm_bench.base.errors import ConfigError
from ssvm_bench.papers.transduction.datasets.scenes import given_features

PICTURE, SUPERPIXEL = np.array([0, 0, 0, 2, 2]), np.array([0, 1, 2, 0, 1])
FEATURES = np.arange(10.0).reshape(5, 2)


def stored(folder, **changes):
    path = folder / "features.npz"
    arrays = {"picture": PICTURE, "superpixel": SUPERPIXEL, "features": FEATURES, **changes}
    np.savez(path, **{name: array for name, array in arrays.items() if array is not None})
    return path


def test_rows_are_found_by_picture_and_superpixel_in_any_order(tmp_path):
    order = np.random.default_rng(0).permutation(5)
    arrays = {"picture": PICTURE, "superpixel": SUPERPIXEL, "features": FEATURES}
    path = stored(tmp_path, **{name: array[order] for name, array in arrays.items()})
    found = given_features(path, PICTURE, SUPERPIXEL)
    assert found.dtype == np.float32
    np.testing.assert_array_equal(found, FEATURES)
    few = given_features(path, PICTURE[3:], SUPERPIXEL[3:])
    np.testing.assert_array_equal(few, FEATURES[3:])


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"picture": np.array([0, 0, 0, 1, 1])}, "lacks superpixel 0 of picture 2, of which it"),
        ({"superpixel": np.array([0, 1, 2, 0, 7])}, r"lacks superpixel 1 of picture 2 \(1 of 5"),
        ({"superpixel": np.array([0, 1, 1, 0, 1])}, "has a superpixel twice"),
        ({"superpixel": np.array([0, 1, 2, 0, -1])}, "superpixel of entry 4 is -1, and must be"),
        ({"picture": PICTURE[:4]}, r"picture must be an array of integers of shape \(5,\)"),
        ({"picture": PICTURE + 0.5}, r"picture must be an array of integers of shape \(5,\)"),
        ({"features": FEATURES.ravel()}, r"features must be an array of numbers of shape \(…, …\)"),
        ({"features": np.full((5, 2), "a")}, "features must be an array of numbers"),
        ({"features": np.full((5, 2), None)}, "pickled objects are refused"),
        ({"features": None}, "has no array"),
        ({"features": FEATURES * [np.nan, 1]}, "superpixel 0 of picture 0 is no finite number"),
        ({"features": FEATURES * 1e300}, "superpixel 0 of picture 0 is no finite number"),
    ],
)
def test_what_is_wrong_with_a_file_is_told(tmp_path, changes, message):
    with pytest.raises(ConfigError, match=message) as raised:
        given_features(stored(tmp_path, **changes), PICTURE, SUPERPIXEL)
    assert "dataset.features=" in str(raised.value)


def test_files_that_are_none(tmp_path):
    path = tmp_path / "features.npz"
    with pytest.raises(ConfigError, match=r"can(not|) be read"):
        given_features(path, PICTURE, SUPERPIXEL)
    for content in (b"", b"nonsense", stored(tmp_path).read_bytes()[:200]):
        path.write_bytes(content)
        with pytest.raises(ConfigError, match=r"can(not|) be read"):
            given_features(path, PICTURE, SUPERPIXEL)
    np.save(tmp_path / "one.npy", FEATURES)
    with pytest.raises(ConfigError, match=r"no \.npz that can be read"):
        given_features(tmp_path / "one.npy", PICTURE, SUPERPIXEL)
