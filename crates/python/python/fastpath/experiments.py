"""Experiments: a matrix of runs, on this machine or on the workers of a Dask cluster.

```text
 FILE.toml ─▶ fastpath experiment --missing ─▶ numbers of runs, files
                                                  │ tasks of Dask: files, numbers
 DIR/runs/N ◀─ the files of each run ◀─ fastpath experiment --only N,… on a worker
     │
     └─▶ fastpath experiment ─▶ results.csv, report.html, findings
```

A run in virtual time is a function of the experiment and its number, so the table does not depend
on what computes it. A worker that dies has its runs done again by Dask; a run is kept once. Runs
with a lab need workers with the resource ``fastpath-lab=1``, and take turns on a machine.
"""

from __future__ import annotations

import contextlib
import csv
import fcntl
import html
import json
import os
import subprocess
import tempfile
import uuid
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Iterable, Iterator, Optional, Sequence, Union

from ._arguments import whole
from ._progress import Bar
from ._record import Record
from .errors import Error
from .program import program
from .sweeps import Progress, chunks_of

if TYPE_CHECKING:
    from distributed import Client

__all__ = ["Experimented", "do_missing", "experiment"]

_LAB = "fastpath-lab"
_RECORD = "run.json"
_RUNS_MAX = 1_000_000
_WORKERS_MAX = 65_536
_LOOK_S = 0.2
# Runs a program that ends when standard input ends: when the worker is killed. Nobody reads its
# results then, so they go too.
_KEEPER = """
place=$1; shift
exec 3<&0 </dev/null
"$@" 3<&- & engine=$!
{ read -r line; kill -TERM $engine; } <&3 2>/dev/null >&2 & reader=$!
exec 3<&-
wait $engine; code=$?
kill $reader 2>/dev/null
kill -0 $PPID 2>/dev/null || rm -rf "$place"
exit $code
"""

Files = dict[str, bytes]
File = Union[str, "os.PathLike[str]"]


class Experimented:
    """What an experiment has found.

    Attributes
    ----------
    findings
        What ``fastpath experiment --json`` prints: ``findings.runs``, ``summary``, ``comparisons``,
        ``expectations``.
    is_good
        Whether every expectation holds, and no run is left out.
    directory
        The directory of results.
    csv
        The table of all runs, ``results.csv``.
    warnings
        What the program said of the networks and the runs.
    """

    def __init__(self, findings: Record, is_good: bool, directory: Path, warnings: Sequence[str]) -> None:
        self.findings = findings
        self.warnings = list(warnings)
        self.is_good = is_good
        self.directory = directory
        self.csv: bytes = (directory / "results.csv").read_bytes()

    @property
    def left_out(self) -> dict[int, str]:
        """The runs that the tables leave out, and why."""
        runs = self.findings.runs
        return {run["run"]: why for run in runs if (why := run.get("problem") or run.get("disturbed"))}

    def to_dict(self) -> dict[str, list[Any]]:
        """Return the columns of the table; a cell that is a number is one, an empty cell is None."""
        heads, *rows = csv.reader(self.csv.decode().splitlines())
        return {head: [_value(row[index]) for row in rows] for index, head in enumerate(heads)}

    def to_pandas(self) -> Any:
        """Return the table as a data frame of pandas."""
        try:
            import pandas
        except ImportError:
            raise Error("the table as a data frame needs pandas; write pip install pandas") from None
        return pandas.DataFrame(self.to_dict())

    def __len__(self) -> int:
        return len(self.findings.runs)

    def __repr__(self) -> str:
        broken = sum(judged["runs"] == 0 or bool(judged["broken"]) for judged in self.findings.expectations)
        parts = [f"{len(self)} of {self.findings['of']} runs"]
        parts += [f"{len(self.left_out)} left out"] if self.left_out else []
        parts += [f"{broken} expectations broken"] if broken else []
        return f"<Experimented: {', '.join(parts)}>"

    def _repr_html_(self) -> str:
        rows = list(csv.reader(self.csv.decode().splitlines()))[:101]
        cells = [[html.escape(cell) for cell in row] for row in rows]
        head = "".join(f"<th>{cell}</th>" for cell in cells[0])
        body = "".join("<tr>" + "".join(f"<td>{cell}</td>" for cell in row) + "</tr>" for row in cells[1:])
        return f"<table><tr>{head}</tr>{body}</table>"


