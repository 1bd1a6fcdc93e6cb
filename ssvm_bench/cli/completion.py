"""Completion of a command line: commands, names, options of a run, and what they can be set to.

``_SSVM_BENCH_COMPLETE=bash_source ssvm-bench`` prints a script for the shell. The shell then calls
the program at each press of the key. To be fast, this module imports no component: it reads options
from the source of the component's ``Config`` and of its base classes.
"""

from __future__ import annotations

import ast
import functools
import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import click
from click.shell_completion import BashComplete, ZshComplete, add_completion_class, split_arg_string

from ssvm_bench.config import catalog, registry

_PACKAGE = Path(__file__).parents[1]

_BASH = """\
%(complete_func)s() {
    local IFS=$'\\n' type value
    local line=${COMP_LINE:0:COMP_POINT} cur=${COMP_WORDS[COMP_CWORD]}
    local word=${line##*[[:space:]]}
    [[ $cur == [=:] ]] && cur=
    # bash splits words at = and :, and replaces what is behind the last one alone
    local before=${word%%"$cur"}
    for completion in $(env COMP_WORDS="$line" %(complete_var)s=bash_complete $1); do
        IFS=, read -r type value <<< "$completion"
        case $type in
            dir) compopt -o dirnames ;;
            file) compopt -o default ;;
            plain) printf -v value %%q "${value#"$before"}" && COMPREPLY+=("$value") ;;
        esac
    done
    [[ ${COMPREPLY[0]} == *[=.] ]] && compopt -o nospace
    return 0
}
complete -o nosort -F %(complete_func)s %(prog_name)s
"""

_ADD = "compadd -U -V unsorted -a completions"


@add_completion_class
class _Bash(BashComplete):
    """Splits the line into words itself: bash also splits at ``=``."""

    source_template = _BASH

    def get_completion_args(self) -> tuple[list[str], str]:
        """Return the words before the last one, and the last one."""
        line = os.environ["COMP_WORDS"]
        words = [*split_arg_string(line), *([""] if line[-1:].isspace() else [])]
        return words[1:-1], words[-1]


@add_completion_class
class _Zsh(ZshComplete):
    """Adds no blank after a word that is not complete: ``solver=``, ``solver.``."""

    source_template = ZshComplete.source_template.replace(
        _ADD, f"if [[ $completions[1] == *[=.] ]]; then {_ADD} -S ''; else {_ADD}; fi"
    )


def completions(what: str, context: click.Context, incomplete: str) -> list[str]:
    """Return the overrides, or the names of a group or of ``"experiments"``, that begin so."""
    with suppress(Exception):  # the command itself reports errors
        if what == "overrides":
            return _overrides(context, incomplete)
        of = context.params.get("kind") if what == "kind" else what
        return _starting(incomplete, catalog.entries(str(of), _folders(context)))
    return []


def _overrides(context: click.Context, incomplete: str) -> list[str]:
    """Complete an override of a run: the name of an option or a group, or its value."""
    folders, words = _folders(context), context.params.get("overrides") or ()
    said = dict(word.partition("=")[::2] for word in words)
    key, is_set, value = incomplete.partition("=")
    section, _, option = key.partition(".")
    if is_set:
        *first, last = value.rpartition(",")  # of a sweep
        if key in catalog.GROUPS:
            known = [*catalog.entries(key, folders)]
        else:
            known = [*_known(*_options(section, said, folders)[option or section])]
        return [f"{key}={''.join(first)}{name}" for name in _starting(last, known)]
    if section in _run() and "." in key:
        listed = _options(section, said, folders)
        return _starting(incomplete, (f"{section}.{name}=" for name in listed))
    groups = (f"{name}=" for name in catalog.GROUPS)
    others = (f"{name}." if _is_section(name) else f"{name}=" for name in _run())
    return _starting(incomplete, dict.fromkeys((*groups, *others)))


def _folders(context: click.Context) -> list[Path]:
    settings = context.find_root().obj
    return settings.config_dirs() if settings is not None else []


def _starting(begin: str, listed: Any) -> list[str]:
    return [name for name in listed if name.startswith(begin)]


# ---- options, read from their source ----------------------------------------------------------

_Option = tuple[ast.expr, Path]
"""The annotation of an option, and the file that it is in."""


