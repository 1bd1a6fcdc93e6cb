"""Archives of pictures: what is read from them, and how they are prepared when a run needs them."""

import gzip
import io
import sys
import tarfile
import threading
import time
from dataclasses import replace

import cv2
import numpy as np
import pytest
from program import call, error_of, real_data, small_pictures
from raw_data import packed

from ssvm_bench.base.errors import ConfigError
from ssvm_bench.base.files import locked
from ssvm_bench.base.random import permutation
from ssvm_bench.datasets import reading, sources, stanford, weizmann
from ssvm_bench.datasets.base import SourceConfig
from ssvm_bench.datasets.images import pictures as picture_archives
from ssvm_bench.datasets.images import preparation, scenes
from ssvm_bench.datasets.reading import ContentError


def jpeg(pixels):
    """Return the file of a picture (h, w, 3) in RGB, or (h, w) in grey."""
    pixels = np.ascontiguousarray(pixels[..., ::-1] if pixels.ndim == 3 else pixels)
    return cv2.imencode(".jpg", pixels, [cv2.IMWRITE_JPEG_QUALITY, 100])[1].tobytes()


def plain(height, width, colour):
    return jpeg(np.broadcast_to(np.array(colour, np.uint8), (height, width, np.size(colour))))


def horses(numbers=("010", "002", "001"), folder="weizmann_horse_db/"):
    """Return the files of an archive; the mask of number k has k grey columns."""
    members = {f"{folder}README": b"", f"{folder}gray/horse009.jpg": b"not looked at"}
    for number in numbers:
        mask = np.zeros((24, 32), np.uint8)
        mask[:, : int(number)] = 255
        members[f"{folder}figure_ground/horse{number}.jpg"] = jpeg(mask)
        members[f"{folder}rgb/horse{number}.jpg"] = plain(48, 64, (200, 100, int(number) % 256))
    return members


def regions(rows):
    return "".join(" ".join(map(str, row)) + " \n" for row in rows).encode()


SCENE = [[-1, 0, 1, 2], [3, 4, 5, 6], [7, 7, 7, -1]]
PHOTOGRAPH = plain(3, 4, (0, 0, 0))


def outdoors():
    members = {"iccv09Data/horizons.txt": b"0"}
    for name in ("9000", "0001", "abc"):
        members[f"iccv09Data/labels/{name}.regions.txt"] = regions(SCENE)
        members[f"iccv09Data/labels/{name}.layers.txt"] = b"not looked at"
        members[f"iccv09Data/images/{name}.jpg"] = plain(3, 4, (10, 250, 10))
    return members


MEMBERS = {weizmann.parse: horses, stanford.parse: outdoors}


@pytest.mark.parametrize("mode", ["w:gz", "w"])
@pytest.mark.parametrize("folder", ["", "./", "a/b c/"])
def test_weizmann_reads_photographs_and_masks(tmp_path, mode, folder):
    pictures = weizmann.parse(packed(tmp_path / "a", horses(folder=folder), mode))
    assert pictures.names == ("horse001", "horse002", "horse010")
    for k, picture in zip((1, 2, 10), pictures, strict=True):
        assert picture.rgb.shape == (24, 32, 3)  # the size of the mask
        assert picture.rgb.dtype == picture.truth.dtype == np.uint8
        assert np.abs(picture.rgb.astype(int) - (200, 100, k)).max() <= 3  # not BGR
        assert np.array_equal(picture.truth, np.broadcast_to(np.arange(32) < k, (24, 32)))


@pytest.mark.parametrize(("grey", "label"), [(0, 0), (126, 0), (127, 0), (128, 1), (255, 1)])
def test_what_is_lighter_than_127_is_horse(grey, label):
    assert (weizmann.decode((PHOTOGRAPH, plain(3, 4, grey))).truth == label).all()


def test_a_smaller_photograph_grows_to_the_size_of_the_mask():
    picture = weizmann.decode((plain(9, 12, (50, 60, 70)), plain(30, 40, 255)))
    assert picture.rgb.shape == (30, 40, 3)
    assert np.abs(picture.rgb.astype(int) - (50, 60, 70)).max() <= 3


def test_the_black_photograph_is_left_out(tmp_path):
    members = horses(("002", "318", "327"))
    assert weizmann.parse(packed(tmp_path / "a", members)).names == ("horse002", "horse327")
    del members["weizmann_horse_db/figure_ground/horse318.jpg"]
    with pytest.raises(ContentError, match=r"no figure_ground/horse318\.jpg"):
        weizmann.parse(packed(tmp_path / "a", members))


