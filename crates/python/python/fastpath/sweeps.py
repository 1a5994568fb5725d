"""Sweeps: many simulations, on the threads of this machine or on the workers of a Dask cluster.

```text
 question ─▶ native Sweep ─▶ chunks of points ─▶ threads here, or tasks of Dask ─▶ rows
                                                                                   │ each once
 file (CSV, resumable) ◀─ native SweepTable ◀──────────────────────────────────────┘
```

A row is a function of the sweep and the number of its point, so the table does not depend on what
computes it. A worker that dies has its chunks computed again by Dask; rows are taken once.
"""

from __future__ import annotations

import functools
import html
import os
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Callable, Iterator, Mapping, Optional, Sequence, Union

from . import _native
from ._arguments import finite, seed_of, whole
from ._progress import Bar
from .errors import Error
from .models import _text

if TYPE_CHECKING:
    from distributed import Client

__all__ = ["Swept", "chunks_of", "sweep"]

_CHUNK_MAX = 256
_THREADS_MAX = 65_536
# The most points of a sweep.
_POINTS_MAX = 10_000_000
# Chunks per worker: small enough that a lost one costs little, large enough that Dask's own work
# per task (about 1 ms) does not show.
_CHUNKS_PER_WORKER = 16

Progress = Union[bool, Callable[[int, int], object], None]
Row = list[str]
_NamedTexts = list[tuple[str, str, str]]


@dataclass(frozen=True)
class _Question:
    machine: str
    program: str
    workload: str
    changes: tuple[tuple[str, str], ...]
    seed: int
    vary: tuple[str, ...]
    random: Optional[int]
    halton: Optional[int]


class Swept:
    """The table of a sweep: a row for each point, the same wherever it was computed.

    Attributes
    ----------
    columns
        The names of the columns: configuration, point, the axes, the results.
    rows
        The cells as text, in the order of points.
    csv
        The table as ``fastpath sweep`` writes it, with a checksum for each row.
    """

    def __init__(self, columns: Sequence[str], table: _native.SweepTable, axes: int) -> None:
        self.columns = list(columns)
        self.rows: list[Row] = table.rows()
        self.csv: bytes = table.csv()
        self._axes = axes

    @property
    def problems(self) -> dict[int, str]:
        """The points that could not be run to their end, and why."""
        return {int(row[1]): row[-1] for row in self.rows if row[-1]}

    def to_dict(self) -> dict[str, list[Any]]:
        """Return the columns with numbers as numbers; an empty cell is None."""
        return {
            name: [_value(name, row[index]) for row in self.rows]
            for index, name in enumerate(self.columns)
        }

    def to_pandas(self) -> Any:
        """Return the table as a data frame of pandas."""
        try:
            import pandas
        except ImportError:
            raise Error("the table as a data frame needs pandas; write pip install pandas") from None
        return pandas.DataFrame(self.to_dict())

    def to_polars(self) -> Any:
        """Return the table as a data frame of polars."""
        try:
            import polars
        except ImportError:
            raise Error("the table as a data frame needs polars; write pip install polars") from None
        return polars.DataFrame(self.to_dict(), strict=False)

    def to_parquet(self, path: Union[str, os.PathLike[str]]) -> None:
        """Write the table as Parquet."""
        try:
            import pyarrow
            import pyarrow.parquet
        except ImportError:
            raise Error("Parquet needs pyarrow; write pip install pyarrow") from None
        pyarrow.parquet.write_table(pyarrow.table(self.to_dict()), os.fspath(path))

    def __len__(self) -> int:
        return len(self.rows)

    def __repr__(self) -> str:
        problems = f", {len(self.problems)} with problems" if self.problems else ""
        return f"<Swept: {len(self)} points{problems}>"

    def _repr_html_(self) -> str:
        kept = ["forwarded_pps", "share", "latency_p99_us", "bottleneck", "problem"]
        places = [*range(1, 2 + self._axes), *(self.columns.index(name) for name in kept)]
        heads = "".join(f"<th>{html.escape(self.columns[place])}</th>" for place in places)
        rows = "".join(
            "<tr>" + "".join(f"<td>{html.escape(row[place])}</td>" for place in places) + "</tr>"
            for row in self.rows[:100]
        )
        return f"<table><tr>{heads}</tr>{rows}</table>"


