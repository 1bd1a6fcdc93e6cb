"""Raw data in several files, which are in one folder and have one home.

The path of the raw data is then the folder. A folder in which one of the files is missing is no
place where the data is: all of them are downloaded into the user's cache folder.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from ssvm_bench.datasets.cache import Arrays
from ssvm_bench.datasets.sources import RawFile
from ssvm_bench.datasets.tables import ContentError


@dataclass(frozen=True)
class FileSet(RawFile):
    """Raw files that are small enough to be parsed whole; ``url`` is the folder at their home.

    Attributes
    ----------
    file : str
        Empty: it is the folder itself that is looked for.
    members : mapping
        Name of each file → what makes an array of its bytes; raises `ContentError`.
    combine : callable
        From these arrays, in the order of ``members``, to those that are kept.
    stand_in : callable
        Returns arrays like those that are kept, made from a fixed seed.
    n_made : int
        Number of examples of the stand-in, without those that are held out.
    """

    file: str = field(default="", init=False)
    members: Mapping[str, Callable[[bytes], np.ndarray]]
    combine: Callable[..., Arrays]
    stand_in: Callable[[], Arrays]
    n_made: int

    @property
    def n_stand_in(self) -> int:
        """Number of examples of the stand-in."""
        return self.n_made

    def parts(self, path: Path) -> list[Path]:
        """Return all files."""
        return [path / name for name in self.members]

    def address(self, part: Path) -> str:
        """Return the file's address in the folder at their home."""
        return f"{self.url.rstrip('/')}/{part.name}"

    def check(self, path: Path) -> None:
        """Parse the file."""
        self._array(path)

    def real(self, path: Path) -> Arrays:
        """Parse all files."""
        return self.combine(*map(self._array, self.parts(path)))

    def stand_in_arrays(self) -> Arrays:
        """Make them."""
        return self.stand_in()

    def _array(self, part: Path) -> np.ndarray:
        """Return the array of one file; a `ContentError` says which one."""
        try:
            return self.members[part.name](part.read_bytes())
        except ContentError as error:
            raise ContentError(f"{part.name}: {error}") from error
