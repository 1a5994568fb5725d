"""``python -m fastpath._dask``: a sweep for ``fastpath sweep --dask``."""

from .sweeps import main

if __name__ == "__main__":
    main()
