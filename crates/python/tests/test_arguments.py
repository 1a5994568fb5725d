"""Arguments that have no effect, or no meaning, are refused at once and in the words of the caller."""

import numpy as np
import pytest
from conftest import frame, needs_lab

import fastpath as fp

WORKLOAD = "line-rate,size=64,ports=4,duration=1ms"
LAST_PS = 2**64 - 1


def sweep(vary=None, **given):
    return fp.sweep("ixp1200", "linkem", "line-rate,ports=4,duration=1ms", vary or {"workload.size": [64]}, **given)


@pytest.mark.parametrize(("call", "said"), [
    (lambda: fp.Machine("ixp1200", set={"egres.engines": 2}), 'no value "egres.engines"; write egress'),
    (lambda: fp.Machine("ixp1200", set={"egress.enginess": 2}), "write engines"),
    (lambda: fp.Machine("ixp1200", set={"egress.engines": "many"}), "engines"),
    (lambda: fp.Machine("ixp1200", set={"egress.engines": None}), "set: egress.engines has the value None"),
    (lambda: fp.simulate("ixp1200", "linkem", WORKLOAD, seed=-1), "seed=-1 is out of range; write 0 to"),
    (lambda: fp.simulate("ixp1200", "linkem", WORKLOAD, seed=1.5), "seed=1.5 is not a whole number"),
    (lambda: fp.simulate("ixp1200", "linkem", WORKLOAD, set={"workload.size": float("nan")}), "has the value nan"),
    (lambda: sweep(seed=-1), "seed=-1 is out of range"),
    (lambda: sweep(random=-1), "random=-1 is out of range; write 1 to"),
    (lambda: sweep(random=1.5), "random=1.5 is not a whole number"),
    (lambda: sweep(halton=True), "halton=True is not a whole number"),
    (lambda: sweep({"workload.size": [float("nan")]}), "vary: workload.size has the value nan"),
    (lambda: sweep({"workload.size": float("inf")}), "vary: workload.size has the value inf"),
    (lambda: sweep({"workload.size": []}), "vary: workload.size has no values"),
    (lambda: sweep(threads=0), "0 threads; write 1 or more"),
    (lambda: fp.Switch(3).send(9, bytes(60)), r"there is no port 9 \(have: 1 p1, 2 p2, 3 p3\); write \S+"),
    (lambda: fp.Switch(3).send([1, 9], [bytes(60)] * 2), r"ports\[1\]: there is no port 9"),
    (lambda: fp.Switch(3).send("p12", bytes(60)), r"no port p12 \(have: p1, p2, p3\); write p2"),
    (lambda: fp.Switch(3).explain("tcp", in_port=4), "there is no port 4"),
    (lambda: fp.Switch(3, tables=1.5), "tables=1.5 is not a whole number; write 1 to 254"),
    (lambda: fp.Switch(3, flows=-1), "flows=-1 is out of range"),
])
def test_what_has_no_meaning_is_refused_at_once(call, said):
    with pytest.raises(fp.Error, match=said):
        call()


def test_a_machine_keeps_its_own_text():
    machine = fp.Machine("ixp1200", set={"egress.engines": 2})
    assert machine.text == fp.Machine("ixp1200").text and machine.set == {"egress.engines": 2}


@pytest.mark.parametrize(("given", "said"), [
    ({"seed": -1}, "seed=-1 is out of range; write 0 to 18446744073709551615"),
    ({"seed": 2**64}, "out of range"),
    ({"seed": 1.5}, "seed=1.5 is not a whole number"),
    ({"seed": "7"}, "seed='7' is not a whole number"),
    ({"workers": 0}, "workers=0: write a number from 1 on, or auto"),
    ({"workers": "two"}, "workers=two: write a number from 1 on, or auto"),
    ({"until": 5}, 'until=5 has no unit; write text such as until="10s"'),
])
def test_settings_of_a_replay_are_checked(net, given, said):
    with pytest.raises(fp.Error, match=said):
        net.replay({"a": ([0], [frame()])}, **given)
    assert net.replay({"a": ([0], [frame()])}, seed=np.int64(7)).seed == 7


@pytest.mark.parametrize("time", [LAST_PS, LAST_PS - 1000, LAST_PS + 1, 2**70])
def test_a_frame_that_arrives_after_the_last_time_is_refused(net, time):
    given = [time] if time > LAST_PS else np.array([time], np.uint64)
    with pytest.raises(fp.Error, match="input a.* after the last time, 213 days"):
        net.replay({"a": (given, [frame()])})


def test_a_frame_at_a_late_time_is_exact(net):
    late = LAST_PS - 30_000_000_000
    out = net.replay({"a": (np.array([late], np.uint64), [frame()])})
    assert int(out.out_ps[0]) == late + 25_800_000_000 and out.delivered.all()


@pytest.mark.parametrize(("named", "used"), [("lte", "lte"), ("lte", "lte.csv"), ("lte.csv", "lte")])
@pytest.mark.parametrize("place", ["both", "forward", "table"])
def test_a_trace_is_found_by_its_name(named, used, place, tmp_path):
    net = fp.Topology()
    a, b = net.host("a"), net.host("b")
    net.trace(named, [0.0, 1.0], rate_mbps=[2.0, 4.0])
    keys = {"both": {"trace": used}, "forward": {"forward": {"trace": used}},
            "table": {"trace": {"file": used, "end": "repeat"}}}
    net.link(a, b, **keys[place])
    trace = net.check().description["links"][0]["forward"]["trace"]
    assert trace["file"] == "lte.csv"
    read = fp.Topology.from_file(net.write(tmp_path))
    assert read.check().description == net.check().description


def test_the_name_of_a_link_is_not_that_of_a_trace():
    net = fp.Topology()
    a, b = net.host("a"), net.host("b")
    net.trace("lte", [0.0, 1.0], rate_mbps=[2.0, 4.0])
    net.link(a, b, name="lte", trace="lte")
    assert net.check().description["links"][0]["name"] == "lte"


@needs_lab
def test_values_of_a_running_link_are_numbers(net):
    with net.lab() as lab:
        with pytest.raises(fp.Mistakes, match="link a-b: loss: nan is not a quantity; write a finite number"):
            lab.link("a-b").set(loss=float("nan"))
        with pytest.raises(fp.Mistakes, match="link a-b: loss.rate: inf"):
            lab.link("a-b").set(loss={"rate": float("inf")})
    with pytest.raises(fp.Error, match="seed=-1"):
        net.lab(seed=-1)
