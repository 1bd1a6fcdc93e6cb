"""Claims built in Python, until all papers are read from YAML (transitional)."""

import math
from dataclasses import replace
from functools import wraps
from types import MappingProxyType

from ssvm_bench.claims import claim as new
from ssvm_bench.claims.claim import Claim
from ssvm_bench.figures.document import beside
from ssvm_bench.results.words import number, percent


def Measured(values, low=-math.inf, high=math.inf, note="", text="", bounds=None, ended=""):
    made = new.Measured(values, low, high, {"": note} if note else {}, text, bounds, ended)
    return made


def _replace(self, note=None, **more):
    if note is not None:
        more["facts"] = {"": note} if note else {}
    return replace(self, **more)


new.Measured._replace = _replace


def above(value):
    return math.nextafter(value, math.inf)


def below(value):
    return math.nextafter(value, -math.inf)


def measure(function, of=lambda case: case):
    @wraps(function)
    def chosen(*options, **more):
        return lambda case: function(of(case), *options, **more)

    return chosen


class Statements:
    def __init__(self, module):
        self._said = beside(module, "claims")

    def claim(
        self,
        name,
        measure,
        show=number,
        key="",
        low=-math.inf,
        high=math.inf,
        words=MappingProxyType({}),
        **more,
    ):
        said, shown = self._said[name], percent if show is percent else "{:.3g}".format
        words = {**words, "low": shown(low), "high": shown(high)}
        fields = {part: said[part].format(**words) for part in ("section", "text", "measured")}
        fields["paper"] = {of: text.format(**words) for of, text in said.get("paper", {}).items()}
        fields |= {
            part: said[part]
            for part in ("timed", "lam", "given", "variants", "beside")
            if part in said
        }
        measuring = {"measure": measure, "show": show, "low": low, "high": high}
        return Claim(**{"key": key or name, **fields, **measuring, **more})


def about(module):
    from ssvm_bench.figures.style import Look

    content = beside(module, "about")
    content["experiments"] = tuple(content.get("experiments", ()))
    return {**content, "looks": {name: Look(*look) for name, look in content["looks"].items()}}