def test_views_are_the_photographs_mirrored_and_cropped(tmp_path):
    pictures = weizmann.parse(packed(tmp_path / "a", horses()))
    views = weizmann.viewed(pictures)
    assert len(views) == weizmann.VIEWS * len(pictures) == 24
    assert len({repr(encoded) for encoded in views.encoded}) == 24
    assert views.names[2:4] == ("horse010 view 0", "horse001 view 1")
    whole, corner, right, below, mirrored, *_ = (views[k] for k in range(2, 24, 3))
    assert all((a == b).all() for a, b in zip(whole, pictures[2], strict=True))
    assert corner.truth.shape == corner.rgb.shape[:2] == (18, 24)
    assert (corner.truth == whole.truth[:18, :24]).all()
    assert (right.truth == whole.truth[:18, 8:]).all()
    assert (below.rgb == whole.rgb[6:, 4:28]).all()
    assert (mirrored.rgb == whole.rgb[:, ::-1]).all()
    assert weizmann.RAW_VIEWS.cache_place("real") != weizmann.RAW.cache_place("real")
    known = packed(tmp_path / "b", horses())
    assert weizmann.RAW_VIEWS.read(known).sha256 == weizmann.RAW.read(known).sha256


@pytest.mark.parametrize("mode", ["w:gz", "w"])
def test_stanford_reads_photographs_and_labels(tmp_path, mode):
    pictures = stanford.parse(packed(tmp_path / "a", outdoors(), mode))
    assert pictures.names == ("0001", "9000", "abc")
    for picture in pictures:
        assert np.abs(picture.rgb.astype(int) - (10, 250, 10)).max() <= 3
        assert picture.truth.dtype == np.uint8
        assert picture.truth.tolist() == [[8, 0, 1, 2], [3, 4, 5, 6], [7, 7, 7, 8]]


def test_a_turned_camera_turns_no_picture():
    """The labels belong to the pixels as they are stored; EXIF may want them turned."""
    exif = "ffd8ffe100224578696600004d4d002a00000008000101120003000000010006"
    turned = bytes.fromhex(exif) + bytes(6) + PHOTOGRAPH[2:]
    assert cv2.imdecode(np.frombuffer(turned, np.uint8), cv2.IMREAD_COLOR).shape == (4, 3, 3)
    assert stanford.decode((turned, regions(SCENE))).rgb.shape == (3, 4, 3)


@pytest.mark.parametrize("parse", MEMBERS)
def test_damaged_archives_are_recognised(tmp_path, parse):
    good = packed(tmp_path / "good", MEMBERS[parse]()).read_bytes()
    unpacked = packed(tmp_path / "good", MEMBERS[parse](), "w").read_bytes()
    middle = len(good) // 2
    for content in [
        good[:middle],
        good[:-4],
        good[:middle] + b"\x00\xff" * 8 + good[middle + 16 :],
        good[:-8] + bytes(8),  # its checksum
        unpacked[: unpacked.index(b"\xff\xd8") + 20],  # in the middle of a picture
        *(b"", b"\x1f\x8b", b"<!DOCTYPE html>\n<p>404 Not Found</p>\n"),
    ]:
        (tmp_path / "bad").write_bytes(content)
        with pytest.raises(ContentError, match="the archive is damaged or cut short"):
            parse(tmp_path / "bad")


@pytest.mark.parametrize(
    ("parse", "missing"),
    [
        (weizmann.parse, "rgb/horse002.jpg"),
        (weizmann.parse, "figure_ground/horse002.jpg"),
        (stanford.parse, "images/0001.jpg"),
        (stanford.parse, "labels/0001.regions.txt"),
    ],
)
def test_a_file_that_is_missing_or_there_twice_is_named(tmp_path, parse, missing):
    members = MEMBERS[parse]()
    (name,) = (name for name in members if name.endswith(missing))
    kept = {other: members[other] for other in members if other != name}
    with pytest.raises(ContentError, match=f"the archive has no {missing}$"):
        parse(packed(tmp_path / "a", kept))
    with pytest.raises(ContentError, match=f"other/{missing} twice"):
        parse(packed(tmp_path / "a", {**members, f"other/{missing}": b""}))


def test_an_archive_is_known_by_what_is_read_of_it(tmp_path):
    known = weizmann.RAW.read(packed(tmp_path / "a", horses())).sha256
    more = {"other/README": b"of no concern", **horses()}
    assert weizmann.RAW.read(packed(tmp_path / "b", more)).sha256 == known
    for other in (horses(("001", "002")), horses(("001", "002", "004"))):
        assert weizmann.RAW.read(packed(tmp_path / "c", other)).sha256 != known


