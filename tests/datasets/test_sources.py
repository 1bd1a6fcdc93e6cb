"""Where the numbers come from: folders, cache, downloads, stand-in; and the registry."""

import gzip
import hashlib
import http.server
import os
import re
import socket
import threading
import time
import tracemalloc
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from program import put_odd

from ssvm_bench.base.errors import ConfigError, RunFailedError
from ssvm_bench.config import registry
from ssvm_bench.datasets import cache, progress, reading, sources
from ssvm_bench.datasets.base import SourceConfig
from ssvm_bench.datasets.reading import ContentError
from ssvm_bench.datasets.sources import ParsedFile

GOOD = b"1 2 3"


def arrays_of(number):
    x = np.full((2, 3), float(number))
    return {"x": x, "y": np.zeros(2, np.uint8), "offsets": np.arange(3)}


@pytest.fixture
def calls():
    return []


@pytest.fixture
def registered(monkeypatch):
    """Return a function that makes a dataset the only one there is; it returns that, too."""

    def register(raw):
        monkeypatch.setattr(sources, "module", lambda *_: SimpleNamespace(RAW=raw))
        return raw

    return register


@pytest.fixture
def raw(calls, monkeypatch, registered, tmp_path):
    """A tiny dataset that says what its file must begin with; counts its parsing."""

    def read(content):
        calls.append(content)
        if not content.startswith(GOOD):
            raise ContentError("line 1: rubbish")
        return arrays_of(sum(content))

    monkeypatch.setattr(reading, "user_folder", lambda: tmp_path / "user")
    monkeypatch.setenv("SSVM_BENCH_DATA", str(tmp_path / "data"))
    monkeypatch.setenv("SSVM_BENCH_OFFLINE", "1")
    where = {"dataset": "tiny", "folder": "tiny", "file": "tiny.gz"}
    made = {"parse": read, "synthetic": lambda: arrays_of(-1), "version": 1}
    return registered(ParsedFile(**where, url="http://localhost/tiny.gz", n=2, **made))


def load(raw, source="auto", **options):
    return sources.load(SourceConfig("tiny", "tiny", source, **options), raw, "independent", 2)


def put(raw, place=0, content=GOOD):
    path = raw.places()[place]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return path


def files(folder):
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


TRIED = "user/tiny/.tiny.gz.not-downloaded"


def test_missing_data_falls_back_loudly(raw, capsys):
    dataset = load(raw)
    assert (dataset.source, dataset.x[0, 0]) == ("synthetic", -1)
    captured = capsys.readouterr()
    assert captured.out == ""
    for part in ("WARNING: NOT THE REAL TINY DATA", str(raw.places()[0]), "SSVM_BENCH_OFFLINE=1"):
        assert part in captured.err


def told(raw, *arguments, **options):
    """Return the message that loading fails with."""
    with pytest.raises(RunFailedError) as failure:
        load(raw, *arguments, **options)
    assert failure.value.exit_status == 1
    return str(failure.value)


def test_missing_data_fails_when_it_must_be_real(raw):
    message = told(raw, "real")
    for part in (raw.file, str(raw.places()[0].parent), raw.url, "source=synthetic"):
        assert part in message


def test_the_data_folder_wins_over_the_user_folder_and_synthetic_data_over_both(raw, capsys):
    put(raw, 1, GOOD + b"longer")
    assert load(raw).x[0, 0] == sum(GOOD + b"longer")
    put(raw, 0)
    assert load(raw).x[0, 0] == sum(GOOD)
    assert load(raw).source == "real"
    put(raw, 0, b"broken")
    assert load(raw, "synthetic").source == "synthetic"
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("kind", ["pipe", "endless", "socket", "folder", "loop"])
def test_what_is_no_regular_file_is_refused_at_once(raw, kind, monkeypatch):
    path = put(raw)
    if kind == "socket":
        path.unlink()
        monkeypatch.chdir(path.parent)  # the path of a socket has to be short
        socket.socket(socket.AF_UNIX).bind(path.name)
    else:
        put_odd(path, kind)
    assert f"{path} cannot be used as the tiny data" in told(raw)
    assert sources.status("tiny").state == "broken"


