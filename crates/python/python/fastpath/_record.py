"""Records: dicts whose keys are attributes too."""

from __future__ import annotations

from typing import Any

__all__ = ["Record"]


class Record(dict[str, Any]):
    """A dict whose keys are attributes too: ``record["rate"]`` is ``record.rate``.

    ``from`` is a word of Python: its attribute is ``from_``.
    """

    def __getattr__(self, key: str) -> Any:
        try:
            return self[key[:-1] if key == "from_" else key]
        except KeyError:
            have = ", ".join(map(str, self))
            raise AttributeError(f"the record has no {key} (have: {have})") from None
