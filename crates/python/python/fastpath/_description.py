"""Writes a description as JSON and remembers where each value stands in the text.

The native module reads the text and reports mistakes by column. The places turn a column into the
name of a value, and the line of the caller's source that gave it.
"""

from __future__ import annotations

import json
import math
from typing import Any, Mapping, Sequence

Path = tuple[Any, ...]


class Placed:
    """A description as text on one line, with the path of the value at each column."""

    def __init__(self, value: Any) -> None:
        self._pieces: list[str] = []
        self._length = 0
        self._places: list[tuple[int, Path]] = []
        self.odd: list[tuple[Path, str, str]] = []
        self._write(value, ())
        self.text = "".join(self._pieces)

    def path_at(self, column: int) -> Path:
        """Return the path of the value at a column, from 1."""
        found: Path = ()
        for start, path in self._places:
            if start > column - 1:
                break
            found = path
        return found

    def _put(self, text: str) -> None:
        self._pieces.append(text)
        self._length += len(text)

    def _write(self, value: Any, path: Path) -> None:
        self._places.append((self._length, path))
        if isinstance(value, Mapping):
            self._put("{")
            for index, (key, entry) in enumerate(value.items()):
                self._put(", " if index else "")
                self._places.append((self._length, (*path, str(key))))
                self._put(json.dumps(str(key), ensure_ascii=False) + ": ")
                self._write(entry, (*path, str(key)))
            self._put("}")
        elif isinstance(value, Sequence) and not isinstance(value, (str, bytes)):
            self._put("[")
            for index, entry in enumerate(value):
                self._put(", " if index else "")
                self._write(entry, (*path, index))
            self._put("]")
        else:
            self._put(self._scalar(value, path))

    def _scalar(self, value: Any, path: Path) -> str:
        if hasattr(value, "item") and not isinstance(value, (str, bytes)):
            value = value.item()
        if isinstance(value, float) and not math.isfinite(value):
            self.odd.append((path, f"{value} is not a quantity", "write a finite number"))
            return "0"
        if value is None or isinstance(value, (bool, int, float, str)):
            return json.dumps(value, ensure_ascii=False)
        what = f"{type(value).__name__} is not a value of a description"
        self.odd.append((path, what, "write text, a number, True, a list or a dict"))
        return "0"
