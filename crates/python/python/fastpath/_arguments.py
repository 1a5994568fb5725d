"""Checks numbers of callers, in their own words."""

from __future__ import annotations

import math
from typing import Any, Optional

from .errors import Error

__all__ = ["SEED_MAX", "duration_of", "finite", "seed_of", "whole"]

SEED_MAX = 2**64 - 1


def whole(name: str, value: Any, low: int, high: int) -> int:
    """Return a whole number of a range."""
    plain = value.item() if hasattr(value, "item") else value
    form = f"write {low} to {high}"
    if isinstance(plain, bool) or not isinstance(plain, int):
        raise Error(f"{name}={plain!r} is not a whole number; {form}")
    if not low <= plain <= high:
        raise Error(f"{name}={plain} is out of range; {form}")
    return int(plain)


def seed_of(seed: Any) -> int:
    """Return a seed of random choices."""
    return whole("seed", seed, 0, SEED_MAX)


def duration_of(name: str, value: Any) -> Optional[str]:
    """Return a time with its unit."""
    if value is not None and not isinstance(value, str):
        raise Error(f'{name}={value!r} has no unit; write text such as {name}="10s"')
    return value


def finite(name: str, value: Any) -> Any:
    """Return a value of a setting or axis, which has to be something."""
    plain = value.item() if hasattr(value, "item") else value
    if plain is None or (isinstance(plain, float) and not math.isfinite(plain)):
        raise Error(f"{name} has the value {plain}; write a finite number or text")
    return plain