@pytest.mark.parametrize("bomb", ["zeros", "members", "member", "name"])
def test_an_archive_that_would_fill_the_memory_is_refused(tmp_path, monkeypatch, bomb):
    monkeypatch.setattr(picture_archives, "MOST", 1 << 22)
    monkeypatch.setattr(picture_archives, "MOST_MEMBERS", 100)
    path, header = tmp_path / "a", tarfile.TarInfo("rgb/horse001.jpg")
    if bomb == "zeros":
        header = tarfile.TarInfo("a")
        header.size = 1 << 23
        path.write_bytes(gzip.compress(header.tobuf() + bytes(1 << 23)))
    elif bomb == "members":
        path.write_bytes(b"".join(tarfile.TarInfo(f"{k}").tobuf() for k in range(200)))
    else:
        header.size = 1 << 30
        header.type = tarfile.REGTYPE if bomb == "member" else tarfile.GNUTYPE_LONGNAME
        path.write_bytes(header.tobuf() + bytes(1 << 20))
    with pytest.raises(ContentError, match=r"more than|has 1073741824 bytes|header of"):
        weizmann.parse(path)


def test_a_picture_of_too_many_pixels_is_refused(monkeypatch):
    monkeypatch.setattr(picture_archives, "MOST", 1 << 22)
    png = cv2.imencode(".png", np.zeros((3000, 3000), np.uint8))[1].tobytes()
    with pytest.raises(ContentError, match=r"is too large \(3000 × 3000 pixels\)"):
        picture_archives.decoded(png, colour=True, what="photograph")


# pixels that no camera has: the size in the header of a JPEG file
HUGE = plain(8, 8, 0).replace(b"\x00\x08\x00\x08", b"\xff\xff\xff\xff")


@pytest.mark.parametrize("rubbish", [b"", b"GIF89a", plain(8, 8, 0)[:40], HUGE])
def test_what_is_no_picture_is_named(rubbish):
    with pytest.raises(ContentError, match="the photograph rgb cannot be decoded"):
        weizmann.decode((rubbish, PHOTOGRAPH))
    with pytest.raises(ContentError, match="the mask figure_ground cannot be decoded"):
        weizmann.decode((PHOTOGRAPH, rubbish))
    with pytest.raises(ContentError, match="the photograph cannot be decoded"):
        stanford.decode((rubbish, regions(SCENE)))


def test_a_photograph_and_a_mask_of_other_shapes_are_named():
    with pytest.raises(ContentError, match=r"another shape \(40 × 30\) than .* \(30 × 40\)"):
        weizmann.decode((plain(40, 30, (0, 0, 0)), plain(30, 40, 0)))


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        (b"", "0 lines, expected 3"),
        (regions(SCENE[:2]), "2 lines, expected 3"),
        (regions([*SCENE, SCENE[0]]), "4 lines, expected 3"),
        (regions([SCENE[0], SCENE[1][:3], SCENE[2]]), "line 2: 3 labels, expected 4"),
        (regions([*SCENE[:2], [*SCENE[2], 0]]), "line 3: 5 labels, expected 4"),
        (regions(np.transpose(SCENE)), "4 lines, expected 3"),
        (regions(np.array(SCENE) + 1), r"labels 0 … 8, expected −1 … 7"),
        (regions(np.array(SCENE) - 1), r"labels -2 … 6, expected −1 … 7"),
        *(
            (regions(SCENE).replace(b"5", wrong), f"not a number.*{shown}")
            for wrong, shown in [(b"x", "x"), (b"nan", "nan"), (b"2.5", "2.5")]
        ),
        *((regions(SCENE).replace(b"5", wrong), "not a number") for wrong in (b"9" * 20, b"\xff")),
    ],
)
def test_labels_that_are_wrong_are_refused(labels, message):
    with pytest.raises(ContentError, match=f"regions.txt.*{message}"):
        stanford.decode((PHOTOGRAPH, labels))


N = 4
LOCK, KEPT = "weizmann/preparing-synthetic.lock", "weizmann/stand-in.ssvm-bench.npz"


@pytest.fixture(autouse=True)
def user(tmp_path, monkeypatch):
    """Return the user's cache folder, which is new; this process prepares few pictures itself."""
    small_pictures(monkeypatch, N)
    monkeypatch.setattr(reading, "user_folder", lambda: tmp_path / "user")
    monkeypatch.setenv("SSVM_BENCH_DATA", str(tmp_path / "data"))
    return tmp_path / "user"


