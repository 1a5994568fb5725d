"""Tries an installed wheel: what it says it brings, and the code of its documentation.

`cargo xtask wheel --check` runs it in a fresh virtual environment without Rust. It is not a test of
pytest: the other tests run on the sources.
"""

import csv
import os
import struct
import subprocess
import sys
import sysconfig
import tempfile
import time
from pathlib import Path

BEFORE = time.perf_counter()
import fastpath as fp  # noqa: E402

IMPORT_MS = 1000 * (time.perf_counter() - BEFORE)
SCRIPTS = Path(sysconfig.get_path("scripts"))
START_NS = 1_700_000_000_000_000_000


def output(*words):
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{words}: {done.stdout}{done.stderr}"
    return done.stdout


def programs():
    assert Path(fp.__file__).is_relative_to(Path(sys.prefix)), fp.__file__
    version = output(SCRIPTS / "fastpath", "--version")
    assert version.startswith("fastpath "), version
    assert output(sys.executable, "-m", "fastpath", "--version") == version
    assert "--topo" in output(SCRIPTS / "fastpath-mn", "--help")
    assert "usage" in output(sys.executable, "-m", "fastpath.mininet", "--help")
    print(f"{version.strip()}: imported in {IMPORT_MS:.0f} ms")


def replay(directory):
    net = fp.Topology()
    a, b = net.host("a"), net.host("b")
    net.link(a, b, rate="10Mbit", delay="25ms", loss="1%", queue="codel")
    with open(directory / "in.pcap", "wb") as file:
        file.write(struct.pack("<IHHiIII", 0xA1B23C4D, 2, 4, 0, 0, 65535, 1))
        for number in range(2000):
            data = bytes(12) + b"\x88\xb5" + bytes(200 + number % 1000)
            file.write(struct.pack("<IIII", *divmod(START_NS + 300_000 * number, 10**9), len(data), len(data)))
            file.write(data)
    out = net.replay({"a": directory / "in.pcap"}, seed=1)
    words = ["replay", net.write(directory), "--in", f"a={directory / 'in.pcap'}", "--seed", "1"]
    output(SCRIPTS / "fastpath", *words, "--out", f"b={directory / 'out.pcap'}", "--times", directory / "times.csv")
    with open(directory / "times.csv") as file:
        expected = [row["out_ps"] for row in csv.DictReader(file)]
    ours = [str(out.start_ps + int(at)) if came else end
            for at, came, end in zip(out.out_ps, out.delivered, out.end)]
    assert ours == expected and out.drops, "departures equal those of fastpath replay --times"
    print(f"{out}: departures equal those of fastpath replay --times")


def aio():
    import asyncio
    from importlib.metadata import distribution

    from fastpath.aio import VirtualNetwork

    network = VirtualNetwork("[host.a]\n[host.b]\n[[link]]\nbetween = ['a', 'b']")
    network.run(asyncio.sleep(3600))
    assert network.now_ps == 3600 * 10**12
    assert [entry.value for entry in distribution("fastpath").entry_points if entry.group == "pytest11"] == [
        "fastpath.pytest_plugin"
    ]
    print("an hour of asyncio in virtual time; the fixture of pytest is registered")


def lab():
    if os.geteuid() != 0:
        print("no lab without root")
        return
    net = fp.Topology()
    net.link(net.host("a"), net.host("b"), rate="10Mbit", delay="25ms", queue="codel")
    with net.lab() as lab:
        p = lab["a"].popen(["ping", "-c3", "-i", "0.2", "b"], stdout=subprocess.PIPE, text=True)
        said = p.communicate()[0]
        assert "3 received" in said, said
        lab.link("a-b").set(delay="50ms")
        assert lab.link("a-b").state["directions"][0]["delay"] == "50ms"
    print("a lab: 3 pings, a link changed")


def mininet():
    if os.geteuid() != 0:
        return
    said = output(SCRIPTS / "fastpath-mn", "--topo", "tree,2,2", "--test", "pingall")
    assert "0% dropped (12/12 received)" in said, said
    print("fastpath-mn --topo tree,2,2 --test pingall: 0% dropped")


def main():
    programs()
    with tempfile.TemporaryDirectory() as directory:
        replay(Path(directory))
    aio()
    lab()
    mininet()


if __name__ == "__main__":
    main()
