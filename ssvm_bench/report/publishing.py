"""``ssvm-bench publish FOLDER``: runs, thinned, and pages on them, to put on a web server.

.. code-block:: text

    FOLDER/
      index.html, <experiment>.html   the pages, made of what is in this folder alone
      figures/<experiment>/           the pictures that they show; the title of an own experiment
      traces/<experiment>/            thinned traces; `single_runs`: those of no experiment
      reference/optima.json           the best values ever seen on these problems
      provenance.json                 commits, versions and processors behind the runs
      .nojekyll                       GitHub Pages serves the files as they are
      published.json                  SHA-256 of each of these files: a later call knows its own;
                                      marks results that are read, and not changed

Nothing is replaced or deleted that is not, byte by byte, what an earlier call has written, and no
link is followed. Published runs that a later call does not have are deleted only on request. The
list of files is written first, with the old and the new content of each: a call that was killed
half-way can be repeated.
"""

from __future__ import annotations

import hashlib
import json
import logging
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path, PurePath, PurePosixPath
from typing import Any

from ssvm_bench.base import files
from ssvm_bench.base.errors import ConfigError, RunFailedError, described, shown
from ssvm_bench.config import registry
from ssvm_bench.figures.document import Html, address
from ssvm_bench.report.contents import INDEX, MADE_BY, SINGLE, everything
from ssvm_bench.report.experiment_files import load, of_own_experiment
from ssvm_bench.report.pages import rendered
from ssvm_bench.results import loading, older_code, optima, stored_traces, words
from ssvm_bench.results.folder import (
    COMMITTED,
    MINE,
    PUBLISHED,
    ResultsFolder,
    SkippedFiles,
    as_folder,
    sweep,
)
from ssvm_bench.results.provenance import provenance_of
from ssvm_bench.results.table import Run, Runs

FORMAT = 1
IGNORED = (".git",)
"""What may be in a folder that is published to for the first time: it may be a work tree."""

INTRO = Html(
    "<p>Runs of <code>ssvm-bench</code>. This folder has all that the pages show: thinned traces "
    "in <code>traces</code>, and where the numbers come from in "
    '<a href="provenance.json">provenance.json</a>. With a copy of it, '
    "<code>ssvm-bench compare THIS_FOLDER mine</code> compares your own runs with these.</p>\n"
)

_ADDRESS = re.compile(r"\w+://")
_PATH = re.compile(r"(?<![\w)\]./~])(?:~[\w.-]*)?(?:/[^\s/,;:'\"]+)+/?")
_PLACE = ("/", "~", "./", "../")

_TIME = re.compile(rb"<time [^<]*</time>")
_SHOWN = re.compile(r'<img src="(figures/[^"]+)"')
_PNG = b"\x89PNG\r\n"

logger = logging.getLogger(__name__)


def publish(
    folder: Path,
    where: ResultsFolder,
    config_dirs: Sequence[Path] = (),
    experiments: Sequence[str] = (),
    whose: str = "",
    replaces: bool = False,
) -> Path:
    """Write the runs of a results folder, and pages on them, into a folder; return its first page.

    Parameters
    ----------
    folder : Path
        A new or empty folder, or one that was published to.
    where : ResultsFolder
        The results folder. Runs that have not finished are left out.
    config_dirs : sequence of Path
        Further folders of config files.
    experiments : sequence of str
        Names or paths of experiments: only the traces that are stored with them; empty: all runs.
    whose : str
        Whose runs, see `ResultsFolder.sides`; empty: the user's own if there are any.
    replaces : bool
        Whether runs that an earlier call has published, and that are not among these, are deleted.

    Raises
    ------
    ConfigError
        If the folder has such runs, and ``replaces`` is not set; if it has files that `publish` has
        not written, is a link or no folder, or is part of the results folder; if there is no such
        experiment.
    RunFailedError
        If there are no runs, or the folder cannot be written.
    """
    registry.use(config_dirs)
    folder = folder.absolute()
    try:
        before = _published_before(folder, where.root)
        wanted = {name for each in experiments for name in load(each, config_dirs).origins}
        sweep(where)
        logger.info("Reading the runs in %s …", where.root)
        with SkippedFiles() as skipped, registry.readable_papers() as unreadable:
            for error in unreadable:
                logger.warning("Left out on all pages, a paper: %s", error)
            runs, side = _of_first_side(where.sides(whose), wanted, skipped)
            if not runs:
                what = f" of {', '.join(sorted(wanted))}" if wanted else ""
                of = {MINE: " of your own", COMMITTED: f" that are {where.origin}"}.get(whose, "")
                raise RunFailedError(
                    f"There are no finished runs{of}{what} in {where.root}. {MADE_BY}"
                )
            if side.whose and not whose:
                logger.info("These are %s; --runs chooses others.", side.called)
            contents = _contents(folder, runs, side, config_dirs, skipped)
        there = {path: _ours(folder, path, before) for path in {**before, **contents}}
        if not replaces:
            _check_kept(folder, there, contents, runs)
        _update(folder, before, there, contents)
    except OSError as error:
        raise RunFailedError(
            f"Cannot publish to {folder}: {error}. Make room there or make it writable, or choose "
            "another folder."
        ) from error
    return folder / INDEX