def experiment(
    file: File,
    *,
    output: Optional[File] = None,
    client: Optional[Client] = None,
    workers: Optional[int] = None,
    shard: str = "1/1",
    only: Optional[Iterable[int]] = None,
    retry: bool = False,
    retry_changed: bool = False,
    strict: bool = False,
    progress: Progress = None,
) -> Experimented:
    """Carry an experiment out: do the runs that are missing, and write the tables.

    Parameters
    ----------
    file
        The file of the experiment, as for ``fastpath experiment``.
    output
        The directory of results; by default beside the file. Runs that it holds are not done again.
    client
        A client of Dask (``distributed.Client``): the runs are done by the workers of its cluster,
        which need this package with its program. Runs in virtual time are done by any worker. Runs
        with a lab are done by workers with the resource ``fastpath-lab=1``, one at a time on a
        machine. Files of the experiment are sent along; programs, images and root file systems
        are those of the machine. Dask does the runs of a worker that dies elsewhere.
    workers
        The number of threads for runs in virtual time on this machine; by default one per core.
    shard, only
        ``"I/N"``: only part I of N of the runs. Only the runs with these numbers.
    retry, retry_changed, strict
        As ``--retry``, ``--retry-changed`` and ``--strict`` of ``fastpath experiment``.
    progress
        A function of runs done and runs in all; True: a bar.

    Returns
    -------
    The findings, which do not depend on client and workers.
    """
    asked = _Asked.of(file, output, shard, only, retry, retry_changed, strict)
    if client is not None and workers is not None:
        raise Error("workers and client exclude each other: workers of Dask have their own threads")
    threads = [] if workers is None else ["--workers", str(whole("workers", workers, 1, _WORKERS_MAX))]
    if client is not None:
        with Bar(progress) as bar:
            _do_missing(client, asked, bar)
        asked = asked.again()
    return _here(asked, threads, progress)


def do_missing(
    *,
    client: Client,
    experiment: File,
    output: Optional[File],
    shard: str,
    only: Optional[Sequence[int]],
    retry: bool,
    retry_changed: bool,
    strict: bool,
    progress: Progress,
) -> None:
    """Do the missing runs of an experiment on a cluster, for ``fastpath experiment --dask``."""
    asked = _Asked.of(experiment, output, shard, only, retry, retry_changed, strict)
    with Bar(progress) as bar:
        _do_missing(client, asked, bar)


@dataclass(frozen=True)
class _Asked:
    """An experiment, and which of its runs are to be done."""

    file: Path
    directory: Path
    only: tuple[str, ...]
    options: tuple[str, ...]
    strict: bool

    @staticmethod
    def of(
        file: File,
        output: Optional[File],
        shard: str,
        only: Optional[Iterable[int]],
        retry: bool,
        retry_changed: bool,
        strict: bool,
    ) -> _Asked:
        path = Path(file)
        beside = path.with_name(path.stem + ".results")
        numbers = None if only is None else [whole("only", run, 0, _RUNS_MAX) for run in only]
        if numbers is not None and not numbers:
            raise Error("only has no runs; write one at least, or leave it out")
        chosen = [] if numbers is None else ["--only", ",".join(map(str, numbers))]
        options = ["--retry"] * bool(retry) + ["--retry-changed"] * bool(retry_changed)
        return _Asked(
            path,
            beside if output is None else Path(output),
            ("--shard", str(shard), *chosen),
            tuple(options),
            bool(strict),
        )

    def again(self) -> _Asked:
        """Return the same without repetitions, which are done."""
        return _Asked(self.file, self.directory, self.only, (), self.strict)

    def words(self) -> list[str]:
        strict = ["--strict"] if self.strict else []
        words = [program(), "experiment", str(self.file), "--output", str(self.directory)]
        return [*words, *self.only, *self.options, *strict]


