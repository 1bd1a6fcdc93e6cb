"""The ``data`` commands: status, cards, downloads, preparation, pictures, export."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ssvm_bench import cli
from ssvm_bench.base.errors import ConfigError, nearest, shown
from ssvm_bench.cli import COUNT, FILE, NATURAL, Commands, Settings, completed
from ssvm_bench.config import ORDERS, SOURCES

if TYPE_CHECKING:
    from ssvm_bench.config.schema import RunConfig
    from ssvm_bench.datasets.base import Dataset
    from ssvm_bench.datasets.export import Export

ARRAYS = ".npz"

source_option = click.option(
    "--source",
    type=click.Choice(SOURCES),
    default="auto",
    show_default=True,
    help="Real data, synthetic data, or real data where there is any.",
)

trust_option = click.option(
    "--trust",
    "allow_checksum_mismatch",
    is_flag=True,
    help="Use raw files although they are not the genuine ones.",
)


@click.group("data", cls=Commands, invoke_without_command=True)
@click.pass_context
def data_command(context: click.Context) -> None:
    """Download, prepare, show and export datasets.

    Without a command, it shows the status of all.

    Raw files are looked for in $SSVM_BENCH_DATA, then in the user's cache folder. Those on board
    come with this program or with scikit-learn.

    .. code-block:: console

        ssvm-bench data status
        ssvm-bench data card ocr
        ssvm-bench data fetch ocr
        ssvm-bench data check ocr
        ssvm-bench data prepare stanford
        ssvm-bench data show weizmann 17
        ssvm-bench data export ocr ocr.parquet
    """
    if context.invoked_subcommand is None:
        context.invoke(status_command)


@data_command.command("status")
@click.argument("name", required=False, shell_complete=completed("dataset"))
@click.option("--verify", is_flag=True, help="Read all files, and check that they are genuine.")
@cli.json_option
def status_command(name: str | None = None, verify: bool = False, as_json: bool = False) -> None:
    """Show where the files are, and what to do where they are not."""
    from ssvm_bench.datasets.sources import status

    names = _names(name)
    if as_json:
        cli.print_json([status(each, verify)._asdict() for each in names])
        return
    width = max(map(len, names))
    for found in (status(each, verify) for each in names):
        about = f"{found.size / 1e6:.1f} MB{', on board' * found.on_board}"
        size = f" ({about})" if found.size else ""
        click.echo(f"{found.name:<{width}}  {found.state:<7}  {found.path}{size}")
        if found.content:
            click.echo(f"{'':<{width}}  content: {found.content}")
        if found.kept:
            what = "synthetic data prepared" if found.state == "missing" else "prepared"
            click.echo(f"{'':<{width}}  {what}: {found.kept}")
        if found.hint:
            click.echo(f"{'':<{width}}  {found.hint}")


@data_command.command("card")
@click.argument("name", shell_complete=completed("dataset"))
@cli.json_option
def card_command(name: str, as_json: bool) -> None:
    """Show origin, licence, size and citation of a dataset.

    Examples are counted if the data are on this machine; images, if they are also prepared.
    """
    from ssvm_bench.datasets.sources import card

    (name,) = _names(name)
    found = card(name)
    if as_json:
        cli.print_json(found)
        return
    width = max(map(len, found))
    for what, said in found.items():
        lines = (
            [f"{key}: {value}" for key, value in said.items()] if isinstance(said, dict) else [said]
        )
        for k, line in enumerate(lines):
            click.echo(f"{what if k == 0 else '':<{width}}  {line}")


@data_command.command("check")
@click.argument("name", shell_complete=completed("dataset"))
@click.pass_context
def check_command(context: click.Context, name: str) -> None:
    """Check whether raw files are the genuine ones.

    They are read completely, and what differs is shown. Exit status 1 if anything differs.
    """
    from ssvm_bench.datasets import sources

    (name,) = _names(name)
    path, findings = sources.integrity_report(name)
    click.echo(f"{name}: {path}")
    differing = 0
    for each in findings:
        differing += bool(each.expected)
        expected = f" (expected: {each.expected})" if each.expected else ""
        click.echo(f"  {'✗' if each.expected else ' '} {each.what}: {each.found}{expected}")
    click.echo(f"  {differing or 'no'} difference{'s' * (differing != 1)} from the genuine data")
    context.exit(min(differing, 1))


@data_command.command("fetch")
@click.argument("name", required=False, shell_complete=completed("dataset"))
def fetch_command(name: str | None) -> None:
    """Download a dataset, or all that are missing."""
    from ssvm_bench.datasets import sources

    for dataset in _names(name):
        path = sources.fetch(dataset)
        on_board = path == sources.raw_file(dataset).on_board
        click.echo(f"{dataset}: {path}{' (on board)' * on_board}")


@data_command.command("prepare")
@click.argument("name", required=False, shell_complete=completed("dataset"))
@source_option
@trust_option
def prepare_command(name: str | None, source: str, allow_checksum_mismatch: bool) -> None:
    """Compute what runs need of a dataset, or of all, and store it.

    A run does this itself if necessary. An interrupted preparation resumes where it stopped.
    """
    from ssvm_bench.cli import dataset_views

    for dataset in _names(name):
        click.echo("\n".join(dataset_views.prepared(dataset, source, allow_checksum_mismatch)))


@data_command.command("show")
@click.argument("name", shell_complete=completed("dataset"))
@click.argument("numbers", metavar="I...", type=int, nargs=-1, required=True)
@click.option(
    "--run",
    "runs",
    type=FILE,
    multiple=True,
    help="Folder of a run whose predictions are shown; may be repeated.",
)
@click.option(
    "--output", type=FILE, help="The PNG file to write. [default: NAME-I.png in the current folder]"
)
@source_option
@trust_option
@click.pass_obj
def show_command(settings: Settings, name: str, **chosen: Any) -> None:
    """Draw images I (from 0) of a dataset, and predictions of runs.

    It shows the superpixels, the ground truth, its majority in each superpixel, and what the
    weights of finished runs predict. For plates and faces, it shows predictions before and after
    training, and the learned templates.

    .. code-block:: console

        ssvm-bench data show weizmann 17
        ssvm-bench data show stanford 0 8 15 --run results/runs/stanford/mpbcfw/…/seed=0
        ssvm-bench data show davis_car_shadow 3 39
        ssvm-bench data show plates 6788 6789 --run results/runs/plates/mpbcfw/…/seed=0
    """
    from ssvm_bench.cli import dataset_views

    settings.config_dirs()
    (name,) = _names(name)
    click.echo(f"figure: {dataset_views.show(name, **chosen)}")


@data_command.command("export")
@click.argument("name", shell_complete=completed("dataset"))
@click.argument("file", type=FILE)
@click.argument("overrides", nargs=-1, shell_complete=completed("overrides"))
@click.option(
    "--repeat", metavar="K", type=COUNT, default=1, help="Write every example K times. [default: 1]"
)
@click.option(
    "--order",
    type=click.Choice(ORDERS),
    help="Order of the examples: as in the dataset, each repeat shuffled, or repeats side by side. "
    "[default: dataset, with --repeat shuffled]",
)
@click.option(
    "--jitter",
    metavar="KIND=STRENGTH,...",
    help="Deform images: shift (pixels), rotation (degrees), elastic (pixels; its smoothness is "
    "sigma, 4 by default).",
)
@click.option(
    "--seed", type=NATURAL, default=0, help="Seed of order and deformations. [default: 0]"
)
@source_option
@trust_option
@click.pass_obj
def export_command(
    settings: Settings,
    name: str,
    file: Path,
    overrides: tuple[str, ...],
    source: str,
    allow_checksum_mismatch: bool,
    jitter: str | None,
    **how: Any,
) -> None:
    """Write a dataset to a file.

    FILE.parquet is for dataset=stream, FILE.npz for dataset=file. Held-out examples are written
    once, unchanged. OVERRIDES are options of the dataset, as dataset.n_samples=1000.

    .. code-block:: console

        ssvm-bench data export ocr words.parquet 'dataset.folds=[0]'
        ssvm-bench data export usps digits.npz
        ssvm-bench data export mnist digits.parquet --repeat 34 --jitter shift=1,elastic=1.4
        ssvm-bench run dataset=stream dataset.path=digits.parquet dataset.n_samples=10000
    """
    from ssvm_bench.config import compose
    from ssvm_bench.config.overrides import read
    from ssvm_bench.datasets.base import Dataset
    from ssvm_bench.datasets.export import SUFFIX, Export, Jitter
    from ssvm_bench.runs.components import load_dataset

    trusts = ["dataset.trust=true"] * allow_checksum_mismatch
    words, folders = [f"dataset.source={source}", *trusts, *overrides], settings.config_dirs()
    how["order"] = how["order"] or ("shuffled" if how["repeat"] > 1 else "dataset")
    export = Export(jitter=None if jitter is None else Jitter.read(jitter), **how)
    for setting in read(words):
        if not setting.key.startswith("dataset."):
            raise ConfigError(
                f"{setting.text}: what is exported depends on options of the dataset alone, as "
                "dataset.n_samples=1000."
            )
    if file.suffix not in (SUFFIX, ARRAYS) or file.is_dir():
        raise ConfigError(f"{file} must be a file whose name ends in {SUFFIX} or {ARRAYS}.")
    if file.suffix == ARRAYS and export != Export():
        raise ConfigError(
            f"{file}: repeats, orders and deformations are for streams, in a {SUFFIX} file."
        )
    (config,) = compose.compose_runs([f"dataset={name}", *words], config_dirs=folders)
    dataset = load_dataset(config.dataset)
    assert isinstance(dataset, Dataset)  # not a stream
    if dataset.admissible is not None:
        raise ConfigError(
            f"{name} has {dataset.structure}, whose labelings are constrained, as no file of "
            "examples says. A folder of images with a table is read as it is: see dataset.path."
        )
    if file.suffix == ARRAYS:
        click.echo(_written_arrays(dataset, file))
    else:
        click.echo("\n".join(_written_stream(dataset, file, export, config)))


def _written_arrays(dataset: Dataset, path: Path) -> str:
    """Write a dataset to an npz; return a line that describes its content."""
    from ssvm_bench.datasets.own_files import npz
    from ssvm_bench.results import words
    from ssvm_bench.results.folder import cannot_write

    if dataset.structure not in npz.STRUCTURES:
        raise ConfigError(f"{dataset.name} is {dataset.structure}, which no {ARRAYS} has.")
    try:
        npz.write(dataset, path)
    except OSError as error:
        raise cannot_write(path, error) from error
    counts = [f"{dataset.n} to train on"]
    counts += [f"{examples.n} {split}" for split, examples in dataset.held_out.items()]
    size = path.stat().st_size / 1e6
    of = f"{dataset.name} ({words.source(dataset.source)} data)"
    return f"{path}: {of}, {size:.1f} MB: {', '.join(counts)}"


def _written_stream(
    dataset: Dataset, path: Path, export: Export, config: RunConfig
) -> Iterator[str]:
    """Write a dataset to a file for `DataStream`; yield lines that describe its content."""
    from ssvm_bench.config import registry
    from ssvm_bench.datasets.export import write
    from ssvm_bench.results import words
    from ssvm_bench.results.provenance import provenance

    name = config.dataset.name
    images = getattr(registry.module("dataset", config.dataset.kind), "IMAGES", None)
    one_each = dataset.y.size == dataset.n
    are_images = images is not None and one_each and math.prod(images.cell) == dataset.n_features
    if export.jitter is not None and not are_images:
        modules = {kind: registry.module("dataset", kind) for kind in registry.kinds("dataset")}
        known = [kind for kind, module in modules.items() if hasattr(module, "IMAGES")]
        raise ConfigError(
            f"--jitter deforms images, and the examples of {name} are not images. Leave it out, or "
            f"export one of: {', '.join(known)}."
        )
    with registry.blamed("oracle", config.oracle.kind):
        build = registry.module("oracle", config.oracle.kind).build
        d = int(build(config.oracle, dataset.head(2)).d)
    begin = time.perf_counter()
    chosen = config.with_source(dataset.source).resolved()["dataset"]
    left_out = getattr(config.dataset, "NOT_HASHED", ())
    made = {
        "options": {key: value for key, value in chosen.items() if key not in left_out},
        "started": datetime.now(UTC).isoformat(timespec="seconds"),
        **provenance(),
    }
    header = write(dataset, path, export, images, oracle=config.oracle.name, d=d, made=made)
    seconds = time.perf_counter() - begin
    counts = [f"{header.train.n} to train on"]
    counts += [f"{split.n} {name}" for name, split in [*header.splits.items()][1:]]
    groups = sum(split.row_groups for split in header.splits.values())
    of = f"{name} ({words.source(dataset.source)} data)"
    yield f"{path}: {of}, {path.stat().st_size / 1e6:.1f} MB"
    yield f"  examples: {', '.join(counts)}; row groups: {groups}"
    rate = header.train.n / seconds
    yield f"  fingerprint {header.fingerprint}; {seconds:.1f} s, {rate:.0f} examples a second"


def _names(name: str | None) -> list[str]:
    """Return the dataset of that name, or all that have raw files."""
    from ssvm_bench.config import catalog

    known = catalog.entries("dataset")
    if name is not None and name not in known:
        raise ConfigError(f"There is no dataset {shown(repr(name))}. {nearest(name, known)}")
    if name is not None:
        return [name]
    from ssvm_bench.datasets.sources import has_raw_file

    return list(filter(has_raw_file, known))
