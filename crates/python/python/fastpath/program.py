"""Finds the program ``fastpath`` that the wheel brings."""

from __future__ import annotations

import os
import shutil
import sysconfig
from pathlib import Path
from typing import Iterator

from .errors import Error

__all__ = ["program"]


def program() -> str:
    """Return the path of the program ``fastpath``.

    The variable ``FASTPATH_PROGRAM`` wins. Otherwise it is the one installed with this package, or
    in a source checkout the one on the path.
    """
    given = os.environ.get("FASTPATH_PROGRAM")
    if given:
        return given
    for directory in _directories():
        candidate = directory / "fastpath"
        if os.access(candidate, os.X_OK) and candidate.is_file():
            return str(candidate)
    on_path = shutil.which("fastpath")
    if on_path:
        return on_path
    raise Error("the program fastpath is not here; set FASTPATH_PROGRAM to its path, or install the wheel")


def _directories() -> Iterator[Path]:
    yield Path(sysconfig.get_path("scripts"))
    package = Path(__file__).resolve().parent
    # pip install --target DIRECTORY, and --prefix or --user.
    yield package.parent / "bin"
    for parent in list(package.parents)[2:4]:
        yield parent / "bin"
