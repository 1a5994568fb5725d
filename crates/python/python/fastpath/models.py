"""Simulated machines, and cost models fitted to measurements."""

from __future__ import annotations

import csv
import html
import io
import json
from typing import Any, Mapping, Optional

from . import _native
from ._arguments import finite, seed_of
from ._record import Record
from .errors import Error

__all__ = ["Fit", "Machine", "Simulation", "fit", "programs", "simulate"]


class Simulation(Record):
    """The outcome of a simulation: ``forwarded_pps``, ``bottleneck``, ``utilisation``, …"""

    def __repr__(self) -> str:
        machine, program = self["machine"], self["program"]
        rates = f"{self['forwarded_pps']:.0f} of {self['offered_pps']:.0f} packets/s forwarded"
        return f"<Simulation of {program} on {machine}: {rates}>"

    def _repr_html_(self) -> str:
        # Without the time that the simulation took: equal runs look equal.
        hidden = ("elapsed_s", "events_per_second")
        plain = {key: value for key, value in self.items()
                 if isinstance(value, (str, int, float)) and key not in hidden}
        rows = "".join(f"<tr><th>{html.escape(key)}</th><td>{_cell(value)}</td></tr>"
                       for key, value in plain.items())
        return f"<table>{rows}</table>"


class Fit(Record):
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


class Machine:
    """A simulated packet processor.

    Parameters
    ----------
    name
        A shipped machine, a machine file (TOML), or ``this-host=RECORDS``.
    set
        Values to change: ``{"cpu.cores": 8}``. A name is the path of a value in ``text``.

    Examples
    --------
    >>> ixp = Machine("ixp1200")
    >>> out = ixp.simulate("linkem", "line-rate,size=64,ports=4,duration=1ms")
    >>> out.machine
    'ixp1200'
    """

    def __init__(self, name: str, *, set: Optional[Mapping[str, Any]] = None) -> None:
        self.name = str(name)
        self.set = dict(set or {})
        # A name that the machine does not have is refused here, not by the first simulation.
        self.text = _native.machine_text(self.name, _changes(self.set))
        """The description (TOML), without the changes of ``set``."""

    @staticmethod
    def shipped() -> list[str]:
        """Return the names of the machines that the package brings."""
        return list(_native.shipped()[0])

    def simulate(
        self,
        program: str,
        workload: str,
        *,
        set: Optional[Mapping[str, Any]] = None,
        seed: int = 1,
    ) -> Simulation:
        """Simulate a program on this machine. See :func:`fastpath.simulate`."""
        ours = {f"machine.{path}": value for path, value in self.set.items()}
        return simulate(self.name, program, workload, set={**ours, **(set or {})}, seed=seed)

    def __repr__(self) -> str:
        changes = "".join(f", {path} = {value}" for path, value in self.set.items())
        return f"<Machine {self.name}{changes}>"


def programs() -> list[str]:
    """Return the names of the simulated programs that the package brings."""
    return list(_native.shipped()[1])


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
        Shipped names (:meth:`Machine.shipped`, :func:`programs`) or files.
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
    outcome = _native.simulate(machine, program, workload, _changes(set or {}), seed_of(seed))
    return Simulation(json.loads(outcome))


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


def _cell(value: Any) -> str:
    return f"{value:.6g}" if isinstance(value, float) else html.escape(str(value))


def _changes(given: Mapping[str, Any]) -> list[tuple[str, str]]:
    return [(str(name), _text(finite(f"set: {name}", value))) for name, value in given.items()]


def _text(value: Any) -> str:
    if hasattr(value, "item"):
        value = value.item()
    if value is None or value != value:
        return ""
    return str(value).lower() if isinstance(value, bool) else str(value)
