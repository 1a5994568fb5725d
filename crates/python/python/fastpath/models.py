"""Simulated machines, and cost models fitted to measurements."""

from __future__ import annotations

import csv
import io
import json
from typing import Any, Mapping, Optional

from . import _native
from .errors import Error

__all__ = ["Fit", "Simulation", "fit", "simulate"]


class _Record(Mapping[str, Any]):
    """A result as a mapping, with its keys as attributes too."""

    def __init__(self, record: dict[str, Any]) -> None:
        self._record = record

    def __getitem__(self, key: str) -> Any:
        return self._record[key]

    def __getattr__(self, key: str) -> Any:
        try:
            return self.__dict__["_record"][key]
        except KeyError:
            raise AttributeError(key) from None

    def __iter__(self) -> Any:
        return iter(self._record)

    def __len__(self) -> int:
        return len(self._record)


class Simulation(_Record):
    """The outcome of a simulation: ``forwarded_pps``, ``bottleneck``, ``utilisation``, …"""

    def __repr__(self) -> str:
        machine, program = self["machine"], self["program"]
        rates = f"{self['forwarded_pps']:.0f} of {self['offered_pps']:.0f} packets/s forwarded"
        return f"<Simulation of {program} on {machine}: {rates}>"


class Fit(_Record):
    """A fitted cost model: ``coefficients`` by term, each with ``value``, ``low`` and ``high``."""

    def __repr__(self) -> str:
        terms = ", ".join(f"{term} {c['value']:.4g}" for term, c in self["coefficients"].items())
        return f"<Fit: {terms}>"

    def _repr_html_(self) -> str:
        rows = "".join(
            f"<tr><td>{term}</td><td>{c['value']:.6g}</td><td>{c['low']:.6g} to {c['high']:.6g}</td></tr>"
            for term, c in self["coefficients"].items()
        )
        return f"<table><tr><th>term</th><th>value</th><th>interval</th></tr>{rows}</table>"


def simulate(
    machine: str,
    program: str,
    workload: str,
    *,
    set: Optional[Mapping[str, Any]] = None,
    seed: int = 1,
) -> Simulation:
    """Simulate a program on a machine.

    Parameters
    ----------
    machine, program
        Shipped names (``fastpath sim --list``) or files.
    workload
        The arriving packets: ``"line-rate,size=64,ports=4,duration=1ms"``.
    set
        Values to change: ``{"machine.microengines": 4, "workload.size": 128}``.
    seed
        The seed of every random choice.

    Examples
    --------
    >>> out = simulate("ixp1200", "linkem", "line-rate,size=64,ports=4,duration=1ms")
    >>> out.forwarded_pps > 0
    True
    """
    changes = [(target, _text(value)) for target, value in (set or {}).items()]
    return Simulation(json.loads(_native.simulate(machine, program, workload, changes, seed)))


def fit(
    data: Any,
    y: str,
    terms: str,
    *,
    level: float = 0.95,
    only: Optional[Mapping[str, str]] = None,
) -> Fit:
    """Fit a cost model to measurements.

    Parameters
    ----------
    data
        A data frame of pandas or polars, or a mapping of columns.
    y
        The column of costs.
    terms
        The terms, as ``fastpath model fit`` takes them: ``"const,bytes,lookups"``.
    level
        Confidence level of the intervals.
    only
        Uses only rows where each column has this value.

    Examples
    --------
    >>> points = {"p": [64, 64, 512, 512], "h": [0, 10, 0, 10], "T_ns": [45.2, 85.6, 90.1, 131.2]}
    >>> round(fit(points, "T_ns", "const,p,h").coefficients["h"]["value"])
    4
    """
    chosen = [(column, str(value)) for column, value in (only or {}).items()]
    return Fit(json.loads(_native.fit(_table(data), y, terms, level, chosen)))


def _table(data: Any) -> str:
    names = list(data.columns if hasattr(data, "columns") else data)
    columns = [list(data[name]) for name in names]
    if len({len(column) for column in columns}) > 1:
        lengths = ", ".join(f"{name} {len(column)}" for name, column in zip(names, columns))
        raise Error(f"columns have different lengths ({lengths}); give a value per row")
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(names)
    for row in zip(*columns):
        writer.writerow([_text(value) for value in row])
    return out.getvalue()


def _text(value: Any) -> str:
    if hasattr(value, "item"):
        value = value.item()
    if value is None or value != value:
        return ""
    return str(value).lower() if isinstance(value, bool) else str(value)
