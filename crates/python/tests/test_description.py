"""A topology keeps everything that a description says, and refuses what it cannot say."""

import json
import os
import subprocess
from pathlib import Path

import pytest
from conftest import needs_lab

import fastpath as fp
from fastpath.program import program

ROOT = Path(__file__).resolve().parents[3]
EXAMPLES = sorted(path for path in (ROOT / "examples").iterdir() if path.suffix in (".toml", ".ns"))
WHOLE = """
seed = 7
family = "v4"
routes = "dynamic"
ecmp = true
[engine]
tolerance = "2ms"
workers = 2
[host.a]
[nat.x]
inside = ["in"]
timeouts = { udp = "3min" }
[host.b]
exec = "sleep 1"
[uplink.out]
forward = { "8080" = "b:80" }
[group.cell]
start = "command"
[[link]]
name = "in"
between = ["a", "x"]
rate = "10Mbit"
group = "cell"
trace = { poisson = "1Mbit", length = "1s", end = "stop" }
[[link]]
between = ["x", "b"]
b_to_x = { loss = { kind = "runs", passed = [9], lost = [1] } }
[[link]]
between = ["b", "out"]
[[event]]
at = "1s"
link = "x-b"
delay = "5ms"
[[traffic]]
from = "a"
to = "b"
kind = "on-off"
rate = "1Mbit"
on = "1s"
off = { law = "pareto", mean = "2s", shape = 1.5 }
"""


def random_descriptions(count):
    """The random descriptions of the tests in Rust, which an example of their crate prints."""
    made = Path(program()).parent / "examples" / "random_descriptions"
    if not made.exists():
        pytest.skip(f"{made} is not built: cargo build -p fastpath-spec --example random_descriptions")
    done = subprocess.run([made, str(count)], capture_output=True, check=True, text=True)
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_random_descriptions_survive_python(tmp_path):
    (tmp_path / "rate.csv").write_text("time_s,rate_mbps\n0,3\n0.5,8\n")
    (tmp_path / "rules.txt").write_text("actions=flood\n")
    found = random_descriptions(10_000)
    assert len(found) == 10_000
    through_files = 0
    for number, description in enumerate(found):
        net = fp.Topology.from_dict(description, directory=tmp_path)
        assert net.description() == description, number
        text = net.to_toml()
        # A file makes paths of hosts absolute.
        if number % 20 or "rootfs" in text or "binds" in text:
            continue
        try:
            resolved = net.check().description
        except fp.Mistakes:
            continue
        (tmp_path / "net.toml").write_text(text)
        for path in (tmp_path / "net.toml", net.write(tmp_path)):
            assert fp.Topology.from_file(path).description() == resolved, number
        through_files += 1
    assert through_files > 50


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.name)
def test_examples_survive_python_json_and_toml(path, tmp_path):
    done = subprocess.run([program(), "check", "--json", path], capture_output=True, check=True)
    resolved = json.loads(done.stdout)["topology"]
    net = fp.Topology.from_dict(resolved, directory=path.parent)
    assert net.description() == resolved
    resolved = net.check().description
    read = fp.Topology.from_file(path)
    assert read.check().description == resolved
    for name in os.listdir(path.parent):
        if name.endswith((".csv", ".up", ".trace", ".json", ".txt", ".conf")):
            (tmp_path / name).write_bytes((path.parent / name).read_bytes())
    (tmp_path / "again.toml").write_text(net.to_toml())
    assert fp.Topology.from_file(tmp_path / "again.toml").check().description == resolved


def test_a_file_keeps_everything_it_says(tmp_path):
    path = tmp_path / "whole.toml"
    path.write_text(WHOLE)
    net = fp.Topology.from_file(path)
    description = net.description()
    assert (net.seed, net.family, net.routes, net.ecmp) == (7, "v4", "dynamic", True)
    assert net.engine == {"tolerance": "2ms", "workers": 2} == description["engine"]
    assert description["traffic"][0]["off"] == {"law": "pareto", "mean": "2s", "shape": 1.5}
    kinds = {node.name: node.keys["kind"] for node in net.nodes}
    assert kinds == {"a": "host", "x": "nat", "b": "host", "out": "uplink"}
    assert net.nodes[3].keys["forward"] == {"8080": "b:80"}
    assert description["events"][0]["delay"] == "5ms" and description["groups"][0]["start"] == "command"
    again = fp.Topology.from_dict(description)
    assert again.description() == description == fp.Topology.from_file(net.write(tmp_path)).description()


