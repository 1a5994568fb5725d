"""The exceptions of the package. Every one is a :class:`fastpath.Error`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Sequence

from ._native import Error

__all__ = ["Error", "LabError", "Mistake", "Mistakes"]


@dataclass(frozen=True)
class Mistake:
    """A mistake in a description.

    Attributes
    ----------
    place
        The call that gave the value, and the value: ``exp.py:12: link a-b: rate``.
    what
        What is wrong.
    instead
        What to write.
    """

    place: str
    what: str
    instead: str

    def __str__(self) -> str:
        return f"{self.place}: {self.what}; {self.instead}"


class Mistakes(Error):
    """A description has mistakes. The text has a line for each; ``mistakes`` is the list."""

    def __init__(self, mistakes: Sequence[Mistake]) -> None:
        super().__init__("\n".join(map(str, mistakes)))
        self.mistakes = list(mistakes)


class LabError(Error):
    """A lab cannot be brought up, or has ended."""