@dataclass(frozen=True)
class _Place:
    """Where an experiment is, and by which program it was read."""

    file: str
    work: str
    version: str
    in_lab: bool


def _here(asked: _Asked, threads: Sequence[str], progress: Progress) -> Experimented:
    with Bar(progress) as bar, tempfile.TemporaryFile("w+") as errors:
        todo = _missing(asked)["runs"] if bar.is_shown else []
        asked = asked.again() if bar.is_shown else asked
        run = subprocess.Popen([*asked.words(), *threads, "--json"], stdout=subprocess.PIPE, stderr=errors)
        try:
            while True:
                with contextlib.suppress(subprocess.TimeoutExpired):
                    text, _ = run.communicate(timeout=_LOOK_S if todo else None)
                    break
                bar(sum(_of(asked.directory, number).joinpath(_RECORD).exists() for number in todo), len(todo))
        except BaseException:
            # Ctrl-C: the program ends its runs in its own time.
            run.terminate()
            run.wait()
            raise
        errors.seek(0)
        said = errors.read()
        if run.returncode not in (0, 1):
            raise Error(_words(said))
        bar(len(todo), len(todo))
    findings: Record = json.loads(text, object_hook=Record)
    return Experimented(findings, run.returncode == 0, asked.directory, said.splitlines())


