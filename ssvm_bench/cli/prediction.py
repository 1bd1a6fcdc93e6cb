"""``predict`` and ``score``: what a finished run says of examples, and how good that is."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ssvm_bench.base.errors import ConfigError
from ssvm_bench.cli.options import FILE, Command, Settings

if TYPE_CHECKING:
    from ssvm_bench.runs.prediction import Examples

run_argument = click.argument("run", type=FILE)

data_option = click.option(
    "--data",
    metavar="FILE",
    type=FILE,
    help="Examples like those of the run's file, or an .npz. [default: what the run held out]",
)


def _out_option(text: str) -> Callable[[Any], Any]:
    """Return the option of a file to write to, with its help."""
    return click.option("--out", metavar="FILE", type=FILE, help=text)


@click.command("predict", cls=Command)
@run_argument
@data_option
@_out_option("Where to write the labels. [default: standard output]")
@click.pass_obj
def predict_command(settings: Settings, run: Path, data: Path | None, out: Path | None) -> None:
    """Write the labels that a finished run predicts: a line a part, in the order of the data.

    RUN is the folder of a run, or one with a single run in it. Behind each example of several parts
    is an empty line.

    .. code-block:: console

        ssvm-bench predict results/runs/file/mpbcfw_fast/…/seed=0 --data new.txt --out labels.txt
        ssvm-bench predict results/runs/conll2000/mpbcfw_fast/…/seed=0
    """
    from ssvm_bench.results.files import write
    from ssvm_bench.runs import prediction

    found, predicted = _predicted(settings, run, data)
    text = "".join(f"{line}\n" for line in prediction.lines(found.dataset, predicted))
    if out is None:
        click.echo(text, nl=False)
    else:
        write(out, text.encode())


@click.command("score", cls=Command)
@run_argument
@data_option
@_out_option("Also write all numbers to a JSON file.")
@click.pass_obj
def score_command(settings: Settings, run: Path, data: Path | None, out: Path | None) -> None:
    """Compare what a finished run predicts with the truth.

    It shows accuracy, precision, recall and F1 of each label and, where labels are those of chunks
    (B-NP, I-NP, O), of each kind of chunk as conlleval counts them; and which labels are confused.

    .. code-block:: console

        ssvm-bench score results/runs/conll2000/mpbcfw_fast/…/seed=0
        ssvm-bench score results/runs/file/mpbcfw_fast/…/seed=0 --data test.txt.gz --out scores.json
    """
    import json

    from ssvm_bench.results.files import write
    from ssvm_bench.runs import prediction

    found, predicted = _predicted(settings, run, data)
    if not found.labelled:
        raise ConfigError(f"{found.of} has no labels to compare with. Try `ssvm-bench predict`.")
    if found.dataset.structure == "regression":
        errors = abs(predicted - found.dataset.y)
        numbers: dict[str, Any] = {"parts": errors.size, "mean_absolute_error": errors.mean()}
        click.echo(f"mean absolute error {errors.mean():.6g}  ({errors.size} examples)")
    else:
        scores = prediction.score(found.dataset, predicted)
        numbers = scores.as_dict()
        click.echo("\n".join(scores.lines()))
    if out is not None:
        write(out, (json.dumps(numbers, indent=1, ensure_ascii=False) + "\n").encode())


def _predicted(settings: Settings, run: Path, data: Path | None) -> tuple[Examples, Any]:
    """Return the examples, and what is predicted for them; say how long it took."""
    from ssvm_bench.runs import prediction

    settings.config_dirs()
    model = prediction.load(prediction.find(run))
    begin = time.perf_counter()
    found = prediction.examples(model, data)
    read = time.perf_counter()
    predicted = prediction.predict(model, found.dataset)
    end = time.perf_counter()
    click.echo(
        f"{found.of}: {found.dataset.n} examples, {predicted.size} parts; read in "
        f"{read - begin:.2f} s, predicted in {end - read:.2f} s",
        err=True,
    )
    return found, predicted