def test_a_bomb_is_refused_before_it_fills_the_memory(raw):
    said = "it has more than 34 MB, far more than the data"
    path = put(raw, 0, gzip.compress(bytes(4 * reading.MOST)))
    assert path.stat().st_size < reading.MOST / 100
    tracemalloc.start()
    try:
        with pytest.raises(RunFailedError, match=said):
            load(raw)
        assert tracemalloc.get_traced_memory()[1] < 3 * reading.MOST
    finally:
        tracemalloc.stop()
    path.open("wb").truncate(1 << 40)  # a hole of a terabyte
    for read, error in ((load, RunFailedError), (lambda raw: raw.read(path), ContentError)):
        with pytest.raises(error, match=said):
            read(raw)


def digest(content):
    return hashlib.sha256(content).hexdigest()


def test_other_content_needs_trust_and_never_goes_by_the_name_of_real_data(raw, capsys, calls):
    raw = replace(raw, sha256={raw.file: digest(GOOD)})
    put(raw, 0, gzip.compress(GOOD))  # packed in any way
    assert load(raw).source == "real"
    assert load(raw, trust=True).source == "real"
    put(raw, 0, GOOD + b"4")
    put(raw, 1)
    for source in ("auto", "real"):
        message = told(raw, source)
        found, known = digest(GOOD + b"4")[:16], digest(GOOD)[:16]
        for part in (f"{raw.places()[0]} cannot be used as the tiny data", "dataset.trust=true"):
            assert part in message
        assert re.search(f"sha256 {found}….*{known}…", message)
    assert load(raw, trust=True).source == "real (altered)"
    assert load(raw, trust=True).x[0, 0] == sum(GOOD + b"4")
    assert "dataset.trust=true" in told(raw)  # what is kept of it is no way in
    assert load(raw, "synthetic", trust=True).source == "synthetic"
    with pytest.raises(ConfigError, match=r"dataset\.n_samples must be ≤ 2"):
        load(raw, trust=True, n_samples=3)
    assert capsys.readouterr().err == ""


def test_status_tells_what_is_genuine(raw, registered):
    put(raw)
    assert sources.status("tiny", verify=True).content.startswith("unknown")
    registered(replace(raw, sha256={raw.file: digest(GOOD)}))
    assert sources.status("tiny").content == ""
    for content, told in ((GOOD, "genuine"), (GOOD + b"4", "altered: what is"), (b"7", "broken: ")):
        put(raw, 0, content)
        assert sources.status("tiny", verify=True).content.startswith(told)


@pytest.mark.parametrize("source", ["auto", "real"])
def test_broken_data_is_never_replaced(raw, source):
    path = put(raw, 0, b"broken")
    put(raw, 1)
    message = told(raw, source)
    for part in ("line 1: rubbish", str(path), "Delete", "SSVM_BENCH_DATA"):
        assert part in message
    for broken in (path.mkdir, lambda: path.symlink_to("nowhere")):
        path.rmdir() if path.is_dir() else path.unlink()
        broken()
        assert str(path) in told(raw, source)


KEPT = "user/tiny/tiny.gz.ssvm-bench.npz"


def test_parsed_arrays_are_kept_in_the_cache_folder_and_never_beside_the_raw_file(
    raw, calls, tmp_path
):
    beside = put(raw).with_name("tiny.gz.ssvm-bench.npz")
    beside.write_bytes(b"of an earlier version")
    assert load(raw).fingerprint == load(raw).fingerprint
    assert len(calls) == 1
    assert files(tmp_path) == ["data/tiny/tiny.gz", f"data/tiny/{beside.name}", KEPT]
    assert beside.read_bytes() == b"of an earlier version"


def test_cache_of_another_file_or_loader_is_not_used(raw, calls):
    path = put(raw, 0, GOOD + b"4")
    load(raw)
    stamp = path.stat().st_mtime_ns
    path.write_bytes(GOOD + b"5")  # the same size, and the same time
    os.utime(path, ns=(stamp, stamp))
    assert load(raw).x[0, 0] == sum(GOOD + b"5")
    load(replace(raw, version=2))
    assert len(calls) == 3


@pytest.mark.parametrize("damage", ["cut", "flip", "empty", "text", "pipe", "folder", "endless"])
def test_damaged_cache_is_made_again(raw, calls, damage, tmp_path):
    put(raw)
    good = load(raw)
    kept = tmp_path / KEPT
    content = bytearray(kept.read_bytes())
    content[content.index(np.float64(sum(GOOD)).tobytes())] ^= 1
    found = {"cut": content[:-30], "flip": content, "empty": b"", "text": b"not an archive"}
    if damage in found:
        kept.write_bytes(found[damage])
    else:
        put_odd(kept, damage)
    assert load(raw).fingerprint == good.fingerprint
    assert len(calls) == 2
    load(raw)
    assert len(calls) == (2 if damage in found else 3)  # a file is written anew, all else stays


