"""What a machine carried on fast links while a command ran, if that is less than they say."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any, Mapping, Optional

# Links from this rate are watched: a machine carries slower ones.
FAST_BPS = 1e9
_SECONDS_MIN = 1.0
# Shares of the rate between which a command is taken to have tried to fill the link.
_LEAST, _MOST = 0.2, 0.9
# The machine is named as the reason from these shares on.
_LATE, _BUSY = 0.01, 0.9
_UNITS = {"Gbit": 1e9, "Mbit": 1e6, "kbit": 1e3, "bit": 1.0}


@dataclass(frozen=True)
class Sample:
    """Counters of a lab at a time."""

    at: float
    report: Mapping[str, Any]


def sample(lab: Any) -> Sample:
    return Sample(time.monotonic(), lab.report())


def shortfalls(before: Sample, after: Sample) -> list[str]:
    """Return a text for each direction on which the machine carried less than the link says."""
    seconds = after.at - before.at
    if seconds < _SECONDS_MIN:
        return []
    found = []
    then = {_key(link, direction): direction for link, direction in _directions(before.report)}
    for link, direction in _directions(after.report):
        rate, old = _bps(direction["rate"]), then.get(_key(link, direction))
        if rate is None or rate < FAST_BPS or old is None:
            continue
        carried = 8 * (direction["bytes_out"] - old["bytes_out"]) / seconds
        frames = direction["frames_out"] - old["frames_out"]
        late = _late(direction) - _late(old)
        load = _load(before.report, after.report, seconds)
        if not _LEAST <= carried / rate <= _MOST or not (late > _LATE * frames or load > _BUSY):
            continue
        why = f"{late} of {frames} frames were late" if late else f"the engine used {load:.0%} of a processor"
        found.append(f"the machine carried {carried / 1e9:.2f} of {rate / 1e9:g} Gbit/s on {link['name']} "
                     f"from {direction['from']}: {why}")
    return found


def _directions(report: Mapping[str, Any]) -> list[tuple[Mapping[str, Any], Mapping[str, Any]]]:
    return [(link, direction) for link in report["links"] for direction in link["directions"]]


def _key(link: Mapping[str, Any], direction: Mapping[str, Any]) -> tuple[str, str]:
    return link["name"], direction["from"]


def _late(direction: Mapping[str, Any]) -> int:
    return int((direction.get("lateness") or {}).get("late", 0))


def _load(before: Mapping[str, Any], after: Mapping[str, Any], seconds: float) -> float:
    """Return the largest share of the time that a worker was busy."""
    pairs = zip(before["workers"], after["workers"])
    return max(((new["busy_s"] - old["busy_s"]) / seconds for old, new in pairs), default=0.0)


def _bps(rate: str) -> Optional[float]:
    for unit, factor in _UNITS.items():
        if rate.endswith(unit):
            return float(rate.removesuffix(unit)) * factor
    return None