def _missing(asked: _Asked) -> Any:
    done = subprocess.run([*asked.words(), "--missing"], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise Error(_words(done.stderr))
    return json.loads(done.stdout)


def _do_missing(client: Client, asked: _Asked, bar: Bar) -> None:
    missing = _missing(asked)
    runs: list[int] = missing["runs"]
    bar(0, len(runs))
    if not runs:
        return
    place = _Place(str(asked.file.absolute()), os.getcwd(), _version(), missing["labs"])
    files = {path: Path(path).read_bytes() for path in missing["files"]}
    done = 0
    for results in _by_dask(client, place, files, runs):
        for number, content in results.items():
            _keep(_of(asked.directory, number), content)
        done += len(results)
        bar(done, len(runs))


def _by_dask(client: Client, place: _Place, files: Files, runs: Sequence[int]) -> Iterator[dict[int, Files]]:
    from distributed import as_completed

    options: dict[str, Any] = {}
    if place.in_lab:
        _check_labs(client)
        options["resources"] = {_LAB: 1}
        chunks = [[number] for number in runs]
    else:
        chunks = chunks_of(runs, max(1, sum(client.nthreads().values())))
    # Runs in labs are measurements: no result of a former call is theirs.
    call = uuid.uuid4().hex
    # A task, not data that one worker holds: Dask can make it again.
    sent = client.submit(_sent, files, key=f"fastpath-files-{call}", pure=False)
    futures = [
        client.submit(
            _runs, place, sent, chunk, key=f"fastpath-runs-{call}-{chunk[0]}", retries=3, pure=False, **options
        )
        for chunk in chunks
    ]
    try:
        for future in as_completed(futures):
            try:
                results: dict[int, Files] = future.result()
            except Exception as error:
                if isinstance(error, Error):
                    raise
                raise Error(f"a worker could not do runs of the experiment: {error}") from error
            yield results
            future.release()
    finally:
        client.cancel([*futures, sent])


def _check_labs(client: Client) -> None:
    """Refuse a cluster in which nothing does runs with labs: Dask would wait for ever."""
    try:
        workers = client.scheduler_info(n_workers=-1)["workers"].values()
    except TypeError:
        # Former versions show all workers.
        workers = client.scheduler_info()["workers"].values()
    if not any((worker.get("resources") or {}).get(_LAB, 0) >= 1 for worker in workers):
        raise Error(
            f"the runs need labs, and no worker has the resource {_LAB}; on each machine that may make "
            f'labs, start one with dask worker ADDRESS --resources "{_LAB}=1"'
        )


def _sent(files: Files) -> Files:
    return files


def _runs(place: _Place, files: Files, runs: Sequence[int]) -> dict[int, Files]:
    """Do runs on a worker. Returns the files of each."""
    version = _version()
    if version != place.version:
        raise Error(
            f"this worker has another version of fastpath ({version}) than the experiment ({place.version}); "
            "install the same wheel on all machines"
        )
    with contextlib.ExitStack() as stack:
        root = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="fastpath-")))
        if place.in_lab:
            stack.enter_context(_turn())
        file, work = _where(place, files, root)
        results = root / "results"
        words = [program(), "experiment", file, "--output", str(results), "--workers", "1"]
        words += ["--only", ",".join(map(str, runs))]
        run = subprocess.Popen(
            ["/bin/sh", "-c", _KEEPER, "fastpath", str(root), *words],
            cwd=work,
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        with run:
            assert run.stderr is not None
            errors = run.stderr.read()
            run.wait()
        if run.returncode not in (0, 1):
            raise Error(_words(errors))
        return {number: _read(_of(results, number)) for number in runs}


def _where(place: _Place, files: Files, root: Path) -> tuple[str, str]:
    """Return the experiment and the directory of work on this machine.

    They are those of the machine that asks if all files are here too, as on a shared file system.
    Otherwise they are below ``root``, as they were below the root of the file system there.
    """
    if os.path.isdir(place.work) and all(map(_is_here, files.items())):
        return place.file, place.work

    def below(path: str) -> Path:
        return root / "files" / path.lstrip("/")

    for path, content in files.items():
        below(path).parent.mkdir(parents=True, exist_ok=True)
        below(path).write_bytes(content)
        # A script stays one that can be run.
        below(path).chmod(0o755)
    below(place.work).mkdir(parents=True, exist_ok=True)
    return str(below(place.file)), str(below(place.work))


def _is_here(file: tuple[str, bytes]) -> bool:
    try:
        return Path(file[0]).read_bytes() == file[1]
    except OSError:
        return False


@contextlib.contextmanager
def _turn() -> Iterator[None]:
    """Wait until no other worker of this user does a run with a lab on this machine."""
    path = os.path.join(tempfile.gettempdir(), f"fastpath-lab-{os.getuid()}.lock")
    with open(path, "a", encoding="ascii") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _of(directory: Path, run: int) -> Path:
    return directory / "runs" / f"{run:04}"


def _read(place: Path) -> Files:
    files = {path.name: path.read_bytes() for path in place.iterdir() if path.is_file()}
    if _RECORD not in files:
        raise Error(f"run {place.name} was not finished")
    return files


def _keep(place: Path, files: Files) -> None:
    """Write the files of a run, its record last: the run is done when its record is there."""
    place.mkdir(parents=True, exist_ok=True)
    for path in place.iterdir():
        path.unlink()
    for name, content in sorted(files.items(), key=lambda file: file[0] == _RECORD):
        new = place / f"{os.path.basename(name)}.new"
        with open(new, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(new, place / os.path.basename(name))


def _version() -> str:
    done = subprocess.run([program(), "--version"], capture_output=True, text=True, check=False)
    return done.stdout.strip()


def _words(errors: str) -> str:
    text = errors.strip()
    return text[len("fastpath: ") :] if text.startswith("fastpath: ") else text or "the program ended"


def _value(cell: str) -> Any:
    for convert in (int, float):
        with contextlib.suppress(ValueError):
            return convert(cell)
    return cell or None
