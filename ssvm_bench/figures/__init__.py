"""Figures and tables, made from traces only: nothing here runs a solver or loads data.

A kind of figure that shows more than traces, as the labels that runs found, declares what loads it
(`Kind.loads`): papers have such kinds.

`kind` says what a kind of figure is. `curves` turns traces into one tidy table, `drawing` such a
table into a picture in the colours of `style`, and `document` writes texts and tables: so a
picture, a CSV file and the report show the same numbers.
"""

import os as _os

from ssvm_bench.base import files as _files

if _folder := _files.matplotlib_folder():  # before matplotlib is imported, which looks once
    _os.environ.setdefault("MPLCONFIGDIR", str(_folder))
