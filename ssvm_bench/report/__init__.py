"""What is made of finished runs: the files of an experiment, and the pages of the report.

.. code-block:: text

    experiment_files   the files of one experiment: all kinds of figures, tables, thinned traces
    contents           what a page is about: runs, which of them belong together, what failed
    markup             blocks of documents, and whole pages, as HTML
    shown              what is shown of kinds of figures
    page               the pages; `page.js` draws their figures

A page needs no network and no library: figures are SVG, drawn by its own script.
"""
