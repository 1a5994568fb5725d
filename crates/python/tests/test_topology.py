import json
import math
import subprocess
import sys

import pytest

import fastpath as fp


def test_a_topology_is_resolved_with_its_defaults(net):
    checked = net.check()
    link = checked.description["links"][0]
    assert link["name"] == "a-b"
    for direction in ("forward", "backward"):
        assert (link[direction]["rate"], link[direction]["delay"]) == ("10Mbit", "25ms")
    assert [node["kind"] for node in checked.description["nodes"]] == ["host", "host"]


def test_every_mistake_has_the_line_that_made_it():
    net = fp.Topology()
    a, b = net.host("a"), net.host("b")
    net.link(a, b, rate="10Furlong", dealy="1ms")
    net.link(a, "c", loss=math.nan)
    with pytest.raises(fp.Mistakes) as raised:
        net.check()
    texts = [str(mistake) for mistake in raised.value.mistakes]
    assert all(text.startswith("test_topology.py:") for text in texts), texts
    assert any("link a-b: rate: '10Furlong'" in text for text in texts), texts
    assert any("link a-b: dealy" in text and "write delay" in text for text in texts), texts
    assert any("link a-c: loss: nan is not a quantity" in text for text in texts), texts
    lines = {text.split(":")[1] for text in texts}
    assert len(lines) == 2, "each of the two calls has its own line"


@pytest.mark.parametrize("value", [object(), b"5ms", {"kind": {1, 2}}])
def test_values_of_another_type_are_refused(value):
    net = fp.Topology()
    net.link(net.host("a"), net.host("b"), delay=value)
    with pytest.raises(fp.Mistakes):
        net.check()


def test_the_word_of_a_queue_is_a_queue(net):
    net.links[0].keys["queue"] = "codel"
    assert net.check().description["links"][0]["forward"]["queue"]["kind"] == "codel"


def test_a_topology_survives_a_file(net, tmp_path):
    path = net.write(tmp_path, "net")
    assert fp.Topology.from_file(path).check().description == net.check().description
    assert json.loads(path.read_text())["links"][0]["rate"] == "10Mbit"
    with pytest.raises(FileNotFoundError):
        fp.Topology.from_file(tmp_path / "none.toml")


def test_traces_are_made_of_arrays(net):
    trace = net.trace("cell", [0.0, 1.0], rate_mbps=[1.0, 8.0])
    net.links[0].keys["trace"] = trace
    net.check()
    with pytest.raises(fp.Error, match="nan"):
        net.trace("cell", [0.0], rate_mbps=[math.nan])
    with pytest.raises(fp.Error, match="different lengths"):
        net.trace("cell", [0.0, 1.0], rate_mbps=[1.0])


def test_a_topology_draws_itself(net):
    assert net._repr_svg_().startswith("<svg")


def test_the_import_is_light():
    code = "import sys, fastpath; print('numpy' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True)
    assert done.stdout == b"False\n"


def test_the_program_is_run_by_the_module():
    done = subprocess.run([sys.executable, "-m", "fastpath", "--version"], capture_output=True, check=True)
    assert done.stdout.startswith(b"fastpath ")