class Seen(list):
    """Numbers of the pictures that have been decoded; the process is killed when there are many."""

    too_many = None


@pytest.fixture
def seen():
    return Seen()


@pytest.fixture
def raw(seen):
    """Return the Weizmann horses; the synthetic ones count what is decoded."""

    def figures(n):
        pictures = scenes.figures(n)

        def decode(encoded):
            seen.append(encoded[1])
            if len(seen) == seen.too_many:
                raise KeyboardInterrupt
            return pictures.decode(encoded)

        return replace(pictures, decode=decode)

    return replace(weizmann.RAW, scenes=figures)


def load(raw, source="synthetic", n=None):
    return sources.load(SourceConfig(raw.dataset, raw.dataset, source, n), raw, "graph", 2)


def files(folder):
    found = (path for path in folder.rglob("*") if path.is_file() and path.suffix != ".lock")
    return sorted(str(path.relative_to(folder)) for path in found)


def test_synthetic_pictures_are_prepared_once(raw, seen, user):
    first = load(raw)
    assert (first.source, first.n) == ("synthetic", N)
    assert seen == [*range(N)] * 2  # for the superpixels, and for the features
    assert load(raw).fingerprint == first.fingerprint
    assert len(seen) == 2 * N
    assert files(user) == [KEPT]
    assert not (user / "weizmann" / "preparing-synthetic").exists()


def test_a_preparation_that_was_killed_goes_on(raw, seen, user):
    whole = load(raw)
    content = (user / KEPT).read_bytes()
    (user / KEPT).unlink()
    seen.clear()
    seen.too_many = N + 2  # while the features of the second picture are made
    with pytest.raises(KeyboardInterrupt):
        load(raw)
    assert files(user / "weizmann" / "preparing-synthetic")
    assert not (user / KEPT).exists()
    seen.clear()
    seen.too_many = None
    assert load(raw).fingerprint == whole.fingerprint
    assert seen == [*range(1, N)]  # all superpixels were there, and the features of one picture
    assert (user / KEPT).read_bytes() == content
    assert files(user) == [KEPT]


def test_a_second_process_waits_for_the_first(raw, seen, user, monkeypatch):
    expected = load(raw)
    (user / KEPT).rename(user / "finished")
    seen.clear()
    told, found = io.StringIO(), []
    monkeypatch.setattr(sys, "stderr", told)
    other = threading.Thread(target=lambda: found.append(load(raw)))
    with locked(user / LOCK):
        other.start()
        deadline = time.monotonic() + 60
        while not told.getvalue() and time.monotonic() < deadline:
            time.sleep(0.01)
        assert other.is_alive()
        (user / "finished").rename(user / KEPT)
    other.join(60)
    assert told.getvalue() == "Another process is preparing weizmann; waiting for it.\n"
    assert found[0].fingerprint == expected.fingerprint
    assert seen == []


@pytest.mark.parametrize("obstacle", ["a file", "read-only"])
def test_no_place_for_the_prepared_file_is_no_failure(raw, user, monkeypatch, obstacle):
    expected = load(raw).fingerprint
    if obstacle == "a file":
        monkeypatch.setattr(reading, "user_folder", lambda: user / KEPT / "below")
        assert load(raw).fingerprint == expected
        assert files(user) == [KEPT]
    else:
        (user / KEPT).unlink()
        (user / "weizmann").chmod(0o555)
        try:
            assert load(raw).fingerprint == expected
        finally:
            (user / "weizmann").chmod(0o755)
        assert files(user) == []


def test_another_version_or_parameter_is_prepared_anew(raw, seen, monkeypatch):
    before = load(raw)
    assert load(replace(raw, version=2)).fingerprint == before.fingerprint
    assert len(seen) == 4 * N
    coarse = replace(preparation.PARAMETERS, n_segments=100)
    monkeypatch.setattr(preparation, "PARAMETERS", coarse)
    fewer = load(raw)
    assert fewer.y.size < 0.8 * before.y.size
    monkeypatch.setattr(scenes, "VERSION", 0)  # pieces of other pictures are not used either
    assert load(raw).fingerprint != fewer.fingerprint
    monkeypatch.setattr(preparation, "N_SYNTHETIC", N - 1)
    assert load(raw).n == N - 1