def test_a_topology_says_what_a_file_says(tmp_path):
    net = fp.Topology(seed=7, family="v4", routes="dynamic", ecmp=True, engine={"tolerance": "2ms"})
    net.engine["workers"] = 2
    a = net.host("a")
    x = net.nat("x", inside="in", timeouts={"udp": "3min"})
    b = net.host("b", exec="sleep 1")
    out = net.uplink("out", forward={"8080": "b:80"})
    net.group("cell", start="command")
    net.link(a, x, name="in", rate="10Mbit", group="cell",
             trace={"poisson": "1Mbit", "length": "1s", "end": "stop"})
    net.link(x, b, b_to_x={"loss": {"kind": "runs", "passed": [9], "lost": [1]}})
    net.link(b, out)
    net.event("1s", link="x-b", delay="5ms")
    sent = net.traffic(a, b, kind="on-off", rate="1Mbit", on="1s",
                       off={"law": "pareto", "mean": "2s", "shape": 1.5})
    assert sent.name == "a-b" and repr(sent) == "<traffic a-b>"
    path = tmp_path / "whole.toml"
    path.write_text(WHOLE)
    assert net.check().description == fp.Topology.from_file(path).description()


def test_a_nat_takes_links_for_its_inside():
    net = fp.Topology()
    a, b = net.host("a"), net.host("b")
    x = net.router("r")
    inside, other = net.link(a, x), net.link("n", a)
    assert net.nat("n", inside=inside).keys["inside"] == ["a-r"]
    assert net.nat("m", inside=[inside, other, "l"]).keys["inside"] == ["a-r", "n-a", "l"]
    assert b.name == "b"


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda all: all.update(trafic=[]), ": trafic: the spec has no key 'trafic'; write traffic"),
        (lambda all: all["links"][0].update(dealy="1ms"), "links[0].dealy: link has no key 'dealy'; write delay"),
        (lambda all: all["nodes"][0].update(adress=[]), "nodes[0].adress: host a has no key 'adress'; write "),
        (lambda all: all["engine"].update(tolerence="1ms"), "has no key 'tolerence'; write tolerance"),
        (lambda all: all["traffic"][0].update(rat="1Mbit"), "traffic has no key 'rat'; write rate"),
        (lambda all: all["links"][0].update(queue={"kind": "codel", "targt": "5ms"}), "no key 'targt'; write target"),
        (lambda all: all["links"][0].update(forward={"delya": "1ms"}), "links[0].forward.delya"),
    ],
)
def test_a_key_that_is_not_known_is_refused_with_its_place(change, said, tmp_path):
    description = {
        "nodes": [{"name": "a", "kind": "host"}, {"name": "b", "kind": "host"}],
        "links": [{"between": ["a", "b"]}],
        "traffic": [{"from": "a", "to": "b", "rate": "1Mbit"}],
        "engine": {"tolerance": "1ms"},
    }
    assert fp.Topology.from_dict(description).check().warnings == []
    change(description)
    with pytest.raises(fp.Mistakes) as raised:
        fp.Topology.from_dict(description)
    text = str(raised.value)
    assert text.startswith("test_description.py:") and said in text, text
    path = tmp_path / "net.json"
    path.write_text(json.dumps(description))
    with pytest.raises(fp.Mistakes) as raised:
        fp.Topology.from_file(path)
    mistake = raised.value.mistakes[0]
    assert mistake.place.startswith(f"{path}:1:") and f"{mistake.what}; {mistake.instead}" in text


def test_mistakes_of_a_call_are_those_of_its_line():
    net = fp.Topology(routes="dynamc")
    net.link(net.host("a"), net.host("b"))
    net.traffic("a", "b", rate="1Mbit", dscpp=3)
    with pytest.raises(fp.Mistakes) as raised:
        net.description()
    routes, traffic = map(str, sorted(raised.value.mistakes, key=str))
    assert routes.startswith("routes: 'dynamc' is not a kind of routes; write ")
    assert "test_description.py:" in traffic and "traffic a-b: dscpp" in traffic
    with pytest.raises(TypeError):
        fp.Topology(route="dynamic")


