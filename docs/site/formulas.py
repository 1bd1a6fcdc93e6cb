r"""Formulas in Markdown as GitHub knows them, ``$…$`` and fences named ``math``, as MathML.

Browsers draw MathML themselves: no script, no font, no internet.
"""

from __future__ import annotations

import re

from latex2mathml.converter import convert
from markdown import Extension
from markdown.inlinepatterns import InlineProcessor


def mathml(text: str, display: str = "inline") -> str:
    """Return a formula as MathML."""
    text = re.sub(r"\\arg\s*\\(max|min)", r"\\operatorname{arg\1}", " ".join(text.split()))
    made = convert(text, display=display)
    made = re.sub(r"<mi>(arg)?(max|min)</mi>", r"<mo>\1\2</mo>", made)
    if display == "block":  # what is below max is set below it, not beside
        made = re.sub(
            r"<msub>(<mo>(?:arg)?(?:max|min)</mo>.*?)</msub>", r"<munder>\1</munder>", made
        )
    return re.sub(r"<mi>(&#x027E[89];)</mi>", r'<mo stretchy="false">\1</mo>', made)


def fence(source, language, css_class, options, md, **kwargs):
    """Return a fence named ``math``."""
    return f'<div class="formula" tabindex="0">{mathml(source, "block")}</div>'


class _Inline(InlineProcessor):
    def handleMatch(self, m, data):  # noqa: N802
        """Put the formula aside, with what must not begin a line behind it."""
        made = f'<span style="white-space: nowrap">{mathml(m[1])}{m[2]}</span>'
        return self.md.htmlStash.store(made), m.start(0), m.end(0)


class Formulas(Extension):
    """``$…$``, with no space inside its dollars."""

    def extendMarkdown(self, md):  # noqa: N802
        """Look for formulas after code, and before anything else."""
        md.inlinePatterns.register(
            _Inline(r"\$(?! )([^$\n]+?)(?<! )\$(?!\d)([.,:;)]*)", md), "formula", 185
        )
