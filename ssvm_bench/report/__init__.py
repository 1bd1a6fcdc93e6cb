"""The report: one HTML file over everything in a results folder.

.. code-block:: text

    contents   what there is: runs, which of them belong together, what failed
    curves     figures that can be zoomed and switched, by plotly
    tables     what is told in rows
    markup     text to HTML: everything is escaped unless it is markup already
    page       the page, its sections in order

The file needs no network, no other file and no script of its own: plotly's library is inside.
"""

from ssvm_bench.report.page import build

__all__ = ["build"]
