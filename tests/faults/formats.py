"""Files of users that deviate from their format: each is read as its own format, or refused.

A good file of every format is changed as other programs, spreadsheets and people write it. What is
taken must be of the format that the file had.
"""

import contextlib
import gzip
import random
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

from ssvm_bench.cli.commands import main
from ssvm_bench.datasets import file
from tests.faults.case import Case, call, no_one_message

TAGS = {
    "DT": ["the", "a", "some"],
    "NN": ["cat", "dog", "mat", "1.8", "12:30"],
    "VB": ["saw", "sat", ":)"],
}


def svmlight_of(rng: random.Random) -> str:
    """Return rows of two or three classes."""
    labels, first = rng.choice((("-1", "+1"), ("0", "1", "2"), ("1.0", "2e0"))), rng.choice((0, 1))
    lines = []
    for k in range(rng.choice((4, 30, 150))):
        chosen = (
            range(first, first + 5) if rng.random() < 0.5 else sorted(rng.sample(range(1, 99), 3))
        )
        entries = (f"{j}:{rng.choice((1, 2, rng.uniform(-1, 1))):.3g}" for j in chosen)
        lines.append(" ".join([labels[k % len(labels)], *entries]))
    return "\n".join(lines) + "\n"


def columns_of(rng: random.Random) -> str:
    """Return sentences of words, or of words with tags, and labels."""
    sentences = []
    width, labels = rng.choice((2, 3, 4)), rng.choice((["B-N", "I-N", "O"], ["N", "V"], ["0", "1"]))
    for _ in range(rng.choice((1, 2, 40))):
        lines = []
        for k in range(rng.choice((3, 6, 20))):
            tag = rng.choice([*TAGS])
            fields = [rng.choice(TAGS[tag]), tag, f"x{rng.randrange(4)}"][: width - 1]
            lines.append(" ".join([*fields, labels[k % len(labels)]]))
        sentences.append("\n".join(lines) + "\n")
    return "\n".join(sentences)


def everywhere(pattern: str, *replacements: str) -> Callable[[str, random.Random], str]:
    """Return what replaces a pattern, or now and then its first place alone."""
    return lambda text, rng: re.sub(
        pattern, rng.choice(replacements), text, count=rng.choice((0, 0, 1)), flags=re.MULTILINE
    )


def shuffled(text: str, rng: random.Random) -> str:
    """Change the order of the fields of all lines."""
    lines = [line.split() for line in text.split("\n")]
    order = rng.sample(range(len(lines[0])), len(lines[0]))
    return "\n".join(" ".join(line[k] for k in order if k < len(line)) for line in lines)


def without_a_column(text: str, rng: random.Random) -> str:
    """Leave out a column of all lines, or of one."""
    lines, k = text.split("\n"), rng.randrange(3)
    some = range(len(lines)) if rng.random() < 0.7 else [rng.randrange(len(lines))]
    for at in some:
        fields = lines[at].split()
        lines[at] = " ".join(fields[:k] + fields[k + 1 :])
    return "\n".join(lines)


def one_more_line(text: str, rng: random.Random) -> str:
    """Put a line somewhere that does not belong there."""
    lines, odd = (
        text.split("\n"),
        ("a,b,c", "# x", "1 2 3", "{'a': 1}", "x", "1:1", "1,2 1:1", "a b"),
    )
    lines.insert(rng.choice((0, 0, rng.randrange(len(lines)))), rng.choice(odd))
    return "\n".join(lines)


SVMLIGHT: dict[str, Callable[[str, random.Random], str]] = {
    "queries": everywhere(r"^(\S+)", r"\1 qid:3", r"\1 qid:x", r"\1 qid:1 qid:1"),
    "comments": everywhere("$", " # docid = GX1 inc = 1", "#", " #1:1"),
    "labels as words": everywhere(r"^[+-]?[\d.e]+(?= )", "spam", "B-NP", "yes", "__label__1"),
    "numbers": everywhere(r"^[+-]?([\d.]+)\S*", r"\1E+00", r"+\1", r"\1.0", r"0x\1", r"\1_0"),
    "several labels": everywhere(r"^([\d.]+)", r"\1,3", r"\1;3", r"\1|3"),
    "weights": everywhere(r"^(\S+)", r"\1:0.5", r"\1 0.5"),
    "named features": everywhere(r"(\d+):", r"f\1:", r"f\1=", r"\1=", r"x:\1:"),
    "blanks": everywhere(":", ": ", " :", " : ", ":\t", "::", ";"),
    "without labels": everywhere(r"^\S+ ", ""),
    "dense": everywhere(r"\d+:", ""),
    "dense, commas": lambda text, rng: re.sub(
        " ", rng.choice((",", ", ")), re.sub(r"\d+:", "", text)
    ),
    "VW": everywhere(r"^(\S+)", r"\1 |f", r"\1 1.0 |f"),
    "empty lines": everywhere("\n", "\n\n"),
}