# ---- what is published -------------------------------------------------------------------------


def _of_first_side(
    sides: Sequence[ResultsFolder], wanted: set[str], skipped: SkippedFiles
) -> tuple[dict[str, list[Run]], ResultsFolder]:
    """Return name → runs stored under that name, of the first side that has some; and that side.

    A raw run takes precedence over its stored trace.
    """
    for side in sides:
        sources = list(loading.each(side, lambda name: _is_of(name, wanted)))
        for source in sources:
            if source.problem:
                skipped.add(source.problem)
        older = older_code.among([run for source in sources for run in source.runs])
        gone = {id(run) for run in older}
        sources = [
            source._replace(runs=[run for run in source.runs if id(run) not in gone])
            for source in sources
        ]
        raw = {run.own_folder: run for each in sources if not each.name for run in each.runs}
        found: dict[str, dict[Path, Run]] = {}
        for source in sources:
            for run in source.runs if source.name else ():
                of_name = found.setdefault(source.name, {})
                of_name.setdefault(run.own_folder, raw.get(run.own_folder, run))
        stored = {place for runs in found.values() for place in runs}
        if single := {place: run for place, run in raw.items() if place not in stored}:
            found.setdefault(SINGLE, {}).update({} if wanted else single)
        if any(found.values()):
            if left_out := older_code.left_out(older):
                logger.warning("%s", left_out)
            return {name: [*runs.values()] for name, runs in found.items() if runs}, side
    return {}, sides[-1]


def _is_of(name: str, wanted: set[str]) -> bool:
    return not wanted or name in wanted or name.rpartition("/")[0] in wanted


def _contents(
    folder: Path,
    runs: Mapping[str, Sequence[Run]],
    side: ResultsFolder,
    config_dirs: Sequence[Path],
    skipped: SkippedFiles,
) -> dict[str, bytes]:
    """Return path below the folder → content of all that is published."""
    all_runs = [run for of_name in runs.values() for run in of_name]
    contents: dict[Path, bytes] = {}
    for name, of_name in runs.items():
        contents |= stored_traces.encoded([_without_places(run) for run in of_name], name)
    contents[optima.FILE] = optima.encoded(all_runs, side)
    contents[Path(".nojekyll")] = b""
    came = {name: provenance_of(Runs(of_name)) for name, of_name in sorted(runs.items())}
    contents[Path("provenance.json")] = _json(experiments=came)
    for name in runs:  # they have the titles of the user's experiments
        for place in side.stored:
            for path in sorted((place / "figures" / name).glob("provenance*.json")):
                if of_own_experiment(path.parent, side.root, "title"):
                    content = files.read(path, within=side.root)
                    contents.setdefault(path.relative_to(place), content)
    pictures = _pictures(side)
    with files.temporary_folder(folder) as place:
        for path, content in {**contents, **pictures}.items():
            files.write(place / path, content, place)
        files.write(place / PUBLISHED, _listed({}), place)
        copy = as_folder(place)._replace(whose=COMMITTED)
        found = everything(copy, config_dirs, skipped, COMMITTED)
        pages = dict(rendered(found, copy, place, intro=INTRO))
    linked = {path for each in pages.values() for path in _SHOWN.findall(each.decode())}
    contents |= {path: of for path, of in pictures.items() if address(path.as_posix()) in linked}
    return {path.as_posix(): of for path, of in contents.items()} | pages


def _pictures(side: ResultsFolder) -> dict[Path, bytes]:
    """Return path → content of the pictures of experiments that are drawn already."""
    found: dict[Path, bytes] = {}
    for place in side.stored:
        for path in sorted(place.glob("figures/*/*.png")):
            if files.link_on(path, side.root) is None:
                content = files.read(path, within=side.root)
                if content.startswith(_PNG):
                    found.setdefault(path.relative_to(place), content)
    return found


def _without_places(run: Run) -> Run:
    """Return a run whose options name no folder or address of one machine."""
    config = _changed(run.config, _placeless)
    return replace(run, metadata={**run.metadata, "config": config})


def _changed(value: Any, change: Callable[[str], str | None]) -> Any:
    """Return a plain value with all of its texts changed."""
    if isinstance(value, Mapping):
        return {key: _changed(item, change) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_changed(item, change) for item in value]
    return change(value) if isinstance(value, str) else value


def _placeless(text: str) -> str | None:
    """Return the value of an option without folders: of a path, its last part; of an address, None.

    >>> _placeless("/home/me/my data/train.txt"), _placeless("2n/(k+2n)"), _placeless("100/n")
    ('train.txt', '2n/(k+2n)', '100/n')
    >>> _placeless("file=/home/me/a.txt"), _placeless("tcp://10.0.0.7:8786")
    ('file=a.txt', None)
    """
    if _ADDRESS.search(text):
        return None
    if text.startswith(_PLACE):
        return PurePath(text).name
    return _PATH.sub(lambda found: PurePath(found[0]).name, text)


