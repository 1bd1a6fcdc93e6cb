"""From finished runs to the files of an experiment and the pages of the report.

.. code-block:: text

    experiment_files   the files of one experiment: all kinds of figures, tables, thinned traces
    contents           the contents of a page: runs, their groups, failures
    shown              figures, pictures and documents of the kinds of figures
    page               the pages; `page.js` draws their figures

A page needs no network and no library: figures are SVG, drawn by its own script.
"""
