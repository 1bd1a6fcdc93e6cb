"""Commands on many runs, and on finished ones: experiments, figures, merging, predictions."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ssvm_bench import cli
from ssvm_bench.base.errors import ConfigError, SsvmBenchError, readable
from ssvm_bench.cli import COUNT, FILE, PROGRAM, Command, Settings, completed
from ssvm_bench.config import FORMATS, LOCAL
from ssvm_bench.jobs import MEANT, Options, chosen

if TYPE_CHECKING:
    from ssvm_bench.config.experiment import Shard
    from ssvm_bench.config.schema import RunConfig
    from ssvm_bench.runs.prediction import Examples, Scored, TrainedModel


def _shard(text: str | None) -> Shard | None:
    from ssvm_bench.config.experiment import Shard  # imports much that help does without

    return None if text is None else Shard.parsed(text)


@click.command("experiment", cls=Command)
@click.argument("name", shell_complete=completed("experiments"))
@click.argument("overrides", nargs=-1, shell_complete=completed("overrides"))
@click.option(
    "--jobs",
    metavar="N",
    type=COUNT,
    help="Runs at once, each in a process with one thread, pinned to a core. [default: 1]",
)
@click.option(
    "--backend",
    type=click.Choice(tuple(MEANT)),
    default=LOCAL,
    help="Local processes, workers of dask or ray, or SLURM jobs. [default: local]",
)
@click.option(
    "--address", help="Of a dask or ray scheduler. [default: a cluster of --jobs workers]"
)
@click.option("--partition", help="SLURM partition.")
@click.option(
    "--time-limit",
    metavar="MINUTES",
    type=click.IntRange(min=2),
    help="Time limit of a SLURM job; another job resumes its runs. [default: 60]",
)
@click.option("--memory", metavar="SIZE", help="Memory of a SLURM job, such as 4G.")
@click.option("--parallel", metavar="N", type=COUNT, help="Maximum number of SLURM jobs at once.")
@click.option(
    "--shard",
    metavar="I/K",
    callback=lambda _, __, text: _shard(text),
    help="Run the I-th of K parts of the runs, for machines that share nothing; see merge.",
)
@click.option(
    "--status",
    is_flag=True,
    help="Show which runs are done, running, failed or missing, and SLURM's queue; run nothing.",
)
@cli.dry_run_options
@cli.json_option
@click.pass_obj
def experiment_command(
    settings: Settings,
    name: str,
    overrides: tuple[str, ...],
    backend: str,
    shard: Shard | None,
    status: bool,
    dry_run: bool,
    cfg: str | None,
    as_json: bool,
    **asked: Any,
) -> int:
    """Execute missing runs of an experiment, then draw its figures.

    With --shard, no figures are drawn. OVERRIDES replace options of the experiment. dataset=… and
    solver=… choose among those that it lists, with the options that they have there.

    .. code-block:: console

        ssvm-bench experiment quickstart
        ssvm-bench experiment quickstart dataset.source=synthetic budget.max_iterations=5
        ssvm-bench experiment mpbcfw_fig4 dataset=weizmann solver=bcfw,mpbcfw --jobs 2
        ssvm-bench experiment mpbcfw_fig4 --status
        ssvm-bench experiment mpbcfw_fig4 --dry-run
        ssvm-bench experiment mpbcfw_fig4 --shard 2/4 results_dir=part-2
        ssvm-bench experiment mpbcfw_fig4 --backend dask --address tcp://127.0.0.1:8786
        ssvm-bench experiment mpbcfw_fig4 --backend submitit --parallel 20 --time-limit 120
    """
    said, folders = Options(**asked), settings.config_dirs()
    if status or dry_run or cfg:
        said.check(backend)
        from ssvm_bench.report.experiment_files import load

        configs = load(name, folders).configs(overrides, folders)
        configs = configs if shard is None else shard.of(configs)
        if not status:
            cli.print_configs(configs, as_json, several=True)
            return 0
        _show_status(name, configs, said, as_json)
        if backend == "submitit" and not as_json:
            from ssvm_bench.jobs import slurm

            click.echo("\n".join(slurm.lines(configs[0].results_dir)))
        return 0
    if as_json:
        raise ConfigError("--json is for --status and --dry-run: figures say what the runs found.")
    workers = chosen(backend, said)
    from ssvm_bench.report import experiment_files
    from ssvm_bench.results.words import runs

    outcome = experiment_files.make(name, overrides, folders, shard=shard, backend=workers)
    cli.print_outcomes(outcome.runs)
    _show_files(outcome.files)
    if settings.debug:
        for text in filter(None, outcome.tracebacks.values()):
            click.echo(text.rstrip(), err=True)
    if outcome.failures:
        click.echo(f"{PROGRAM}: {runs(len(outcome.failures))} failed.", err=True)
    return int(outcome.failed > 0)


def _show_status(name: str, configs: list[RunConfig], said: Options, as_json: bool) -> None:
    """Print where an experiment stands."""
    from ssvm_bench.jobs import status
    from ssvm_bench.results.folder import SkippedFiles

    found = status.survey(configs)
    with SkippedFiles() as skipped:
        for damaged in filter(None, (run.damage for run in found)):
            skipped.add(f"{damaged} The next `ssvm-bench experiment {name}` makes it again.")
    if as_json:
        cli.print_json([each.as_plain() for each in found])
        return
    for line in status.lines(found, said.jobs or said.parallel or 1):
        click.echo(line)


@click.command("plot", cls=Command)
@click.argument("name", shell_complete=completed("experiments"))
@click.argument("overrides", nargs=-1, shell_complete=completed("overrides"))
@cli.format_option(
    "File format; may be repeated; pgf needs LaTeX, tex is tables alone. [default: png and pdf; of "
    "photographs png]"
)
@click.option(
    "--x-scale",
    type=click.Choice(("log", "linear")),
    help="Scale of x. [default: log where some curves are much shorter, and of time where curves "
    "fall at once]",
)
@click.option(
    "--figure",
    "figures",
    metavar="KIND",
    multiple=True,
    help="Only this kind of figure, which the experiment need not list, as profile; may be "
    "repeated. [default: those that it lists]",
)
@cli.runs_option
@click.pass_obj
def plot_command(
    settings: Settings,
    name: str,
    overrides: tuple[str, ...],
    formats: tuple[str, ...],
    x_scale: str | None,
    figures: tuple[str, ...],
    whose: str,
) -> None:
    """Draw the figures of experiments from their finished runs.

    Further names may follow the first one; overrides are for all of them. Runs that overrides
    choose have a folder of their own below that of the experiment's figures.

    .. code-block:: console

        ssvm-bench plot quickstart
        ssvm-bench plot mpbcfw_fig4 mpbcfw_fig5 mpbcfw_fig6
        ssvm-bench plot quickstart --format svg
        ssvm-bench plot quickstart --format pdf --x-scale log
        ssvm-bench plot quickstart --figure profile
        ssvm-bench plot mpbcfw_fig4 dataset=usps --runs committed
    """
    cli.collect_rarely()
    from ssvm_bench.report import experiment_files

    for_all = [word for word in overrides if "=" in word or word.startswith("~")]
    log_x = None if x_scale is None else x_scale == "log"
    folders = settings.config_dirs()
    for each in (name, *(word for word in overrides if word not in for_all)):
        _show_files(experiment_files.plot(each, formats, for_all, folders, whose, log_x, figures))


def _show_files(files: Sequence[Path]) -> None:
    """Print what was drawn, and the text of a comparison."""
    from ssvm_bench.figures.targets import COMPARISON

    for file in files:
        named = {".json": file.stem.partition("-")[0], "": "traces"}
        click.echo(f"{named.get(file.suffix if file.is_file() else '', 'figure')}: {file}")
    for file in files:
        if file.suffix == ".md" and file.name.startswith(COMPARISON.name):
            click.echo(f"\n{file.read_text(encoding='utf-8')}".rstrip())


@click.command("merge", cls=Command)
@click.argument("folders", nargs=-1, type=FILE)
@click.option(
    "--into",
    metavar="DIR",
    required=True,
    type=FILE,
    help="Results folder to copy to; it may hold runs already.",
)
@click.option(
    "--source",
    type=click.Choice(("real", "synthetic")),
    help="Only runs on real data, or on synthetic data. [default: all, if they are of one kind]",
)
def merge_command(folders: tuple[Path, ...], into: Path, source: str | None) -> None:
    """Copy the runs of results folders into one.

    If several folders contain a run, a finished one is preferred, then the longer one. The figures
    are then drawn by `ssvm-bench plot`. Runs that cannot be read are left out; if none can be read,
    the exit status is 1.

    .. code-block:: console

        ssvm-bench merge part-1 part-2 part-3 part-4 --into results
        ssvm-bench plot mpbcfw_fig4
    """
    from ssvm_bench.results.merging import merge
    from ssvm_bench.results.words import runs

    if not folders:
        raise ConfigError("Name the results folders to merge: ssvm-bench merge A B --into C.")
    merged = merge(folders, into, source)
    copied = f"{runs(merged.copied)} copied to {into}, {merged.there} as good there"
    if merged.damaged:
        copied += f"; {merged.damaged} could not be read"
    click.echo(f"{copied}.")


# ---- predictions of a finished run, and their scores ------------------------------------------

run_argument = click.argument("run", type=FILE)

data_option = click.option(
    "--data",
    metavar="FILE",
    type=FILE,
    help="Examples like those of the run's file, or an .npz; - is standard input. [default: what "
    "the run held out]",
)

data_format_option = click.option(
    "--format",
    "format_",
    type=click.Choice(FORMATS),
    help="Format of --data. [default: that of the run's file]",
)


def _out_option(text: str) -> Callable[[Any], Any]:
    """Return the option ``--out`` with its help."""
    return click.option("--out", metavar="FILE", type=FILE, help=text)


@click.command("predict", cls=Command)
@run_argument
@data_option
@data_format_option
@_out_option("Where to write the labels. [default: standard output]")
@click.pass_obj
def predict_command(settings: Settings, run: Path, out: Path | None, **data: Any) -> None:
    """Write the labels that a finished run predicts.

    RUN is the folder of a run, or one with a single run in it. Each part has a line, in the order
    of the data. An empty line follows each example of several parts.

    .. code-block:: console

        ssvm-bench predict results/runs/file/mpbcfw_fast/…/seed=0 --data new.txt --out labels.txt
        ssvm-bench predict results/runs/conll2000/mpbcfw_fast/…/seed=0
        zcat new.txt.gz | ssvm-bench predict results/runs/file/mpbcfw_fast/…/seed=0 --data -
    """
    from ssvm_bench.results.folder import write_file
    from ssvm_bench.runs import prediction

    _, found, predicted = _predicted(settings, run, **data)
    text = "".join(f"{line}\n" for line in prediction.lines(found, predicted))
    if out is None:
        click.echo(text, nl=False)
    else:
        write_file(out, text.encode())


@click.command("score", cls=Command)
@run_argument
@data_option
@data_format_option
@_out_option("Also write all numbers to a JSON file.")
@click.option(
    "--chunks/--no-chunks",
    default=None,
    help="Whether labels are those of chunks. [default: if they look so, as B-NP, I-NP and O do]",
)
@click.pass_obj
def score_command(
    settings: Settings, run: Path, out: Path | None, chunks: bool | None, **data: Any
) -> int:
    """Compare what a finished run predicts with the truth.

    It shows accuracy, precision, recall and F1 of each label and, where labels are those of chunks
    (B-NP, I-NP, O), of each kind of chunk as conlleval counts them; and which labels are confused.
    With oracle.loss, it shows the mean of that loss as well. Of a folder with several runs, it
    shows a table of them, and the best one.

    .. code-block:: console

        ssvm-bench score results/runs/conll2000/mpbcfw_fast/…/seed=0
        ssvm-bench score results/runs/file/mpbcfw_fast/…/seed=0 --data test.txt.gz --out scores.json
        ssvm-bench score tuned/runs --data test.txt.gz
    """
    import json

    from ssvm_bench.datasets.reading import DESCRIPTOR, check_file
    from ssvm_bench.results.folder import write_file
    from ssvm_bench.runs import prediction

    folders = prediction.find_all(run)
    if data["data"] is not None:
        check_file(data["data"], descriptors=True)  # one message for all runs
    if len(folders) > 1 and DESCRIPTOR.fullmatch(str(data["data"])):
        raise ConfigError(
            f"--data {data['data']} can be read once, and {run} has {len(folders)} runs. Store the "
            "examples in a file, or name one of the runs."
        )
    several: list[Scored] = []
    for folder in folders:
        try:
            scored, lines = _scored(settings, folder, chunks, **data)
        except SsvmBenchError as error:
            if len(folders) == 1:
                raise
            click.echo(f"{PROGRAM}: {folder}: {readable(str(error))}", err=True)
            continue
        several.append(scored)
    if len(folders) > 1:
        lines = [*prediction.compared(several)]
    click.echo("\n".join(lines))
    if out is not None:
        of_each = [{"run": str(run.model.folder), **run.numbers} for run in several]
        content: Any = of_each if len(folders) > 1 else several[0].numbers
        write_file(out, (json.dumps(content, indent=1, ensure_ascii=False) + "\n").encode())
    return int(len(several) < len(folders))


def _scored(
    settings: Settings, run: Path, chunks: bool | None, **data: Any
) -> tuple[Scored, list[str]]:
    """Return a run with its score, and the lines that show it."""
    from ssvm_bench.runs import prediction

    model, found, predicted = _predicted(settings, run, **data)
    if found.dataset is None:
        raise ConfigError(f"{found.of} has no examples, and so nothing to compare.")
    if not found.labelled:
        columns = 0 if model.vocabulary is None else model.vocabulary.columns
        where = f": column {columns}, the last one, is missing" if columns else ""
        raise ConfigError(
            f"{found.of} has no labels to compare with{where}. Try `ssvm-bench predict`."
        )
    if found.dataset.structure == "regression":
        errors = abs(predicted - found.dataset.y)
        numbers: dict[str, Any] = {"parts": errors.size, "mean_absolute_error": errors.mean()}
        line = f"mean absolute error {errors.mean():.6g}  ({errors.size} examples)"
        return prediction.Scored(model, found.compared_with, numbers), [line]
    scores = prediction.score(found.dataset, predicted, chunks)
    numbers, lines = scores.as_dict(), [*scores.lines()]
    loss = prediction.mean_loss(model, found.dataset, predicted)
    if loss is not None:
        numbers["mean_loss"] = loss
        lines.append(f"mean loss {loss:.6g}  (of oracle.loss)")
    return prediction.Scored(model, found.compared_with, numbers), lines


def _predicted(
    settings: Settings, run: Path, data: Path | None, format_: str | None
) -> tuple[TrainedModel, Examples, Any]:
    """Return model, examples and predictions; print how long reading and predicting took."""
    from ssvm_bench.runs import prediction

    settings.config_dirs()
    model = prediction.load(prediction.find(run))
    begin = time.perf_counter()
    found = prediction.examples(model, data, format_)
    read = time.perf_counter()
    predicted = prediction.predict(model, found.dataset)
    end = time.perf_counter()
    click.echo(
        f"{found.of}: {found.offsets.size - 1} examples, {predicted.size} parts; read in "
        f"{read - begin:.2f} s, predicted in {end - read:.2f} s",
        err=True,
    )
    return model, found, predicted
