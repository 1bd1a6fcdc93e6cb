"""Figures and tables, made from runs only: nothing here runs a solver or loads data.

A kind of figure that shows more than their columns, such as predicted labels, declares a function
that loads it (`Kind.loads`). Some papers have such kinds.

`kind` defines a kind of figure. `curves` turns runs into one tidy table, `drawing` draws such a
table in the colours of `style`, and `document` writes texts and tables, as a file ``tables.yaml``
beside a module describes them. So a picture, a CSV file and the report show the same numbers.
"""

import os as _os

from ssvm_bench.base import files as _files

if _folder := _files.matplotlib_folder():  # matplotlib reads this once, when it is imported
    _os.environ.setdefault("MPLCONFIGDIR", str(_folder))
