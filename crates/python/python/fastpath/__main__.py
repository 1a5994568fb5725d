"""``python -m fastpath``: the program of the wheel takes the place of the interpreter."""

from __future__ import annotations

import os
import sys

from .program import program


def main() -> None:
    path = program()
    os.execv(path, ["fastpath", *sys.argv[1:]])


if __name__ == "__main__":
    main()
