"""``python -m fastpath._dask KIND ADDRESS``: work of the program on a Dask cluster.

The work is JSON on standard input, the arguments of :func:`fastpath.sweep` or
:func:`fastpath.experiment`. Prints ``DONE ALL`` as it goes on. The results go to the file or
directory that the work names.
"""

from __future__ import annotations

import json
import sys

from .errors import Error
from .experiments import do_missing
from .sweeps import sweep


def main() -> None:
    kind, address = sys.argv[1:]
    work = json.load(sys.stdin)

    def say(done: int, all_: int) -> None:
        print(done, all_, flush=True)

    try:
        from distributed import Client
    except ImportError:
        sys.exit(f"--dask {address}: the Python package distributed is not here; write pip install 'fastpath[dask]'")
    try:
        with Client(address, timeout="10s") as client:
            if kind == "sweep":
                sweep(client=client, progress=say, **work)
            else:
                do_missing(client=client, progress=say, **work)
    except (Error, OSError) as error:
        sys.exit(f"--dask {address}: {error}")


if __name__ == "__main__":
    main()