def _run() -> dict[str, _Option]:
    """Return the options and the sections of a run."""
    return _fields(ast.Name("RunConfig"), _PACKAGE / "config" / "schema.py")


def _is_section(name: str) -> bool:
    return name in catalog.COMPONENTS or isinstance(_found(*_run()[name])[1], ast.ClassDef)


def _options(section: str, said: dict[str, str], folders: list[Path]) -> dict[str, _Option]:
    """Return the options of a section, of the component chosen by earlier words or the default."""
    if section not in catalog.COMPONENTS:
        return _fields(*_run()[section]) or _run()
    chosen = {**catalog.DEFAULTS, **{key: value.partition(",")[0] for key, value in said.items()}}

    def read(group: str) -> catalog.Choice:
        return catalog.read(group, chosen[group], catalog.entries(group, folders))

    if section == "oracle" and "oracle" not in said:
        chosen["oracle"] = read("dataset").oracle or chosen["oracle"]
    return _fields(ast.Name("Config"), registry.source(section, read(section).options["kind"]))


def _fields(of: ast.expr, file: Path) -> dict[str, _Option]:
    """Return the fields of a dataclass and of its base classes."""
    found: dict[str, _Option] = {}
    file, node = _found(of, file)
    if isinstance(node, ast.ClassDef):
        for base in node.bases:
            found |= _fields(base, file)
        for each in node.body:
            if not (isinstance(each, ast.AnnAssign) and isinstance(each.target, ast.Name)):
                continue
            if "ClassVar" not in ast.dump(each.annotation):
                found[each.target.id] = each.annotation, file
    return {name: option for name, option in found.items() if name not in ("name", "kind")}


def _known(annotation: ast.expr, file: Path) -> Iterator[str]:
    """Yield the words that an option can be set to, as far as its annotation lists them."""
    file, node = _found(annotation, file)
    if isinstance(node, ast.Name) and node.id == "bool":
        yield from ("true", "false")
    elif isinstance(node, ast.Constant) and node.value is None:
        yield "null"
    elif isinstance(node, ast.BinOp):
        yield from (*_known(node.left, file), *_known(node.right, file))
    elif isinstance(node, ast.Subscript):
        for call in ast.walk(node.slice):
            if isinstance(call, ast.Call) and ast.unparse(call.func).endswith("one_of"):
                yield from _words(call.args[0], file)


def _words(node: Any, file: Path) -> Iterator[str]:
    """Yield the texts of a constant."""
    file, node = _found(node, file)
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        yield node.value
    elif isinstance(node, ast.Starred):
        yield from _words(node.value, file)
    elif isinstance(node, ast.Call):  # tuple(…)
        yield from _words(node.args[0], file)
    for each in getattr(node, "elts", getattr(node, "keys", ())):
        yield from _words(each, file)


def _found(node: Any, file: Path) -> tuple[Path, Any]:
    """Return the file and the node that a name refers to: a class, or the value of a constant."""
    if isinstance(node, ast.Attribute):
        return _found(ast.Name(node.attr), _found(node.value, file)[0])
    if not isinstance(node, ast.Name):
        return file, node
    for each in _parsed(file).body:
        if isinstance(each, ast.ClassDef) and each.name == node.id:
            return file, each
        targets = each.targets if isinstance(each, ast.Assign) else [getattr(each, "target", None)]
        if any(getattr(target, "id", "") == node.id for target in targets):
            return _found(each.value, file)  # type: ignore[attr-defined]
        if isinstance(each, ast.ImportFrom) and each.module:
            for alias in each.names:
                if (alias.asname or alias.name) == node.id:
                    return _imported(each.module, alias.name)
    return file, node


def _imported(module: str, name: str) -> tuple[Path, Any]:
    """Return the file and the node of a name imported from this package; it may be a module."""
    folder = _PACKAGE.parent.joinpath(*module.split("."))
    for file in (folder / f"{name}.py", folder / name / "__init__.py"):
        if file.is_file():
            return file, None
    whole = folder / "__init__.py" if folder.is_dir() else folder.with_suffix(".py")
    return _found(ast.Name(name), whole) if whole.is_file() else (whole, None)


@functools.cache
def _parsed(file: Path) -> ast.Module:
    return ast.parse(file.read_text(encoding="utf-8"))
