"""Completion of a command line: commands, names, options of a run, and what they can be set to.

``_SSVM_BENCH_COMPLETE=bash_source ssvm-bench`` prints a script for the shell. The shell then calls
the program at each press of the key. To be fast, this module imports no component and reads no
source: what there is stands in a table, ``completion.json``, which ``make options`` builds. Files
of ``--config-dir`` add to it. A component of the user's own has the options that all of its group
have, and those that its YAML file sets.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any

import click
from click.shell_completion import BashComplete, ZshComplete, add_completion_class, split_arg_string

TABLE = Path(__file__).with_suffix(".json")
"""What can be completed, as JSON.

``defaults``, group → its default choice; ``names``, group → name → kind; ``oracles``, dataset → its
default oracle; ``kinds``, group → kind → option → words that it can be set to; ``shared``, group →
options that all its kinds have; ``run``, option or section → words, or the options of the section.
"""

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
        return _starting(incomplete, _names(str(of), _table(), _folders(context)))
    return []


def _overrides(context: click.Context, incomplete: str) -> list[str]:
    """Complete an override of a run: the name of an option or a group, or its value."""
    table, folders = _table(), _folders(context)
    said = dict(word.partition("=")[::2] for word in context.params.get("overrides") or ())
    key, is_set, value = incomplete.partition("=")
    section, _, option = key.partition(".")

    def options() -> dict[str, list[str]]:
        if section in table["kinds"]:
            return _of_component(section, said, table, folders)
        return table["run"][section]

    if is_set:
        *first, last = value.rpartition(",")  # of a sweep
        if key in table["defaults"]:
            known = _names(key, table, folders)
        else:
            known = options()[option] if option else table["run"][key]
        return [f"{key}={''.join(first)}{name}" for name in _starting(last, known)]
    if option or key.endswith("."):
        return _starting(incomplete, (f"{section}.{name}=" for name in options()))
    groups = (f"{name}=" for name in table["defaults"])
    sections = (f"{name}." for name in table["kinds"])
    others = (
        f"{name}." if isinstance(of, dict) else f"{name}=" for name, of in table["run"].items()
    )
    return _starting(incomplete, (*groups, *sections, *others))


def _of_component(
    group: str, said: dict[str, str], table: dict[str, Any], folders: list[Path]
) -> dict[str, list[str]]:
    """Return the options of the component that earlier words choose, or of the default one."""
    chosen = {**table["defaults"], **{key: value.partition(",")[0] for key, value in said.items()}}

    def read(group: str) -> Any:
        from ssvm_bench.config import catalog  # slow to import; files of others alone need it

        return catalog.read(group, chosen[group], catalog.entries(group, folders))

    if group == "oracle" and "oracle" not in said:
        known = table["oracles"].get(chosen["dataset"])
        chosen["oracle"] = known or read("dataset").oracle or chosen["oracle"]
    kind: str | None = table["names"][group].get(chosen[group])
    own: dict[str, list[str]] = {}
    if kind is None:
        options = read(group).options
        kind, own = options["kind"], {key: [] for key in options if key not in ("name", "kind")}
    return table["kinds"][group].get(kind) or {**table["shared"][group], **own}


def _names(group: str, table: dict[str, Any], folders: list[Path]) -> list[str]:
    """Return the names that a group has, with those of files in the user's folders."""
    files = (file for folder in folders for file in (folder / group).glob("*.yaml"))
    return sorted({*table["names"][group], *(file.stem for file in files)})


def _table() -> dict[str, Any]:
    return json.loads(TABLE.read_bytes())


def _folders(context: click.Context) -> list[Path]:
    settings = context.find_root().obj
    return settings.folders if settings is not None else []


def _starting(begin: str, listed: Iterable[str]) -> list[str]:
    return [name for name in listed if name.startswith(begin)]