def sweep(
    machine: str,
    program: str,
    workload: str,
    vary: Union[Mapping[str, Any], Sequence[str]],
    *,
    set: Union[Mapping[str, Any], Sequence[tuple[str, Any]], None] = None,
    seed: int = 1,
    random: Optional[int] = None,
    halton: Optional[int] = None,
    shard: str = "1/1",
    threads: Optional[int] = None,
    output: Optional[Union[str, os.PathLike[str]]] = None,
    client: Optional[Client] = None,
    progress: Progress = None,
) -> Swept:
    """Simulate over a grid or sample of parameters.

    Parameters
    ----------
    machine, program, workload, set, seed
        As for :func:`fastpath.simulate`.
    vary
        Parameters and their values: ``{"workload.size": [64, 512], "program.h": "0..50/6"}``, or
        texts as for ``fastpath sweep --vary``.
    random, halton
        This many random points, or points of a Halton sequence, in place of the whole grid.
    shard
        ``"I/N"``: only part I of N of the points.
    threads
        The number of threads on this machine; by default one per core.
    output
        A file for the rows (CSV), as ``fastpath sweep --output`` writes it. Points that it holds
        are not done again.
    client
        A client of Dask (``distributed.Client``): the points are computed by the workers of its
        cluster, which need this package. Dask computes the points of a worker that dies elsewhere.
    progress
        A function of points done and points in all; True: a bar.

    Returns
    -------
    The table, which does not depend on threads, client and the order of work.

    Examples
    --------
    >>> found = sweep("ixp1200", "linkem", "line-rate,ports=4,duration=1ms", {"workload.size": [64, 128]})
    >>> len(found)
    2
    """
    if random is not None and halton is not None:
        raise Error("random and halton exclude each other; give one of them")
    changes = list(set.items()) if isinstance(set, Mapping) else list(set or ())
    question = _Question(
        str(machine),
        str(program),
        str(workload),
        tuple((str(name), _text(finite(f"set: {name}", value))) for name, value in changes),
        seed_of(seed),
        _axes(vary),
        None if random is None else whole("random", random, 1, _POINTS_MAX),
        None if halton is None else whole("halton", halton, 1, _POINTS_MAX),
    )
    machines, programs = _native.sweep_texts(question)
    native = _native.Sweep(question, machines, programs)
    table = _native.SweepTable(native, None if output is None else os.fspath(output))
    todo = table.missing(native, shard)
    if client is None:
        chunks = _here(native, todo, threads)
    else:
        if threads is not None:
            raise Error("threads and client exclude each other: workers have their own threads")
        chunks = _by_dask(client, native, (question, machines, programs), todo)
    with Bar(progress, len(todo)) as bar:
        done = 0
        for points, rows in chunks:
            for point, row in zip(points, rows):
                table.add(point, row)
            done += len(points)
            bar(done)
    table.finish()
    return Swept(native.columns, table, len(question.vary))


def _axes(vary: Union[Mapping[str, Any], Sequence[str]]) -> tuple[str, ...]:
    if isinstance(vary, str):
        return (vary,)
    if not isinstance(vary, Mapping):
        return tuple(map(str, vary))

    def values(name: str, given: Any) -> str:
        if isinstance(given, str):
            return given
        try:
            listed = list(given)
        except TypeError:
            listed = [given]
        if not listed:
            raise Error(f"vary: {name} has no values; write one at least")
        return ",".join(_text(finite(f"vary: {name}", value)) for value in listed)

    return tuple(f"{name}={values(name, given)}" for name, given in vary.items())


def chunks_of(todo: Sequence[int], workers: int) -> list[list[int]]:
    """Divide numbers into parts, several for each worker."""
    size = max(1, min(_CHUNK_MAX, len(todo) // (workers * _CHUNKS_PER_WORKER)))
    return [list(todo[start : start + size]) for start in range(0, len(todo), size)]


def _here(
    native: _native.Sweep, todo: Sequence[int], threads: Optional[int]
) -> Iterator[tuple[list[int], list[Row]]]:
    if threads is not None and whole("threads", threads, -_THREADS_MAX, _THREADS_MAX) < 1:
        raise Error(f"{threads} threads; write 1 or more")
    count = threads or len(os.sched_getaffinity(0))
    waiting = iter(chunks_of(todo, count))
    with ThreadPoolExecutor(count) as pool:
        running: dict[Future[list[Row]], list[int]] = {}
        try:
            while True:
                # Two chunks for each thread: none waits, and Ctrl-C ends soon.
                while len(running) < 2 * count and (chunk := next(waiting, None)):
                    running[pool.submit(native.rows, chunk)] = chunk
                if not running:
                    return
                for future in wait(running, return_when=FIRST_COMPLETED).done:
                    yield running.pop(future), future.result()
        finally:
            for future in running:
                future.cancel()


def _by_dask(
    client: Client,
    native: _native.Sweep,
    parts: tuple[_Question, _NamedTexts, _NamedTexts],
    todo: Sequence[int],
) -> Iterator[tuple[list[int], list[Row]]]:
    from distributed import as_completed

    threads = sum(client.nthreads().values())
    chunks = chunks_of(todo, max(1, threads))
    # The same key for the same chunk of the same sweep: Dask computes it once.
    keys = [f"fastpath-{native.configuration}-{chunk[0]}-{len(chunk)}" for chunk in chunks]
    futures = [
        client.submit(_rows, parts, native.configuration, chunk, key=key, retries=3, pure=True)
        for key, chunk in zip(keys, chunks)
    ]
    of = dict(zip((future.key for future in futures), chunks))
    try:
        for future in as_completed(futures):
            try:
                rows = future.result()
            except Exception as error:
                if isinstance(error, Error):
                    raise
                raise Error(f"a worker could not simulate points of the sweep: {error}") from error
            yield of[future.key], rows
            future.release()
    finally:
        client.cancel(futures)


def _rows(
    parts: tuple[_Question, _NamedTexts, _NamedTexts], configuration: str, points: list[int]
) -> list[Row]:
    """Simulate points on a worker of Dask."""
    native = _native_sweep(parts[0], _frozen(parts[1]), _frozen(parts[2]))
    if native.configuration != configuration:
        raise Error(
            f"this worker has another version of fastpath ({_native.__version__}), or other files of the "
            "workload; install the same wheel on all machines"
        )
    return native.rows(points)


def _frozen(texts: _NamedTexts) -> tuple[tuple[str, str, str], ...]:
    return tuple((name, file, text) for name, file, text in texts)


@functools.lru_cache(maxsize=4)
def _native_sweep(
    question: _Question,
    machines: tuple[tuple[str, str, str], ...],
    programs: tuple[tuple[str, str, str], ...],
) -> _native.Sweep:
    return _native.Sweep(question, list(machines), list(programs))


def _value(column: str, cell: str) -> Any:
    if not cell:
        return None
    if column in ("configuration", "trace_hash"):
        return cell
    for convert in (int, float):
        try:
            return convert(cell)
        except ValueError:
            continue
    return cell