COLUMNS: dict[str, Callable[[str, random.Random], str]] = {
    "separators": everywhere("(?<=.) (?=.)", "\t", ",", ", ", ";", "/", "_", "|", "\u00a0"),
    "no empty lines": everywhere("\n\n", "\n"),
    "only numbers": lambda text, rng: re.sub(
        r"[^\s.]", lambda found: str(ord(found[0]) % 10), text
    ),
    "words with colons": everywhere(r"^\w+", "12:30", "http://a.b:80", "1:1"),
    "labels with colons": everywhere(r"\w+$", "1:1", "a:b"),
    "marks of documents": lambda text, rng: "-DOCSTART- -X- O\n\n" + text,
}

BOTH: dict[str, Callable[[str, random.Random], str]] = {
    "byte order mark": lambda text, rng: "\ufeff" + text,
    "line ends": lambda text, rng: text.replace("\n", rng.choice(("\r\n", "\r", "\n\n\n"))),
    "blanks at the end": everywhere("$", " ", "\t", "\u00a0", "\x0c"),
    "order of columns": shuffled,
    "without a column": without_a_column,
    "one more line": one_more_line,
    "a head line": lambda text, rng: (
        rng.choice(("label a b", "word tag", "y x1 x2 x3")) + "\n" + text
    ),
    "cut short": lambda text, rng: text[: rng.randrange(len(text))],
    "a character": lambda text, rng: (
        text[: (k := rng.randrange(len(text)))]
        + rng.choice((":", "#", ",", "\0", "é", "1", " ", "\n"))
        + text[k + 1 :]
    ),
}


def cases(rng: random.Random, folder: Path) -> Iterator[Case]:
    """Yield faults without end."""
    kinds = {"svmlight": (svmlight_of, SVMLIGHT | BOTH), "columns": (columns_of, COLUMNS | BOTH)}
    path, out, log = folder / "data", folder / "out.npz", folder / "log"
    for name, (make, _) in kinds.items():  # this process then has loaded what the others need
        for _ in range(20):
            path.write_text(make(rng))
            raw = file.text(path.read_bytes())
            if (found := file.recognised(path, raw)) != name:
                raise RuntimeError(f"{found}: {raw!r}")
        with contextlib.suppress(SystemExit):
            main(["data", "export", "file", str(out), f"dataset.path={path}"])
    while True:
        name = rng.choice((*kinds, *kinds, "npz"))
        if name == "npz":
            np.savez(folder / "a.npz", x=np.eye(4), y=np.arange(4) % 2)
            content, kind = (folder / "a.npz").read_bytes(), "bytes"
            k = rng.randrange(len(content))
            content = rng.choice((content[:k], content[k:], content[:k] + b"\n" + content[k + 1 :]))
        else:
            make, changes = kinds[name]
            kind = rng.choice([*changes])
            changed = changes[kind](make(rng), rng)
            if rng.random() < 0.15:
                second = rng.choice([*changes])
                changed = changes[second](changed or " ", rng)
            content = changed.encode("utf-8", rng.choice(("strict", "replace")))
        if rng.random() < 0.1:
            content = gzip.compress(content)
        path.write_bytes(content)
        done = call(log, "data", "export", "file", out, f"dataset.path={path}")
        failure = no_one_message(done)
        found = _format(done.stderr)
        if not failure and done.returncode == 0 and found != name:
            failure = f"it is read as {found}: {content[:300]!r}"
        yield Case(f"{name}: {kind}", f"{content[:200]!r}", failure)


def _format(stderr: str) -> str | None:
    """Return the format that the program says it has read."""
    found = re.search(r"data: format (\w+)", stderr)
    return found and found[1]
