"""The pages of the public interface, from its docstrings.

These are reStructuredText in numpydoc's layout: docutils reads them, with one role for all names.
"""

from __future__ import annotations

import functools
import importlib
import inspect
import re
from collections.abc import Iterator

from docutils import nodes
from docutils.core import publish_parts
from docutils.parsers.rst import roles

MODULES = {
    "ssvm_bench": "From Python",
    "ssvm_bench.estimator.metrics": "Scores of sequences",
    "ssvm_bench.oracles.base": "Oracles",
    "ssvm_bench.solvers.base": "Solvers",
    "ssvm_bench.datasets.base": "Datasets",
    "ssvm_bench.base.clock": "Clocks",
}
SETTINGS = {"input_encoding": "unicode", "initial_header_level": 5, "halt_level": 3,
            "report_level": 3, "syntax_highlight": "none"}  # fmt: skip


def _name(role, rawtext, text, lineno, inliner, options=None, content=None):
    shown = text.rpartition(".")[2] if text.startswith("~") else text.lstrip(".")
    return [nodes.literal(rawtext, shown)], []


for _role in ("mod", "class", "func", "meth", "attr", "data", "name"):
    roles.register_local_role(_role, _name)


def html(docstring: str) -> str:
    """Return a docstring as HTML."""
    docstring = re.sub(r"\|(\w+)\|", r"\\|\1\\|", docstring)  # sizes, |W_i|: no substitutions
    docstring = re.sub(r"(?<=\w)_(?=[\s,:;)]|\.\s|$)", r"\\_", docstring)  # coef_: no links
    text, *sections = re.split(r"^(\w[\w ]*)\n-+\n", docstring, flags=re.MULTILINE)
    for title, entries in zip(sections[::2], sections[1::2], strict=True):
        text += f".. rubric:: {title}\n\n{_entries(entries)}\n"
    text = ".. default-role:: name\n\n" + text.replace(".. code-block::", ".. code::")
    made = publish_parts(text, writer="html5", settings_overrides=SETTINGS)["body"]
    made = re.sub(r'<span class="pre">(.*?)</span>', r"\1", made)
    made = re.sub(
        r'<span class="docutils literal">(.*?)</span>', r"<code>\1</code>", made, flags=re.DOTALL
    )
    return re.sub(
        r'<pre class="code[^"]*"><code>(.*?)</code></pre>',
        r"<pre><code>\1</code></pre>",
        made,
        flags=re.DOTALL,
    )


def _entries(text: str) -> str:
    """Return the entries of a section as definitions, those without a meaning too."""
    text = re.sub(r"^\*+", lambda found: found[0].replace("*", r"\*"), text, flags=re.MULTILINE)
    return re.sub(r"^(\S.*)\n(?!    )", r"\1\n    \\ \n", text + "\n", flags=re.MULTILINE)


def pages() -> Iterator[tuple[str, str]]:
    """Yield the place and the Markdown of each page."""
    for module_name, title in MODULES.items():
        module = importlib.import_module(module_name)
        names = getattr(module, "__all__", None) or [
            name
            for name, value in vars(module).items()
            if getattr(value, "__module__", "") == module_name and not name.startswith("_")
        ]
        lines = [f"# {title}: `{module_name}`", "", *_told(module)]
        for name in names:
            if callable(value := getattr(module, name)):
                lines += _described(name, value)
        yield (
            f"api/{module_name.removeprefix('ssvm_bench').strip('.') or 'python'}.md",
            "\n".join(lines),
        )


def _described(name: str, value) -> Iterator[str]:
    yield from _signature(2, name, value)
    if not inspect.isclass(value):
        return
    ours = [each for each in value.__mro__ if _is_ours(each)]
    for member in dict.fromkeys(name for each in ours for name in vars(each)):
        found = getattr(value, member)
        if member.startswith("_"):
            continue
        if isinstance(found, property | functools.cached_property):
            yield from _attribute(3, f"{name}.{member}", found)
        elif inspect.isfunction(found) and _is_ours(found):  # scikit-learn adds set_fit_request
            yield from _signature(3, f"{name}.{member}", found)


def _is_ours(value) -> bool:
    return value.__module__.partition(".")[0] == "ssvm_bench"


class _Annotation(str):
    """An annotation that is shown as it is written."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)


def _written(annotation):
    return _Annotation(annotation) if isinstance(annotation, str) else annotation


def _signature(level: int, name: str, value) -> Iterator[str]:
    yield from (f"{'#' * level} `{name}`", "")
    found = inspect.signature(value)
    parameters = [
        each.replace(annotation=_written(each.annotation)) for each in found.parameters.values()
    ]
    returned = _written(found.return_annotation)
    signature = found.replace(parameters=parameters, return_annotation=returned)
    shown = f"{name.rpartition('.')[2]}{signature}"
    if len(shown) > 88:
        shown = re.sub(r", (?=[*\w]+[:=,)]|\*)", ",\n    ", shown)
    yield from ("```python", shown, "```", "")
    yield from _told(value)


def _attribute(level: int, name: str, value) -> Iterator[str]:
    returned = inspect.signature(getattr(value, "fget", None) or value.func).return_annotation
    member = name.rpartition(".")[2]
    yield from (f"{'#' * level} `{name}`", "", "```python", f"{member}: {returned}", "```", "")
    yield from _told(value)


def _told(value) -> Iterator[str]:
    docstring = inspect.getdoc(value) or ""
    yield from ('<div class="docstring">', html(docstring), "</div>", "")