def test_a_cache_with_any_byte_changed_gives_the_right_arrays_or_none(tmp_path):
    place = tmp_path / "kept.npz"
    made = {"x": np.arange(3.0), "y": np.array([], np.uint8), "names": np.array(["a", "bc"])}
    cache.cached(place, "key", lambda: made)
    content = place.read_bytes()
    used = 0
    for k in range(len(content)):
        changed = bytearray(content)
        changed[k] ^= 1 if k % 2 else 128
        place.write_bytes(changed)
        found = cache.stored(place, "key")
        if found is not None:
            used += 1
            assert found.keys() == made.keys()
            for name, array in made.items():
                assert found[name].dtype == array.dtype
                assert np.array_equal(found[name], array)
    assert used < 0.3 * len(content)  # times, attributes and padding are nobody's business
    for k in range(0, len(content), 5):
        place.write_bytes(content[:k])
        assert cache.stored(place, "key") is None


def test_a_cache_that_was_saved_by_other_hands_is_not_used(tmp_path):
    place = tmp_path / "kept.npz"
    made = {"x": np.arange(3.0), "y": np.array([1, 2])}
    cache.cached(place, "key", lambda: made)
    members = dict(np.load(place))
    assert cache.stored(place, "key") is not None
    for change in ({"y": np.array([1, 1])}, {"z": np.zeros(1)}, {"key": np.array(["key", ""])}):
        np.savez(place, **{**members, **change})  # with the right CRC-32 of everything
        assert cache.stored(place, "key") is None
        assert cache.stored_key(place) == ""
    np.savez_compressed(place, **members)  # it could unpack to anything
    assert cache.stored(place, "key") is None


def test_only_the_arrays_that_are_wanted_are_read(tmp_path):
    place = tmp_path / "kept.npz"
    made = {"small": np.arange(3), "large": np.full(1000, 7.25)}
    assert cache.cached(place, "key", lambda: made, ("small",)).keys() == {"small"}
    content = bytearray(place.read_bytes())
    content[content.index(made["large"].tobytes()[:80])] ^= 1
    place.write_bytes(content)
    assert cache.stored(place, "key", ("small",))["small"].tolist() == [0, 1, 2]
    assert cache.stored(place, "key") is None
    assert cache.stored(place, "another key", ("small",)) is None


def test_no_place_for_a_cache_is_no_failure(raw, tmp_path, monkeypatch):
    put(raw)
    (tmp_path / "file").touch()
    with monkeypatch.context() as patched:
        patched.setattr(reading, "user_folder", lambda: tmp_path / "file" / "below")
        assert load(raw).source == "real"
        assert load(raw, "synthetic").source == "synthetic"
    assert files(tmp_path) == ["data/tiny/tiny.gz", "file"]


def test_a_user_without_a_home_has_a_cache_folder(monkeypatch):
    for name in ("XDG_CACHE_HOME", "HOME"):
        monkeypatch.setenv(name, "~nobody")
    assert reading.user_folder().is_absolute()


def test_status_tells_where_a_dataset_stands(raw, calls):
    missing = sources.status("tiny")
    assert (missing.state, missing.size, missing.path) == ("missing", 0, raw.places()[0])
    assert "fetch tiny" in missing.hint
    path = put(raw)
    ready = sources.status("tiny")
    assert (ready.state, ready.path, ready.hint) == ("ready", path, "")
    assert ready.size == len(GOOD)
    for rubbish in (b"", b"<html>"):
        path.write_bytes(rubbish)
        broken = sources.status("tiny")
        assert broken.state == "broken"
        assert "Delete" in broken.hint
    assert calls == []


def test_offline_opens_no_socket(raw, monkeypatch):
    def forbidden(*args, **kwargs):
        raise AssertionError("the network was touched")

    for name in ("socket", "create_connection", "getaddrinfo"):
        monkeypatch.setattr(socket, name, forbidden)
    assert load(raw).source == "synthetic"
    with pytest.raises(RunFailedError, match="SSVM_BENCH_OFFLINE=1"):
        sources.fetch("tiny")


