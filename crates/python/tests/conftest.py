"""What the tests share: a small network, captures, and the rights that a lab needs."""

import os
import struct
import subprocess
import sys

import pytest

import fastpath as fp
from fastpath.program import program

pytest_plugins = ["fastpath.pytest_plugin", "pytester"]


@pytest.fixture
def net():
    net = fp.Topology()
    a, b = net.host("a"), net.host("b")
    net.link(a, b, rate="10Mbit", delay="25ms", queue="100p")
    return net


def frame(size=1000, number=0):
    """An Ethernet frame with a type of local experiments (IEEE 802)."""
    return bytes(12) + b"\x88\xb5" + struct.pack(">I", number) + bytes(size - 18)


def write_pcap(path, packets):
    """Write (nanoseconds, bytes) as a capture of nanoseconds."""
    with open(path, "wb") as file:
        file.write(struct.pack("<IHHiIII", 0xA1B23C4D, 2, 4, 0, 0, 65535, 1))
        for ns, data in packets:
            file.write(struct.pack("<IIII", *divmod(ns, 10**9), len(data), len(data)) + data)


def can_make_labs():
    done = subprocess.run(["unshare", "--net", "true"], capture_output=True, check=False)
    return os.geteuid() == 0 and done.returncode == 0


needs_lab = pytest.mark.skipif(not can_make_labs(), reason="no right to make network namespaces")


def lab_names():
    import json

    listed = subprocess.run([program(), "lab", "list", "--json"], capture_output=True, check=True)
    return {lab["name"] for lab in json.loads(listed.stdout) if lab["alive"]}


def run_script(tmp_path, text, *arguments, code=0, given="", options=()):
    """Run a script of Mininet. Returns what it prints, errors included."""
    script = tmp_path / "script.py"
    script.write_text(text)
    done = subprocess.run(
        [sys.executable, "-m", "fastpath.mininet", *options, str(script), *arguments], cwd=tmp_path,
        input=given, capture_output=True, text=True, check=False,
    )
    assert done.returncode == code, done.stdout + done.stderr
    return done.stdout + done.stderr
