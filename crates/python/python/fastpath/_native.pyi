from os import PathLike
from typing import Any, Callable, Iterator, Mapping, Protocol, Sequence

__version__: str

class Error(Exception): ...

class Files(Protocol):
    texts: Mapping[str, str]
    directory: str

class Options(Protocol):
    inputs: Sequence[str]
    outputs: Sequence[str]
    packet_log: str | None
    seed: int | None

class CaptureFile:
    def __init__(self, path: str | PathLike[str]) -> None: ...
    def __iter__(self) -> Iterator[tuple[int | None, bytes, int]]: ...
    def __next__(self) -> tuple[int | None, bytes, int]: ...

def check(
    description: str, files: Files
) -> tuple[str | None, list[tuple[int, int, str, str]], list[tuple[int, int, str]]]: ...
def check_file(path: str | PathLike[str]) -> tuple[str, list[str]]: ...
def draw(description: str, files: Files, title: str) -> str: ...
def replay(
    description: str,
    files: Files,
    frames: Sequence[tuple[str, Any, Any, Any]],
    options: Options,
    progress: Callable[[int, int], object] | None,
) -> dict[str, Any]: ...
def simulate(
    machine: str, program: str, workload: str, changes: Sequence[tuple[str, str]], seed: int
) -> str: ...
def fit(
    table: str, y: str, terms: str, level: float, only: Sequence[tuple[str, str]]
) -> str: ...