@pytest.fixture
def server(monkeypatch):
    """A web server on this machine; ``pages`` holds what it serves, None meaning silence."""
    pages = {}
    hold = threading.Event()

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            content = pages.get(self.path, b"")
            if content is None:
                hold.wait(10)
                return
            self.send_response(200 if content else 404)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *args):
            pass

    monkeypatch.setenv("SSVM_BENCH_OFFLINE", "0")
    monkeypatch.setenv("NO_PROXY", "*")
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as running:
        running.daemon_threads = True
        threading.Thread(target=running.serve_forever, args=(0.01,), daemon=True).start()
        yield f"http://127.0.0.1:{running.server_port}", pages
        hold.set()
        running.shutdown()


@pytest.fixture
def remote(raw, registered, server):
    address, pages = server
    tiny = replace(raw, url=f"{address}/tiny.gz", sha256={raw.file: digest(GOOD)})
    return registered(tiny), pages


def test_download_goes_to_the_user_folder(remote, tmp_path, capsys):
    raw, pages = remote
    pages["/tiny.gz"] = GOOD
    path = sources.fetch("tiny")
    assert path == tmp_path / "user" / "tiny" / "tiny.gz"
    assert re.fullmatch(r"Downloading http\S+/tiny.gz\n", "".join(capsys.readouterr()))
    pages.clear()
    assert sources.fetch("tiny") == path  # not asked for twice
    assert load(raw).source == "real"


def test_a_download_is_genuine_or_comes_by_https(remote, server, tmp_path):
    raw, pages = remote
    unknown = replace(raw, sha256={})
    for of, content, message in (
        (raw, GOOD + b"4", r"something else \(what is in tiny\.gz has"),
        (unknown, GOOD + b"4", "is no https, and the data have no known digest"),
        (raw, bytes(reading.MOST + 1), "it has more than 34 MB"),
    ):
        pages["/tiny.gz"] = content
        with pytest.raises(RunFailedError, match=message):
            of.get()
    assert files(tmp_path) == [TRIED]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"<html>moved</html>", "something else (line 1: rubbish)"),
        (b"", "404"),
        (None, "did not answer within 0.2 s"),
    ],
)
def test_a_download_that_fails_is_told_and_nothing_is_kept(
    remote, tmp_path, monkeypatch, capsys, content, message
):
    raw, pages = remote
    pages["/tiny.gz"] = content
    monkeypatch.setattr(progress, "CONNECT_SECONDS", 0.2)
    assert message in told(raw, "real")
    assert files(tmp_path) == [TRIED]
    assert load(raw).source == "synthetic"
    assert message in capsys.readouterr().err
    assert files(tmp_path) == [TRIED, "user/tiny/stand-in.ssvm-bench.npz"]


def test_a_download_that_has_just_failed_is_not_tried_by_every_call(
    remote, tmp_path, monkeypatch, capsys
):
    raw, pages = remote

    def tried():
        source = load(raw).source
        said = capsys.readouterr().err
        assert ("WARNING: NOT THE REAL TINY DATA" in said) == (source == "synthetic")
        return source, said.count("Downloading")

    assert tried() == ("synthetic", 1)
    assert tried() == ("synthetic", 0)
    load(raw)
    said = capsys.readouterr().err
    assert "404" in said
    assert "(0 minutes ago). It is not tried again now. To get it: `ssvm-bench data fetch" in said
    # who asks for the real data, or for the file, has it tried
    pages["/tiny.gz"] = b"<html>moved</html>"
    assert "something else" in told(raw, "real")
    assert "Downloading" in capsys.readouterr().err
    with pytest.raises(RunFailedError, match="something else"):
        sources.fetch("tiny")
    assert "Downloading" in capsys.readouterr().err
    mark = tmp_path / TRIED
    an_hour_ago = time.time() - 3601
    os.utime(mark, (an_hour_ago, an_hour_ago))
    assert tried() == ("synthetic", 1)
    put_odd(mark, "pipe")  # what is not a mark says nothing
    assert tried() == ("synthetic", 1)
    pages["/tiny.gz"] = GOOD
    assert sources.fetch("tiny").is_file()
    assert "Downloading" in capsys.readouterr().err
    assert tried() == ("real", 0)


