"""What is made of finished runs: the files of an experiment, and one HTML page over all of them.

.. code-block:: text

    kinds              all kinds of figures, which are the page's sections
    experiment_files   the files of one experiment: figures, tables, thinned traces
    contents           what there is: runs, which of them belong together, what failed
    interactive        figures that can be zoomed and switched, by plotly
    tables             what is told in rows of runs and problem instances
    markup             text to HTML: everything is escaped unless it is markup already
    page               the page, its sections in order

The page needs no network, no other file and no script of its own: plotly's library is inside.
"""

from ssvm_bench.report.page import build

__all__ = ["build"]
