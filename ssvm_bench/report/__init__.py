"""What is made of finished runs: the files of an experiment, and one HTML page over all of them.

.. code-block:: text

    kinds              all kinds of figures, which are the page's sections
    experiment_files   the files of one experiment: figures, tables, thinned traces
    contents           what there is: runs, which of them belong together, what failed
    interactive        figures that can be zoomed and switched, by plotly
    page               the page, its sections in order; `page.html` is its template

The page needs no network, no other file and no script of its own: plotly's library is inside.
"""
