"""Checks times and frames, and puts them into the arrays that the native module takes."""

from __future__ import annotations

from typing import Any

from .errors import Error

__all__ = ["frames_of", "times_of"]


def frames_of(at: str, frames: Any) -> tuple[Any, Any, int]:
    """Return all bytes, the length of each frame (one if all are alike), and the number of frames."""
    import numpy as np

    if isinstance(frames, np.ndarray):
        if frames.ndim != 2 or frames.dtype != np.uint8:
            what = f"an array of {frames.ndim} dimensions and type {frames.dtype}"
            raise Error(f"{at}: frames are {what}; write n × length bytes (uint8), or a list of bytes")
        whole = np.ascontiguousarray(frames).reshape(-1)
        # One length stands for all frames; that of a single frame is its own.
        return whole, np.asarray([frames.shape[1]], np.uint32), frames.shape[0]
    if isinstance(frames, (str, bytes)):
        raise Error(f"{at}: frames are {type(frames).__name__}; write a list of bytes, one per frame")
    try:
        frames = list(frames)
    except TypeError:
        raise Error(f"{at}: frames are {type(frames).__name__}; write a list of bytes") from None
    for index, frame in enumerate(frames):
        if not isinstance(frame, (bytes, bytearray, memoryview)):
            raise Error(f"{at}: frames[{index}] is {type(frame).__name__}; write bytes")
    if not frames:
        return np.zeros(0, np.uint8), np.zeros(0, np.uint32), 0
    lengths = np.fromiter((len(frame) for frame in frames), np.uint32, len(frames))
    whole = np.frombuffer(b"".join(frames), np.uint8)
    if len(frames) > 1 and (lengths == lengths[0]).all():
        lengths = lengths[:1].copy()
    return whole, lengths, len(frames)


def times_of(at: str, times: Any) -> Any:
    """Return times in picoseconds as uint64."""
    import numpy as np

    if times.ndim != 1:
        raise Error(f"{at}: times have {times.ndim} dimensions; write one time per frame")
    if times.size == 0:
        return np.zeros(0, np.uint64)
    if times.dtype.kind == "f":
        odd = ~np.isfinite(times)
        if odd.any():
            index = int(odd.argmax())
            raise Error(f"{at}: times[{index}] is {times[index]}; write picoseconds")
        if (times != np.floor(times)).any():
            index = int((times != np.floor(times)).argmax())
            raise Error(f"{at}: times[{index}] = {times[index]} is not a whole number of picoseconds")
        if (times >= 2.0**64).any():
            index = int((times >= 2.0**64).argmax())
            raise Error(f"{at}: times[{index}] = {times[index]} ps is after the last time, 213 days")
    elif times.dtype.kind == "O" and all(isinstance(time, int) for time in times):
        # Numbers that no integer of numpy can hold.
        index = next(index for index, time in enumerate(times) if not 0 <= time < 2**64)
        where = "before time zero" if times[index] < 0 else "after the last time, 213 days"
        raise Error(f"{at}: times[{index}] = {times[index]} ps is {where}")
    elif times.dtype.kind not in "iu":
        raise Error(f"{at}: times are {times.dtype}; write integers, picoseconds")
    if times.dtype.kind != "u" and (times < 0).any():
        index = int((times < 0).argmax())
        raise Error(f"{at}: times[{index}] = {times[index]} ps is before time zero; write times from 0")
    return np.ascontiguousarray(times, dtype=np.uint64)
