"""Folders of pictures with a table: what is in them runs nothing and does not fill the memory."""

import os
import tracemalloc

import numpy as np
import pytest
from PIL import Image
from program import call, error_of
from raw_data import face_folder, plate_folder

from ssvm_bench.base import memory
from ssvm_bench.base.errors import RunFailedError
from ssvm_bench.datasets import landmarks, plates
from ssvm_bench.datasets.reading import MOST

EPS = b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 3 4\n%%EndComments\nshowpage\n%%EOF\n"
LOADERS = {"plates": (plate_folder, plates.load), "landmarks": (face_folder, landmarks.load)}


@pytest.fixture(params=LOADERS)
def kind(request):
    return request.param


@pytest.fixture
def config(kind, tmp_path):
    return LOADERS[kind][0](tmp_path / kind)


@pytest.fixture
def refused(kind, config):
    def refuse(message):
        with pytest.raises(RunFailedError, match=message):
            LOADERS[kind][1](config)

    return refuse


def test_no_picture_starts_another_program(config, refused, tmp_path, monkeypatch):
    called, programs = tmp_path / "called", tmp_path / "programs"
    programs.mkdir()
    for name in ("gs", "gswin32c", "djpeg", "cjpeg", "ppmtogif"):
        (programs / name).write_text(f"#!/bin/sh\necho $0 >> {called}\n")
        (programs / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{programs}{os.pathsep}{os.environ['PATH']}")
    for content in (EPS, b"\xc5\xd0\xd3\xc6" + EPS, b"%PDF-1.4\n", b"<svg/>", b"FORM"):
        (config.path / "0.png").write_bytes(content)
        refused(r"0\.png cannot be decoded")
    assert not called.exists()


@pytest.mark.parametrize("suffix", ["png", "bmp", "gif", "ppm"])
def test_a_picture_of_too_many_pixels_is_refused_by_its_header(config, refused, suffix):
    large = config.path / f"large.{suffix}"
    Image.new("1", (9000, 9000)).save(large)
    large.rename(config.path / "1.png")
    tracemalloc.start()
    refused(r"1\.png is too large \(9000 × 9000 pixels\)")
    assert tracemalloc.get_traced_memory()[1] < 5 * MOST  # not 81 MB of pixels beside the file
    tracemalloc.stop()


def test_pictures_that_do_not_fit_into_memory_are_not_decoded(config, refused, monkeypatch):
    for path in config.path.glob("*.png"):
        Image.new("1", (1000, 1000)).save(path)
    monkeypatch.setattr(memory, "available", lambda: 10 << 20)
    monkeypatch.setattr(Image.Image, "convert", None)
    refused(r"The \d images of .* would take about \d+ MB, and 10 MB are free")


def test_a_large_file_beside_the_pictures_is_not_read(config):
    known = config.found()
    with (config.path / "film").open("wb") as file:
        file.truncate(6 << 30)  # which takes no place on the disk
    tracemalloc.start()
    assert config.found() not in (None, known)
    assert tracemalloc.get_traced_memory()[1] < 2 * MOST
    tracemalloc.stop()


def table_of(config):
    return config.path / config.TABLES[0]


def test_lines_may_end_as_on_any_system(kind, config):
    expected = LOADERS[kind][1](config)
    text = table_of(config).read_bytes()
    for end in (b"\r", b"\r\n"):
        table_of(config).write_bytes(text.replace(b"\n", end))
        np.testing.assert_array_equal(LOADERS[kind][1](config).y, expected.y)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ((b"train", b"train" * 40_000), "field larger than field limit"),
        ((b"train", b'"train'), "has 2 fields|is no table with commas|split"),
        ((b"train", b"tr\0ain"), "split of 0.png is|NUL"),
        ((b"train", b"x" * 100_000), "the split of 0.png is 'xxx"),
        ((b"0.png", b"x" * 100_000 + b".png"), "there is no image 'xxx|name too long"),
        ((b"0.png", b"a\0b.png"), r"there is no image 'a|NUL"),
        ((b"image,", b"image" * 9000 + b","), "the head line of"),
    ],
)
def test_a_table_that_is_wrong_is_told_in_one_line(kind, config, change, message):
    text = table_of(config).read_bytes()
    table_of(config).write_bytes(text.replace(*change, 1))
    words = (f"dataset={kind}", f"dataset.path={config.path}", f"results_dir={config.path}")
    line = error_of(call("run", *words, "solver=bcfw"), 1)
    assert message.split("|")[0] in line or any(part in line for part in message.split("|"))
    assert len(line) < 700


def test_a_table_that_unpacks_to_many_lines_is_refused(config, refused, monkeypatch):
    with table_of(config).open("ab") as file:
        file.write(b"0.png,train\n" * 1_000_000)
    monkeypatch.setattr(memory, "available", lambda: 100 << 20)
    refused("The lines of .*csv would take about 6.. MB, and 105 MB are free")


@pytest.mark.parametrize("digits", ["9" * 5000, "9" * 12, "²", "-1", "1e3"])
@pytest.mark.parametrize("where", ["widths", "segments"])
def test_numbers_of_plates_are_bounded(tmp_path, where, digits):
    if where == "widths":
        config = plate_folder(tmp_path / "p", widths=f"a,2\nb,{digits}\nc,3\n")
        message = "the width of character 'b' is '"
    else:
        config = plate_folder(tmp_path / "p", segments=(f"a@{digits} b@2", "c@0", "c@0"))
        message = "not CHARACTER@COLUMN"
    with pytest.raises(RunFailedError, match=message) as raised:
        plates.load(config)
    assert len(str(raised.value)) < 500


def test_characters_wider_than_memory_are_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(memory, "available", lambda: 1 << 30)
    config = plate_folder(tmp_path / "p", widths="a,2\nb,1\nc,3\nd,999999999\n")
    with pytest.raises(RunFailedError, match=r"all characters of widths\.csv would take about 64"):
        plates.load(config)


@pytest.mark.parametrize("which", ["picture", "table"])
def test_a_link_out_of_the_folder_is_not_read(config, refused, tmp_path, which):
    path = config.path / "0.png" if which == "picture" else table_of(config)
    path.rename(tmp_path / path.name)
    path.symlink_to(tmp_path / path.name)
    refused(rf"{path.name} cannot be read \(.* is a link to .*, which is not followed\)")


def test_a_name_that_no_file_can_have_is_told(config, refused):
    text = table_of(config).read_bytes()
    table_of(config).write_bytes(text.replace(b"0.png", b"x" * 5000 + b".png", 1))
    refused(r"xxx.* cannot be read \(File name too long\)")
