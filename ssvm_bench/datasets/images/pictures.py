"""Pictures with a label per pixel, kept encoded until they are needed.

Hundreds of decoded photographs would fill the memory, and are slow to send to worker processes.
What is kept and sent is therefore what `Pictures.decode` makes one picture of: the bytes of its
files, or the seed of a drawing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, overload

import numpy as np


class Picture(NamedTuple):
    """One picture of h × w pixels.

    Attributes
    ----------
    rgb : ndarray of uint8, shape (h, w, 3)
        Colours.
    truth : ndarray of uint8, shape (h, w)
        The label of every pixel, in ``0 .. K - 1``.
    """

    rgb: np.ndarray
    truth: np.ndarray


@dataclass(frozen=True)
class Pictures:
    """A sequence of pictures that are decoded one at a time.

    Attributes
    ----------
    names : tuple of str
        One name a picture, for messages and files.
    encoded : sequence
        One small picklable object a picture.
    decode : callable
        A function of a module (so that it can be pickled) that makes a `Picture` of an item of
        ``encoded``; it raises `ContentError` where that is not a picture.
    """

    names: tuple[str, ...]
    encoded: Sequence[Any]
    decode: Callable[[Any], Picture]

    def __len__(self) -> int:
        """Return the number of pictures."""
        return len(self.names)

    @overload
    def __getitem__(self, i: int) -> Picture: ...

    @overload
    def __getitem__(self, i: slice) -> Pictures: ...

    def __getitem__(self, i: int | slice) -> Picture | Pictures:
        """Decode picture i; or take some of them."""
        if isinstance(i, slice):
            return Pictures(self.names[i], list(self.encoded[i]), self.decode)
        return self.decode(self.encoded[i])