# ---- the folder --------------------------------------------------------------------------------

Digests = dict[str, list[str]]
"""Path below the folder → SHA-256 of each content that a call has written, or was about to."""


def _published_before(folder: Path, results: Path) -> Digests:
    """Return what earlier calls have written into a folder.

    Raises
    ------
    ConfigError
        If anything but `publish` has made it.
    """
    if folder.is_symlink():
        raise ConfigError(
            f"{folder} is a link to {shown(folder.readlink())}, which is not followed. Name the "
            "folder itself."
        )
    if folder.resolve().is_relative_to(results.resolve()):
        raise ConfigError(
            f"{folder} is in the results folder {results}, which is read. Choose a folder outside."
        )
    if not folder.exists():
        return {}
    if not folder.is_dir():
        raise ConfigError(f"{folder} is a file. Choose a folder that is new or empty.")
    names = (path.name for path in folder.iterdir())  # what a killed call has left is removed later
    there = sorted(name for name in names if name not in IGNORED and files.MARK not in name)
    if not there:
        return {}
    if PUBLISHED not in there:
        raise ConfigError(
            f"{folder} has files that publish has not written, as {shown(there[0])}. Choose a "
            "folder that is new or empty."
        )
    try:
        found = json.loads(files.read(folder / PUBLISHED, within=folder))
        if found["format"] != FORMAT:
            raise ValueError(f"format version {found['format']}; this program reads {FORMAT}")
        for path, digests in found["files"].items():
            parts = PurePosixPath(path).parts
            if not parts or {"..", "/"} & {*parts} or not isinstance(digests, list):
                raise ValueError(f"{shown(repr(path))} is no file of a published folder")
        return dict(found["files"])
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise ConfigError(
            f"{folder} is not known as published: {PUBLISHED} cannot be read: {described(error)}. "
            "Choose a folder that is new or empty."
        ) from error


Contents = dict[str, bytes | None]
"""Path below the folder → what is there, of the files that are ours; None if there is no file."""


def _check_kept(
    folder: Path,
    there: Contents,
    contents: Mapping[str, bytes],
    runs: Mapping[str, Sequence[Run]],
) -> None:
    """Raise `ConfigError` if the folder has published runs that are not among those to publish."""
    new = {run.title for of_name in runs.values() for run in of_name}
    stored = [
        old
        for path, old in there.items()
        if old is not None and path.endswith(".parquet") and contents.get(path) != old
    ]
    lost = {run.title for old in stored for run in stored_traces.decoded(old)} - new
    if lost:
        raise ConfigError(
            f"{folder} has {words.runs(len(lost))} that are not among those to publish, as "
            f"{min(lost)}. Choose another folder, or add --replace to delete them there."
        )


def _update(folder: Path, before: Digests, there: Contents, contents: dict[str, bytes]) -> None:
    """Write what has changed, and delete what is gone, of the files that are ours."""
    for path, old in there.items():  # a page that was only made at another time stays
        if path in contents and old and _TIME.sub(b"", old) == _TIME.sub(b"", contents[path]):
            contents[path] = old
    changed = {path: content for path, content in contents.items() if there[path] != content}
    gone = [path for path, old in there.items() if old is not None and path not in contents]
    after = {path: [_digest(content)] for path, content in sorted(contents.items())}
    if not changed and not gone and before == after:
        logger.info("%s has all of it already.", folder)
        return
    both = {path: sorted({*before.get(path, ()), *after.get(path, ())}) for path in there}
    for path, content in {PUBLISHED: _listed(both), **changed}.items():
        files.write(folder / path, content, folder.parent)
    for path in gone:
        files.remove(folder / path, re.escape(PurePosixPath(path).name))
    files.write(folder / PUBLISHED, _listed(after), folder.parent)
    logger.info("%s files written, %s deleted, of %s.", len(changed), len(gone), len(contents))


def _ours(folder: Path, path: str, before: Digests) -> bytes | None:
    """Return the content of a file of ours; None if there is no file.

    Raises
    ------
    ConfigError
        If what is there is not what an earlier call has written.
    """
    place = folder / path
    if link := files.link_on(place, folder.parent):
        raise ConfigError(f"{link} is a link, which publish does not follow. Move it away.")
    try:
        content = files.read(place, within=folder.parent)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise ConfigError(f"{place} is not a file of publish: {error}. Move it away.") from error
    if _digest(content) not in before.get(path, ()):
        raise ConfigError(
            f"{place} is not as publish has written it. Move it away, or choose another folder."
        )
    return content


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def _listed(digests: Digests) -> bytes:
    return _json(files=digests)


def _json(**content: object) -> bytes:
    return (json.dumps({"format": FORMAT, **content}, indent=2) + "\n").encode()
