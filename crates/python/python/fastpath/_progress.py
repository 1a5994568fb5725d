"""Progress bars and live tables: on a terminal, and in a notebook."""

from __future__ import annotations

import sys
import time
from types import TracebackType
from typing import Any, Callable, Optional, Union

__all__ = ["Bar", "Display"]

_WIDTH = 40
_EVERY_S = 0.1


class Bar:
    """Shows how far a call is: ``with Bar(True, 100) as bar: bar(7)``.

    Parameters
    ----------
    shown
        None or False: nowhere. True: a bar, on a terminal or in a notebook. A function is called
        with what is done and what there is.
    total
        What there is, if it is known.
    """

    def __init__(self, shown: Union[bool, Callable[[int, int], object], None], total: int = 0) -> None:
        self._call = shown if callable(shown) else None
        self._total = total
        self._drawn_at = 0.0
        self._display: Any = _notebook_display() if shown is True else None
        self._on_terminal = shown is True and self._display is None and sys.stderr.isatty()

    @property
    def is_shown(self) -> bool:
        """Whether anything looks at the progress."""
        return self._call is not None or self._display is not None or self._on_terminal

    def __call__(self, done: int, total: Optional[int] = None) -> None:
        """Show that this much is done."""
        total = self._total if total is None else total
        if self._call is not None:
            self._call(done, total)
            return
        now = time.monotonic()
        if not total or not self.is_shown or (now - self._drawn_at < _EVERY_S and done < total):
            return
        self._drawn_at = now
        share = min(done / total, 1.0)
        if self._display is not None:
            self._display.update(_Html(f'<progress value="{share:.4f}" max="1"></progress> {share:.0%}'))
        else:
            filled = int(_WIDTH * share)
            sys.stderr.write(f"\r[{'#' * filled}{'.' * (_WIDTH - filled)}] {100 * share:3.0f} %")
            sys.stderr.flush()

    def __enter__(self) -> Bar:
        return self

    def __exit__(
        self,
        _kind: Optional[type[BaseException]],
        _raised: Optional[BaseException],
        _trace: Optional[TracebackType],
    ) -> None:
        if self._display is not None:
            self._display.update(_Html(""))
        elif self._on_terminal:
            sys.stderr.write("\r\x1b[K")


class Display:
    """Shows a value that changes: each in the place of the one before."""

    def __init__(self) -> None:
        self._display: Any = _notebook_display()
        self._lines = 0

    def show(self, value: object) -> None:
        """Show a value: its HTML in a notebook, its text elsewhere."""
        if self._display is not None:
            self._display.update(value)
            return
        text = str(value)
        if self._lines and sys.stdout.isatty():
            sys.stdout.write(f"\x1b[{self._lines}A\x1b[J")
        print(text, flush=True)
        self._lines = text.count("\n") + 1


class _Html:
    def __init__(self, text: str) -> None:
        self._text = text

    def _repr_html_(self) -> str:
        return self._text

    def __repr__(self) -> str:
        return ""


def _notebook_display() -> Any:
    """Return a display of the running notebook, or None outside of one."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    if shell is None or type(shell).__name__ != "ZMQInteractiveShell":
        return None
    from IPython.display import display

    return display(_Html(""), display_id=True)
