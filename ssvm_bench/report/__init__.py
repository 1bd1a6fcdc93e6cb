"""From finished runs to the files of an experiment and the pages of the report.

.. code-block:: text

    experiment_files   the files of one experiment: all kinds of figures, tables, thinned traces
    contents           which runs a page is on
    groups             runs that are shown together, and their names
    packed             the numbers of a figure, for `page.js`, which draws it
    page               one page of these
    pages              all pages, and the list of them
    publishing         a folder with pages and traces, to show to others
    compare            the comparison of two sets of runs

A page needs no network and no library: figures are SVG, drawn by its own script.
"""
