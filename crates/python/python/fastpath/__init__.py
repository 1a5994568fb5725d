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
from .errors import LabError, Mistake, Mistakes
from .lab import Lab, LabHost, LabLink
from .models import Fit, Simulation, fit, simulate
from .replay import Capture, Packet, Replayed
from .topology import Link, Node, Topology

__all__ = [
    "Capture",
    "CaptureFile",
    "Error",
    "Fit",
    "Lab",
    "LabError",
    "LabHost",
    "LabLink",
    "Link",
    "Mistake",
    "Mistakes",
    "Node",
    "Packet",
    "Replayed",
    "Simulation",
    "Topology",
    "__version__",
    "fit",
    "simulate",
]
