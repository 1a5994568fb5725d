import csv
import signal
import subprocess
import sys

import numpy as np
import pytest
from conftest import frame, write_pcap

import fastpath as fp
from fastpath.program import program

START_NS = 1_700_000_000_000_000_000


def test_departures_are_exact(net):
    # 1000 bytes at 10 Mbit/s take 800 us, and the link 25 ms.
    out = net.replay({"a": ([0, 0, 10**9], [frame(), frame(), frame()])})
    assert out.in_ps.tolist() == [0, 0, 10**9]
    assert out.out_ps.tolist() == [25_800_000_000, 26_600_000_000, 27_400_000_000]
    assert out.delivered.all() and set(out.destination) == {"b"} and set(out.source) == {"a"}
    assert out.frames["delivered"] == 3 and out.drops == {}


def test_the_times_are_those_of_the_program(net, tmp_path):
    net.links[0].keys.update(loss="20%", queue="3p")
    capture, times = tmp_path / "in.pcap", tmp_path / "times.csv"
    write_pcap(capture, [(START_NS + 300_000 * n, frame(200 + 7 * n, n)) for n in range(150)])
    spec = net.write(tmp_path)
    out = net.replay({"a": capture}, seed=5, outputs={"b": tmp_path / "out.pcap"})
    arguments = ["replay", spec, "--in", f"a={capture}", "--out", f"b={tmp_path / 'out2.pcap'}"]
    subprocess.run([program(), *arguments, "--times", times, "--seed", "5"], check=True, capture_output=True)
    with open(times) as file:
        rows = list(csv.DictReader(file))
    assert [out.start_ps + int(at) for at in out.in_ps] == [int(row["in_ps"]) for row in rows]
    ours = [str(out.start_ps + int(at)) if came else end
            for at, came, end in zip(out.out_ps, out.delivered, out.end)]
    assert ours == [row["out_ps"] for row in rows]
    assert 0 < out.delivered.sum() < 150
    assert (tmp_path / "out.pcap").read_bytes() == (tmp_path / "out2.pcap").read_bytes()
    packets = list(fp.Capture(tmp_path / "out.pcap"))
    assert len(packets) == out.delivered.sum()
    assert packets[0].time_ns == (out.start_ps + int(out.out_ps[out.delivered][0])) // 1000


def test_arrays_and_captures_enter_together(net, tmp_path):
    write_pcap(tmp_path / "in.pcap", [(START_NS, frame()), (START_NS + 2_000_000, frame())])
    times = np.array([1_000_000_000, 1_500_000_000])
    out = net.replay({"a": tmp_path / "in.pcap", "b": (times, np.zeros((2, 64), np.uint8))})
    assert out.source.tolist() == ["a", "b", "b", "a"]
    assert out.in_ps.tolist() == [0, 1_000_000_000, 1_500_000_000, 2_000_000_000]
    assert out.length.tolist() == [1000, 64, 64, 1000]


def test_equal_seeds_give_equal_arrays(net):
    net.links[0].keys["loss"] = "30%"
    given = {"a": (np.arange(500) * 10**9, [frame(100, n) for n in range(500)])}
    first, second, other = (net.replay(given, seed=seed) for seed in (3, 3, 4))
    assert (first.out_ps == second.out_ps).all()
    assert (first.out_ps != other.out_ps).any()
    assert first.drops == {"loss": int((first.end == "loss").sum())}


def test_arrays_are_the_same_for_every_number_of_workers(tmp_path):
    (tmp_path / "net.toml").write_text(
        "seed = 3\n[router.r]\n[host.a]\n[host.b]\n"
        "[[link]]\nbetween = ['a', 'r']\ndelay = '1ms'\nloss = '10%'\n"
        "[[link]]\nbetween = ['r', 'b']\ndelay = '2ms'\nrate = '8Mbit'\n"
        "[[traffic]]\nfrom = 'a'\nto = 'b'\nkind = 'constant'\nrate = '4Mbit'\nsize = 500\n"
    )
    net = fp.Topology.from_file(tmp_path / "net.toml")
    given = {"b": (np.arange(300) * 10**9, [frame(100, n) for n in range(300)])}
    one, *others = (net.replay(given, until="1s", workers=workers) for workers in (1, 2, 3, "auto"))
    assert len(one) > 300 and one.drops["loss"] > 0
    for other in others:
        assert (one.out_ps == other.out_ps).all() and (one.end == other.end).all()
        assert one.drops == other.drops and one.traffic == other.traffic


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (([5, 3], [frame(), frame()]), "times[1] = 3 ps is before times[0] = 5 ps"),
        (([0.0, np.nan], [frame(), frame()]), "times[1] is nan"),
        (([0.5], [frame()]), "not a whole number"),
        (([-1], [frame()]), "before time zero"),
        (([0], [frame(), frame()]), "1 times and 2 frames"),
        (([0], ["text"]), "frames[0] is str"),
        ((["a"], [frame()]), "write integers"),
        (([0], np.zeros((1, 64))), "float64"),
        (7, "write a file name, or (times_ps, frames)"),
    ],
)
def test_bad_arrays_are_refused_with_their_place(net, given, said):
    with pytest.raises(fp.Error) as raised:
        net.replay({"a": given})
    assert said in str(raised.value) and "input a" in str(raised.value) or said in str(raised.value)


def test_unknown_hosts_and_files_are_refused(net, tmp_path):
    with pytest.raises(fp.Error, match="no such host"):
        net.replay({"z": ([0], [frame()])})
    with pytest.raises(FileNotFoundError):
        net.replay({"a": tmp_path / "none.pcap"})
    with pytest.raises(fp.Error, match="nothing to replay"):
        net.replay({})


def test_empty_inputs_give_empty_arrays(net):
    out = net.replay({"a": ([], [])})
    assert len(out) == 0 and out.delivered.sum() == 0 and list(out.end) == []


def test_a_signal_stops_a_long_replay():
    # A shell lets programs in its background ignore the signal.
    code = """
import signal; signal.signal(signal.SIGINT, signal.default_int_handler)
import numpy as np, fastpath as fp, sys
net = fp.Topology(); net.link(net.host("a"), net.host("b"), rate="1kbit", queue="10p")
def said(done, total):
    print("running", flush=True)
net.replay({"a": (np.arange(3_000_000, dtype="u8") * 10**6, np.zeros((3_000_000, 60), "u1"))}, progress=said)
"""
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE) as run:
        assert run.stdout.readline() == b"running\n"
        run.send_signal(signal.SIGINT)
        _, errors = run.communicate()
    assert b"KeyboardInterrupt" in errors and run.returncode != 0


def test_an_exception_of_the_progress_function_ends_the_replay(net):
    def stop(_done, _total):
        raise RuntimeError("enough")

    times = np.arange(10_000, dtype=np.uint64) * 10**6
    with pytest.raises(RuntimeError, match="enough"):
        net.replay({"a": (times, np.zeros((10_000, 60), np.uint8))}, progress=stop)
