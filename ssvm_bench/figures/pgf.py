"""Figures as pgf, set by LaTeX; importing this takes time, which other formats need not."""

from __future__ import annotations

import io
from typing import Any

import matplotlib as mpl
from matplotlib.backends import backend_pgf
from matplotlib.figure import Figure

from ssvm_bench.base.errors import ConfigError, RunFailedError, shown
from ssvm_bench.figures.document import latex_text


class _Renderer(backend_pgf.RendererPgf):
    """Sets texts as they are written; the original passes them on to LaTeX, commands included."""

    def draw_text(
        self,
        gc: Any,
        x: Any,
        y: Any,
        s: Any,
        prop: Any,
        angle: Any,
        ismath: Any = False,
        mtext: Any = None,
    ) -> None:
        """Draw a text."""
        super().draw_text(gc, x, y, _source(s, ismath), prop, angle, ismath, mtext)

    def get_text_width_height_descent(self, s: Any, prop: Any, ismath: Any) -> Any:
        """Return the size of a text."""
        return super().get_text_width_height_descent(_source(s, ismath), prop, ismath)

    def draw_image(self, *arguments: Any, **options: Any) -> None:
        """Refuse a picture, which would be a file beside the figure's."""
        raise ConfigError("A figure with pictures cannot be pgf. Choose --format pdf.")


def _source(text: str, is_formula: bool) -> str:
    """Return what LaTeX reads: formulas are matplotlib's own, as the powers of ten at an axis."""
    return text if is_formula else latex_text(text)


def content(figure: Figure, program: str) -> bytes:
    """Return the file of a figure.

    Parameters
    ----------
    figure : Figure
    program : str
        The LaTeX that measures the texts.

    Raises
    ------
    ConfigError
        If the figure has pictures.
    RunFailedError
        If LaTeX fails.
    """
    buffer = io.BytesIO()
    original = backend_pgf.RendererPgf
    backend_pgf.RendererPgf = _Renderer  # type: ignore[misc]
    try:
        # the fonts are those of the document
        with mpl.rc_context({"pgf.texsystem": program, "pgf.rcfonts": False}):
            figure.savefig(buffer, format="pgf")
    except (backend_pgf.LatexError, ValueError, RuntimeError, OSError) as error:
        said = str(error)
        reason = next((line for line in said.splitlines() if line.startswith("!")), said)
        raise RunFailedError(
            f"{program} cannot set the figure: {shown(reason, 200)}. Repair LaTeX, which needs its "
            "package pgf, or choose --format pdf."
        ) from error
    finally:
        backend_pgf.RendererPgf = original  # type: ignore[misc]
    return buffer.getvalue()
