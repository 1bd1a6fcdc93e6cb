"""Scripts as Jupyter notebooks.

A script begins with a docstring: a title, a blank line, prose.
"""

from __future__ import annotations

import ast
import json


def described(text: str) -> tuple[str, str, str]:
    """Return the title, the prose and the code of a script."""
    title, _, prose = (ast.get_docstring(ast.parse(text)) or "").partition("\n")
    return title.rstrip("."), prose.strip(), text.split('"""', 2)[2].strip()


def notebook(text: str) -> str:
    """Return a script as a Jupyter notebook of version 4.5: its prose, and a cell a paragraph."""
    title, prose, code = described(text)
    lines, starts, end = code.splitlines(), [0], 0
    for node in ast.parse(code).body:
        first = min([node.lineno, *(each.lineno for each in getattr(node, "decorator_list", ()))])
        if end and first > end + 1:  # a blank line, or a comment, is before it
            starts.append(end)
        end = node.end_lineno or first
    pieces = [lines[a:b] for a, b in zip(starts, [*starts[1:], len(lines)], strict=True)]
    cells = [("markdown", f"# {title}\n\n{prose}")]
    cells += [("code", "\n".join(piece).strip("\n")) for piece in pieces]
    made = {
        "cells": [
            {"cell_type": kind, "id": f"cell-{k}", "metadata": {}, "source": source}
            | ({"execution_count": None, "outputs": []} if kind == "code" else {})
            for k, (kind, source) in enumerate(cells)
        ],
        "metadata": {"kernelspec": {"display_name": "Python 3", "name": "python3"}},
        "nbformat": 4,
        "nbformat_minor": 5,
    }
    return json.dumps(made, ensure_ascii=False, indent=1)