def test_the_arrays_of_a_prepared_dataset(raw):
    dataset = load(raw)
    assert (dataset.structure, dataset.n_labels, dataset.n_features) == ("graph", 2, 649)
    assert (dataset.x.format, dataset.x.dtype) == ("csr", np.float32)
    assert dataset.x.shape == (dataset.offsets[-1], 649)
    assert set(np.unique(dataset.y)) == {0, 1}
    sizes = np.diff(dataset.offsets)
    assert ((sizes >= 100) & (sizes <= 250)).all()


def test_some_pictures_take_their_edges_along(raw):
    dataset, some = load(raw), load(raw, n=3)
    assert some.n == 3
    taken = permutation(N, np.random.PCG64(sources.SUBSET_SEED))[:3]
    assert dataset.take(taken).fingerprint == some.fingerprint
    for k, i in enumerate(taken):
        mine, of_all = slice(*some.offsets[k : k + 2]), slice(*dataset.offsets[i : i + 2])
        assert np.array_equal(some.y[mine], dataset.y[of_all])
        assert (some.x[mine] != dataset.x[of_all]).nnz == 0
        mine, of_all = slice(*some.edge_offsets[k : k + 2]), slice(*dataset.edge_offsets[i : i + 2])
        assert np.array_equal(some.edges[mine], dataset.edges[of_all])


def test_more_pictures_than_there_are_cost_no_preparation(raw, seen, tmp_path):
    for source_, n, most in (("synthetic", N + 1, N), ("auto", N + 1, N), ("real", 328, 327)):
        with pytest.raises(ConfigError, match=rf"dataset\.n_samples must be ≤ {most}\b.*got {n}"):
            load(raw, source_, n)
    assert seen == []
    message = error_of(call("run", "dataset=stanford", "dataset.n_samples=900"), 2)
    assert "715" in message
    assert "900" in message


def test_real_pictures_are_prepared_in_the_cache_folder(raw, user, tmp_path):
    raw = replace(raw, sha256={})
    archive = packed(raw.places()[0], horses())
    first = load(raw, "auto")
    assert (first.source, first.n) == ("real", 3)
    kept = user / "weizmann" / f"{archive.name}.ssvm-bench.npz"
    assert files(tmp_path / "data") == [f"weizmann/{archive.name}"]
    stamp = kept.stat().st_mtime_ns
    assert load(raw, "real").fingerprint == first.fingerprint
    assert kept.stat().st_mtime_ns == stamp
    packed(archive, horses(("005", "006")))
    assert load(raw, "real").n == 2


@pytest.mark.parametrize(
    ("name", "file"), [("weizmann", "weizmann_horse_db.tar.gz"), ("stanford", "iccv09Data.tar.gz")]
)
def test_real_pictures_that_are_missing(tmp_path, name, file):
    command = ("run", f"dataset={name}", "dataset.source=real", f"results_dir={tmp_path}")
    message = error_of(call(*command), 1)
    for part in (file, str(tmp_path / "data" / name), "dataset.source=synthetic"):
        assert part in message


@real_data("weizmann/weizmann_horse_db.tar.gz")
def test_real_weizmann(monkeypatch):
    monkeypatch.undo()
    pictures = weizmann.parse(weizmann.RAW.find())
    assert (len(pictures), pictures.names[0]) == (327, "horse001")
    assert "horse318" not in pictures.names
    shares = [picture.truth.mean() for picture in pictures]
    assert abs(np.mean(shares) - 0.252) < 0.001
    assert 0.05 < min(shares) < max(shares) < 0.432


@real_data("stanford/iccv09Data.tar.gz")
def test_real_stanford(monkeypatch):
    monkeypatch.undo()
    pictures = stanford.parse(stanford.RAW.find())
    assert (len(pictures), pictures.names[0]) == (715, "0000047")
    counts = np.zeros(9)
    for picture in pictures:
        assert picture.rgb.shape[:2] == picture.truth.shape
        counts += np.bincount(picture.truth.ravel(), minlength=9)
    shares = [0.1448, 0.1402, 0.2252, 0.0685, 0.0400, 0.2261, 0.0134, 0.1366, 0.0051]
    assert counts.sum() == 53_930_560
    assert counts / counts.sum() == pytest.approx(shares, abs=0.0001)


def test_an_archive_is_read_once_until_it_changes(tmp_path, monkeypatch):
    path, read = tmp_path / "pictures.tar", []
    monkeypatch.setattr(preparation.PictureFile, "get", lambda _: path)
    raw = replace(weizmann.RAW, open=lambda found: read.append(found.read_bytes()))
    for content in (b"one", b"other"):
        path.write_bytes(content)
        for _ in range(2):
            raw.pictures("real")
    assert read == [b"one", b"other"]