def test_the_contents_of_a_spec_file_are_a_description_too():
    net = fp.Topology.from_dict({"host": {"a": {}, "b": {}}, "link": [{"between": ["a", "b"], "a_to_b": {"delay": "1ms"}}]})
    assert net.description()["links"][0] == {"between": ["a", "b"], "forward": {"delay": "1ms"}}


def test_traffic_is_replayed_until_a_time():
    net = fp.Topology(seed=3)
    net.link(net.host("a"), net.host("b"), rate="10Mbit", delay="5ms", queue="100p")
    net.traffic("a", "b", name="camera", rate="8Mbit", size=1000)
    with pytest.raises(fp.Error, match="it does not stop"):
        net.replay()
    out = net.replay(until="1s")
    assert len(out) == 1000 and out.delivered.all()
    assert set(out.source) == {"camera"} and int(out.in_ps.max()) < 10**12
    flow = out.traffic[0]
    assert (flow.name, flow.from_, flow.to, flow.sent, flow.lost) == ("camera", "a", "b", 1000, 0)
    assert len(net.replay(until="500ms")) == 500
    with pytest.raises(fp.Error, match="until: .*write until="):
        net.replay(until="soon")


def test_routes_avoid_links_that_are_down():
    net = fp.Topology(routes="dynamic")
    a, b = net.host("a"), net.host("b")
    first, last = net.router("first"), net.router("last")
    net.link(a, first)
    net.link(last, b)
    for name in "rs":
        router = net.router(name)
        net.link(first, router)
        net.link(router, last, name=f"{name}-last")
    net.event("500ms", link="r-last", state="down")
    net.traffic(a, b, rate="8Mbit", size=1000, stop="1s")
    lost = net.replay().traffic[0].lost
    net.routes = None
    assert lost < net.replay().traffic[0].lost


def test_a_topology_takes_its_files_along(tmp_path, monkeypatch):
    (tmp_path / "here").mkdir()
    (tmp_path / "there").mkdir()
    (tmp_path / "here" / "rate.csv").write_text("time_s,rate_mbps\n0,3\n1,3\n")
    (tmp_path / "here" / "rules.txt").write_text("actions=flood\n")
    monkeypatch.chdir(tmp_path / "here")
    net = fp.Topology()
    a, s, b = net.host("a", binds="conf:/etc/app"), net.openflow("s", file="rules.txt"), net.host("b")
    net.link(a, s, trace="rate.csv")
    net.link(s, b, trace=net.trace("made", [0.0, 1.0], rate_mbps=[2.0, 2.0]))
    path = net.write(tmp_path / "there")
    assert sorted(os.listdir(tmp_path / "there")) == ["made.csv", "rate.csv", "rules.txt", "topology.json"]
    (tmp_path / "here" / "rate.csv").unlink()
    read = fp.Topology.from_file(path)
    assert read.check().description["links"][0]["forward"]["trace"]["file"] == "rate.csv"
    assert read.nodes[0].keys["binds"] == [f"{tmp_path}/here/conf:/etc/app"]
    net.link(a, b, trace="../here/rate.csv")
    (tmp_path / "here" / "rate.csv").write_text("time_s,rate_mbps\n0,3\n1,3\n")
    with pytest.raises(fp.Error, match="write its absolute path"):
        net.write(tmp_path / "there")


@needs_lab
def test_the_control_interface_returns_the_description():
    net = fp.Topology(seed=7, routes="dynamic", ecmp=True)
    net.link(net.host("a"), net.host("b"), rate="10Mbit", delay="5ms")
    net.traffic("a", "b", rate="80kbit")
    with net.lab() as lab:
        answer = lab.request("GET", "/topology")
        assert answer["routes"] == "dynamic" and answer["ecmp"] and len(answer["traffic"]) == 1
        assert fp.Topology.from_dict(answer).description() == answer == net.check().description
