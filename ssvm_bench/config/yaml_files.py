"""Users' YAML files, read strictly: plain values in lists and mappings of texts, nothing else.

Reading one takes neither long nor much memory, whatever it holds: its size and its nesting are
bounded, and what YAML could use to grow or to build objects is refused, as are interpolations,
which would be replaced by variables of the environment, and keys that stand twice.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import yaml

from ssvm_bench.base.errors import ConfigError, shown

LARGEST = 50_000
"""Most bytes of a file."""

DEEPEST = 8
"""Most levels of nesting."""

_LONGEST_INTEGER = 80  # characters, as many as the bits of one that is written in binary

_TEXT = "tag:yaml.org,2002:str"


def read(file: Path) -> Any:
    """Return the content of a YAML file.

    Raises
    ------
    ConfigError
        If it cannot be read, is too large, or is not as the module's docstring says.
    """
    if not file.is_file():  # a pipe would never end
        raise ConfigError(f"{shown(file, 200)} is no regular file.")
    try:
        with file.open("rb") as stream:
            content = stream.read(LARGEST + 1)
        if len(content) > LARGEST:
            raise ConfigError(f"{file} is too large: a YAML file has at most {LARGEST} bytes.")
        return yaml.load(content.decode(), _Loader)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        line = f"line {mark.line + 1}: " if mark else ""
        raise ConfigError(f"Cannot read {file}: {line}{error.problem}.") from error
    except (OSError, ValueError, yaml.YAMLError) as error:  # such as bytes that are no text
        raise ConfigError(f"Cannot read {file}: {error}.") from error


class _Loader(yaml.SafeLoader):
    """Reads plain values only."""

    depth = 0

    def compose_node(self, parent: Any, index: Any) -> Any:
        """Check what comes next before it is built."""
        event: Any = self.peek_event()
        if isinstance(event, yaml.AliasEvent) or event.anchor is not None:
            raise _refused("anchors and aliases (&, *) are not accepted", event)
        if event.tag is not None:
            raise _refused("tags (!) are not accepted", event)
        if isinstance(event, yaml.ScalarEvent) and "${" in event.value:
            raise _refused("interpolations, ${…}, are not accepted", event)
        if self.depth == DEEPEST:
            raise _refused(f"nested deeper than {DEEPEST} levels", event)
        self.depth += 1
        node = super().compose_node(parent, index)
        self.depth -= 1
        return node

    def flatten_mapping(self, node: yaml.MappingNode) -> None:
        """Check the keys of a mapping, where PyYAML would merge others into it."""
        seen = set()
        for key, _ in node.value:
            if key.tag != _TEXT:
                raise _refused("a key has to be text", key)
            if key.value in seen:
                raise _refused(f"the key {shown(key.value)} stands twice", key)
            seen.add(key.value)


def _integer(loader: _Loader, node: yaml.ScalarNode) -> int:
    """Return an integer, of which a text can have thousands of digits."""
    if len(node.value) > _LONGEST_INTEGER:
        raise _refused("an integer has at most 64 bits", node)
    return yaml.SafeLoader.construct_yaml_int(loader, node)


_Loader.add_constructor("tag:yaml.org,2002:int", _integer)
_Loader.add_implicit_resolver(  # YAML 1.2 has 1e-3 as a number, too
    "tag:yaml.org,2002:float", re.compile(r"[-+]?\d+[eE][-+]?\d+$", re.ASCII), list("-+0123456789")
)


def _refused(problem: str, place: Any) -> yaml.MarkedYAMLError:
    return yaml.MarkedYAMLError(problem=problem, problem_mark=place.start_mark)
