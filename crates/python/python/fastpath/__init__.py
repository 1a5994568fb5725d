"""Emulate, switch, measure, model and simulate packet processing.

>>> import fastpath as fp
>>> net = fp.Topology()
>>> a, b = net.host("a"), net.host("b")
>>> link = net.link(a, b, rate="10Mbit", delay="25ms", loss="1%", queue="codel")
>>> net.check().warnings
[]

The pure part (topologies, replay, simulation, fits) runs in this process. What is real (labs) runs
in the program ``fastpath``, which the wheel brings: ``python -m fastpath``.
"""

from __future__ import annotations

from ._native import CaptureFile, Error, __version__
from ._record import Record
from .errors import LabError, Mistake, Mistakes
from .experiments import Experimented, experiment
from .lab import Lab, LabHost, LabLink
from .models import Fit, Machine, Simulation, fit, programs, simulate
from .replay import Capture, Packet, Replayed
from .sweeps import Swept, sweep
from .switch import Switch, Switched
from .topology import Link, Node, Topology, Traffic

__all__ = [
    "Capture",
    "CaptureFile",
    "Error",
    "Experimented",
    "Fit",
    "Lab",
    "LabError",
    "LabHost",
    "LabLink",
    "Link",
    "Machine",
    "Mistake",
    "Mistakes",
    "Node",
    "Packet",
    "Record",
    "Replayed",
    "Simulation",
    "Swept",
    "Switch",
    "Switched",
    "Topology",
    "Traffic",
    "__version__",
    "experiment",
    "fit",
    "programs",
    "simulate",
    "sweep",
]