@pytest.fixture
def brought(remote, registered, tmp_path):
    """The dataset as it comes with a package, packed in a way of its own; and the file."""
    path, content = tmp_path / "site" / "tiny.packed", gzip.compress(b"123", mtime=0)
    path.parent.mkdir()
    path.write_bytes(content)
    known = {"packed_sha256": digest(content), "sha256": {remote[0].file: digest(GOOD)}}
    restore = lambda bits: arrays_of(int(bits))  # noqa: E731
    return registered(replace(remote[0], on_board=path, restore=restore, **known)), path


def test_what_is_on_board_counts_last_and_is_never_downloaded(brought, remote, capsys, tmp_path):
    raw, path = brought
    remote[1]["/tiny.gz"] = GOOD
    for source in ("auto", "real"):
        data = load(raw, source)
        assert (data.source, data.x[0, 0]) == ("real", 123)
    assert sources.fetch("tiny") == path
    found = sources.status("tiny", verify=True)
    assert (found.state, found.path, found.on_board) == ("ready", path, True)
    assert found.content == "genuine, by its sha256"
    assert not [each for each in sources.integrity_report("tiny")[1] if each.expected]
    assert files(tmp_path) == ["site/tiny.packed", KEPT]
    for place in (1, 0):  # the user's files count first
        other = put(raw, place)
        assert (load(raw).x[0, 0], sources.status("tiny").path) == (sum(GOOD), other)
        assert not sources.status("tiny").on_board
    put(raw, 0, b"broken")
    assert f"Delete the file and {path} is used, or let" in told(raw)
    assert "".join(capsys.readouterr()) == ""


def test_what_was_left_out_is_neither_downloaded_by_a_run_nor_replaced(brought, remote, capsys):
    raw, path = brought
    remote[1]["/tiny.gz"] = GOOD
    path.unlink()
    for source in ("auto", "real"):
        message = told(raw, source)
        for part in (
            *(f"no {raw.places()[0]} or", f"and {path}, which comes with its package, was left"),
            *("`ssvm-bench data fetch tiny`", f"put tiny.gz from {raw.url} into"),
            "dataset.source=synthetic",
        ):
            assert part in message
    assert (load(raw, "synthetic").source, sources.status("tiny").state) == ("synthetic", "missing")
    assert "".join(capsys.readouterr()) == ""
    sources.fetch("tiny")
    assert load(raw).x[0, 0] == sum(GOOD)


@pytest.mark.parametrize("damage", ["cut", "flip", "other", "empty", "folder", "bomb", "large"])
def test_a_damaged_file_on_board_is_refused_before_it_is_unpacked(brought, damage, monkeypatch):
    raw, path = brought
    good = path.read_bytes()
    changed = {
        "cut": good[:-3],
        "flip": good[:12] + bytes([good[12] ^ 1]) + good[13:],
        "other": gzip.compress(b"124", mtime=0),  # a whole file, of another content
        "empty": b"",
        "bomb": gzip.compress(bytes(4 * reading.MOST)),
        "large": bytes(reading.MOST + 1),
    }
    if damage in changed:
        path.write_bytes(changed[damage])
    else:
        put_odd(path, damage)
    monkeypatch.setattr(reading, "unpack", lambda *_: pytest.fail("it was unpacked"))
    for options in ({}, {"trust": True}):  # nobody's own file: there is nothing to trust
        message = told(raw, **options)
        assert message.startswith(f"{path} cannot be used as the tiny data: ")
        assert "Install the package that it belongs to again" in message
        if damage in changed and damage != "large":
            assert re.search(f"its sha256 is {digest(changed[damage])[:16]}…, that of", message)
    assert load(raw, "synthetic").source == "synthetic"


def test_a_file_on_board_is_compared_whatever_its_name_is(brought):
    raw, path = brought
    raw = replace(raw, restore=None)  # in the format of the raw file
    path.write_bytes(gzip.compress(GOOD))
    assert load(raw).source == "real"
    path.write_bytes(GOOD + b"4")
    assert re.search(r"what is in tiny\.packed has the sha256 .*, that of the genuine", told(raw))


@pytest.fixture
def pair(raw, registered):
    """A dataset of two files, each as that of `raw`."""
    where = {"dataset": "pair", "folder": "pair", "file": "", "url": "http://localhost/pair/"}
    two = replace(
        raw,
        **where,
        sha256={"a.gz": digest(GOOD + b"\5"), "b.gz": digest(GOOD)},
        parse=lambda content: raw.parse(content)["x"],
        combine=lambda a, b: arrays_of(a[0, 0] - b[0, 0]),
        synthetic_size=1,
    )
    return registered(two)


