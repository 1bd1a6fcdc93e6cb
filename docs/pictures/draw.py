"""Draw the pictures of this folder: ``make pictures``.

``tests/repository/test_docs.py`` compares them.

    python docs/pictures/draw.py [FOLDER]

All show one of the two problems of ``tiny.py``, and what the package's solvers do with it.
"""

import sys
from pathlib import Path

import algorithms  # noqa: F401
import matplotlib as mpl
import matplotlib.pyplot as plt
import terms  # noqa: F401
from style import DRAWN, STYLE


def draw(folder: Path) -> None:
    """Write all drawings."""
    with mpl.rc_context(STYLE):
        for name, function in DRAWN.items():
            figure = function()
            figure.savefig(folder / f"{name}.svg", metadata={"Date": None})
            plt.close(figure)


if __name__ == "__main__":
    draw(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent)