def put_part(raw, name, place=0, content=GOOD):
    path = raw.places()[place] / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(gzip.compress(content))
    return path


def test_a_folder_with_all_files_is_where_the_data_is(pair, tmp_path):
    put_part(pair, "a.gz", 0)
    for name in pair.sha256:
        put_part(pair, name, 1, GOOD + (b"\5" if name == "a.gz" else b""))
    assert sources.fetch("pair") == tmp_path / "user" / "pair"
    assert load(pair).x[0, 0] == 5
    put_part(pair, "b.gz", 0)
    assert load(pair, trust=True).x[0, 0] == 0  # the preferred place is whole now
    put_part(pair, "b.gz", 0, GOOD + b"\3")
    assert load(pair, trust=True).x[0, 0] == -3  # and what was kept of it is outdated
    assert "what is in a.gz has the sha256" in told(pair)


def test_a_missing_file_is_named(pair, tmp_path, monkeypatch):
    path, message = put_part(pair, "a.gz"), told(pair, "real")
    place = tmp_path / "data" / "pair"
    assert f"no {place}/b.gz or {tmp_path}/user/pair/a.gz" in message
    advice = (
        "`ssvm-bench data fetch pair` with internet access, or put b.gz from "
        f"{pair.url} into {place}."
    )
    assert f"To get it: unset SSVM_BENCH_OFFLINE, then {advice}" in message
    monkeypatch.setenv("SSVM_BENCH_OFFLINE", "0")
    assert f"To get it: {advice}" in str(pair.missing_error("it is not there"))
    found = sources.status("pair")
    assert (found.state, found.path) == ("missing", place / "b.gz")
    assert found.hint.endswith("Or put b.gz there.")
    put_part(pair, "b.gz")
    found = sources.status("pair")
    assert (found.state, found.path, found.size) == ("ready", path.parent, 2 * path.stat().st_size)


def test_a_broken_file_of_several_is_named(pair, tmp_path):
    put_part(pair, "a.gz", content=GOOD + b"\5")
    path = put_part(pair, "b.gz", content=b"broken")
    found = sources.status("pair")
    assert (found.state, found.path) == ("ready", pair.places()[0])  # its beginning is right
    assert found.size == len(gzip.compress(GOOD + b"\5")) + path.stat().st_size
    assert re.search(r"pair cannot be used .*: b\.gz: line 1: rubbish", told(pair))
    path.write_bytes(b"<html>")
    found = sources.status("pair")
    assert (found.state, found.path, found.size) == ("broken", path, 6)
    path.unlink()
    path.symlink_to("nowhere")
    assert sources.status("pair").path == path
    assert str(path) in told(pair)


def test_several_files_are_downloaded_one_by_one(pair, server, tmp_path, registered):
    address, pages = server
    pair = registered(replace(pair, url=f"{address}/pair/"))
    pages["/pair/a.gz"], pages["/pair/b.gz"] = GOOD + b"\5", b"<html>moved</html>"
    with pytest.raises(RunFailedError, match=r"/pair/b\.gz gives now is something else"):
        sources.fetch("pair")
    assert files(tmp_path) == [
        "user/pair/.b.gz.not-downloaded",
        "user/pair/a.gz",
    ]  # what came is kept
    pages["/pair/a.gz"], pages["/pair/b.gz"] = None, GOOD  # and not asked for again
    assert sources.fetch("pair") == tmp_path / "user" / "pair"
    assert load(pair, "real").x[0, 0] == 5


def test_the_stand_in_of_several_files_has_its_own_size(pair):
    assert load(pair, "synthetic").x[0, 0] == -1
    config = SourceConfig("pair", "pair", "synthetic", 2)
    with pytest.raises(ConfigError, match="≤ 1, the number of synthetic examples"):
        sources.load(config, pair, "independent", 2)


def test_helpers_are_no_datasets_and_not_all_datasets_have_raw_files():
    for helper in ("sources", "../ocr", "ocr.Config", ""):
        with pytest.raises(ConfigError, match="Unknown dataset kind"):
            registry.module("dataset", helper)
    assert sources.has_raw_file("usps")
    assert not sources.has_raw_file("digits")  # a stream with a name
    with pytest.raises(ConfigError, match=r"Dataset 'neighbours' has no raw file\."):
        sources.raw_file("neighbours")
