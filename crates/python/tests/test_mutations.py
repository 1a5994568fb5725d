"""Every word of the author changes what would run, or is named.

From calls and commands that are valid, one leaf is changed, removed or misspelled. Then the outcome differs,
or there is an error or a warning with its place. ``FASTPATH_MUTATIONS=100000`` makes more of them.
"""

import contextlib
import io
import json
import os
import re
from random import Random

import pytest
from conftest import needs_lab
from mutation import COUNT, changed_word, mutated

import fastpath as fp

CALLS = [
    ["host", ["a"], {"address": ["10.0.1.2/24"], "exec": "sleep 7"}],
    ["host", ["b"], {"address": ["10.0.2.2/24"]}],
    ["router", ["r"], {}],
    ["switch", ["s"], {}],
    ["host", ["c"], {"address": ["10.0.2.3/24"], "sysctls": {"net.ipv4.ip_default_ttl": "33"}}],
    ["group", ["cell"], {"start": "command"}],
    ["trace", ["lte", [0, 1, 2]], {"rate_mbps": [4, 9, 5]}],
    ["link", ["a", "r"], {"name": "up", "rate": "10Mbit", "delay": "25ms", "queue": "50p",
                          "loss": {"kind": "runs", "passed": [9, 4], "lost": [1, 2]}}],
    ["link", ["r", "s"], {"forward": {"rate": "3Mbit", "queue": {"kind": "codel", "target": "7ms"}},
                          "backward": {"jitter": {"law": "uniform", "half_width": "2ms"}, "delay": "9ms"}}],
    ["link", ["s", "b"], {"trace": "lte", "group": "cell"}],
    ["link", ["s", "c"], {"loss": "3%", "duplicate": "2%", "overhead": 24}],
    ["event", ["1s"], {"link": "up", "delay": "50ms"}],
    ["traffic", ["a", "b"], {"name": "camera", "rate": "2Mbit", "size": 900, "start": "1s", "stop": "9s",
                             "kind": "poisson"}],
]
TOP = {"seed": 7, "family": "v4", "routes": "dynamic", "ecmp": True, "engine": {"tolerance": "2ms", "workers": 2}}


def topology(recipe):
    """Make the calls. Returns what would run, and what is named."""
    try:
        net = fp.Topology(**recipe["top"])
        for method, words, keys in recipe["calls"]:
            getattr(net, method)(*words, **keys)
        checked = net.check()
    except (fp.Error, TypeError, AttributeError) as error:
        assert str(error), repr(error)
        return None, str(error)
    described = checked.description
    return json.dumps([described, sorted(net._texts.items())]), "\n".join(checked.warnings)


def test_every_argument_of_a_call_changes_the_network_or_is_named():
    recipe = {"top": TOP, "calls": CALLS}
    before = topology(recipe)
    assert before[0] is not None, before[1]
    random = Random(int(os.environ.get("FASTPATH_SEED", "33")))
    silent = []
    for _ in range(COUNT):
        part = random.choice(["top", "calls", "calls", "calls"])
        other, what = mutated(random, recipe[part])
        after = topology({**recipe, part: other})
        if after == before:
            silent.append(what)
        if after[0] is None and after[1].count(":") == 0 and "argument" not in after[1] and "attribute" not in after[1]:
            silent.append(f"{what}: no place: {after[1]}")
    assert not silent, "\n".join(silent)


SIMULATED = {
    "machine": "ixp1200",
    "program": "linkem",
    "workload": "line-rate,size=64,ports=4,duration=1ms",
    "vary": {"workload.size": [64, 128]},
    "set": {"machine.egress.engines": 2},
    "seed": 3,
}


def simulated(recipe):
    try:
        given = {key: value for key, value in recipe.items() if key not in ("machine", "program", "workload", "vary")}
        words = [recipe[key] for key in ("machine", "program", "workload", "vary")]
        fp.Machine(recipe["machine"], set={key.removeprefix("machine."): value
                                           for key, value in recipe.get("set", {}).items()})
        return json.dumps(fp.sweep(*words, **given, threads=1).rows)
    except (fp.Error, TypeError, KeyError) as error:
        assert str(error) and "failed to extract" not in str(error)
        return None


def test_every_argument_of_a_sweep_changes_it_or_is_named():
    before = simulated(SIMULATED)
    assert before is not None
    random = Random(34)
    silent = []
    for _ in range(COUNT // 10):
        other, what = mutated(random, SIMULATED)
        if simulated(other) == before:
            silent.append(what)
    assert not silent, "\n".join(silent)


BASE = ("priority=9,in_port=1,actions=output:2", "priority=9,in_port=2,actions=output:1",
        "table=1,tcp,tp_dst=80,cookie=0x5,actions=drop", "table=1,udp,actions=drop")
COMMANDS = [
    ["ovs-ofctl", "add-flow", "s1", "priority=7,in_port=1,dl_src=02:00:00:00:00:01,actions=mod_dl_dst:02:00:00:00:00:09,output:2"],
    ["ovs-ofctl", "-O", "OpenFlow13", "add-flow", "s1", "tcp,nw_src=10.1.0.0/16,tp_dst=443,idle_timeout=30,actions=output:s1-eth2"],
    ["ovs-ofctl", "add-flow", "s1", "table=2,cookie=0x7,hard_timeout=100,arp,arp_tpa=10.0.0.1,actions=flood"],
    ["ovs-ofctl", "add-flow", "s1", "ip,nw_dst=10.0.0.2,actions=set_field:10.0.0.9->ip_dst,goto_table:3"],
    ["ovs-ofctl", "mod-flows", "s1", "in_port=1,actions=drop"],
    ["ovs-ofctl", "--strict", "mod-flows", "s1", "priority=9,in_port=2,actions=output:2"],
    ["ovs-ofctl", "del-flows", "s1", "table=1,tcp"],
    ["ovs-ofctl", "del-flows", "s1", "cookie=0x5/-1"],
    ["ovs-ofctl", "del-flows", "s1", "out_port=2"],
    ["ovs-ofctl", "--strict", "del-flows", "s1", "priority=9,in_port=1"],
    ["ovs-ofctl", "add-group", "s1", "group_id=4,type=select,bucket=weight:3,actions=output:1,bucket=weight:2,actions=output:2"],
    ["ovs-ofctl", "add-meter", "s1", "meter=3,kbps,bands=type=drop,rate=1000"],
    ["ovs-ofctl", "dump-flows", "s1", "in_port=1"],
    ["ovs-ofctl", "show", "s1"],
    ["ovs-ofctl", "del-flows", "s1"],
    ["ovs-vsctl", "set-fail-mode", "s1", "standalone"],
    ["ovs-vsctl", "set", "bridge", "s1", "fail_mode=standalone"],
    ["ovs-vsctl", "--may-exist", "add-br", "dp1", "--", "add-port", "dp1", "x1-eth0"],
    ["ovs-vsctl", "del-port", "dp0", "p0"],
    ["ovs-vsctl", "add-port", "dp0", "p9", "--", "set", "interface", "p9", "ofport_request=3"],
    ["ovs-vsctl", "set-controller", "dp0", "tcp:127.0.0.1:6633"],
    ["ovs-vsctl", "get", "interface", "s1-eth2", "ofport"],
    ["ovs-vsctl", "list-ports", "s1"],
    ["ovs-vsctl", "port-to-br", "s1-eth1"],
]
# Commands that do the same, with the reason.
SAME = {
    "ovs-vsctl del-port p0": "a port has one bridge, whose name may be left out",
    "ovs-vsctl port-to-br s1-eth2": "both ports are of one switch",
    "ovs-vsctl add-br dp1 -- add-port dp1 x1-eth0": "--may-exist is for a bridge that is there",
}
# Flows are the same in every version of the protocol.
SAME_WORD = re.compile(r"OpenFlow1[0-5]")


class Bench:
    """Programs of scripts, run in this process on the flow table of a lab."""

    def __init__(self, directory, listen):
        self.directory = str(directory)
        self.listen = listen

    def run(self, words):
        """Run a command on the same table and bridges. Returns all that it does and says."""
        from fastpath.mininet import programs
        from fastpath.mininet.network import Network, Refused, Wrong
        from fastpath.mininet.ofctl import run

        switch = {"dpid": "0" * 15 + "1", "ports": {"s1-eth1": 1, "s1-eth2": 2}, "listen": self.listen,
                  "controllers": [], "fail_mode": "secure", "dials": False, "is_taught": False, "in_ring": False}
        bridge = {"dpid": "0" * 16, "ports": {"p0": 1, "p1": 2}, "listen": None, "controllers": []}
        for name, value in (("switches", {"s1": switch}), ("bridges", {"dp0": bridge}), ("changed", {})):
            with open(os.path.join(self.directory, f"{name}.json"), "w") as file:
                json.dump(value, file)
        with contextlib.suppress(FileNotFoundError):
            os.remove(os.path.join(self.directory, "remarks"))
        network = Network(self.directory, print)
        for command in ("del-flows", "del-groups", "del-meters"):
            run(network, "s1", command, "", False)
        run(network, "s1", "add-flows", "\n".join(BASE), False)
        said = io.StringIO()
        with contextlib.redirect_stdout(said):
            try:
                programs._run(self.directory, words[0], words[1:])
                end = "done"
            except (Refused, Wrong, SystemExit) as error:
                end = f"{type(error).__name__}: {error}"
        after = Network(self.directory, print)
        state = [run(after, "s1", command, "", False) for command in ("dump-flows", "dump-groups", "dump-meters")]
        remarks = os.path.join(self.directory, "remarks")
        named = open(remarks).read() if os.path.exists(remarks) else ""
        bridges = json.dumps([{name: {**bridge, "listen": bool(bridge["listen"])} for name, bridge in after.bridges.items()},
                              after.changed])
        counted = re.compile(r"duration=[^,]*, |n_packets=\d+, |n_bytes=\d+, ")
        return counted.sub("", json.dumps([said.getvalue(), end, state, named, bridges]))


def mutated_command(random, words):
    """Change, remove or misspell one word of a command, or one part of such a word."""
    words = list(words)
    place = random.randrange(1, len(words))
    parts = re.split(r"([,=:/]|->)", words[place])
    at = random.randrange(0, len(parts), 2)
    if random.random() < 0.2:
        del words[place]
    elif parts[at] and len(parts) > 1 and random.random() < 0.2:
        items = words[place].split(",")
        del items[random.randrange(len(items))]
        words[place] = ",".join(items)
    elif parts[at]:
        parts[at] = changed_word(random, parts[at])
        words[place] = "".join(parts)
    return words


@needs_lab
def test_every_word_of_a_command_changes_what_runs_or_is_named(tmp_path):
    from fastpath.mininet.network import free_port

    listen = free_port()
    net = fp.Topology()
    s = net.openflow("s1", fail_mode="secure", listen=[f"ptcp:{listen}:127.0.0.1"])
    net.link(net.host("a"), s)
    net.link(net.host("b"), s)
    random = Random(int(os.environ.get("FASTPATH_SEED", "35")))
    silent = []
    with net.lab():
        bench = Bench(tmp_path, listen)
        before = [bench.run(words) for words in COMMANDS]
        # The commands themselves are carried out.
        for words, outcome in zip(COMMANDS, before):
            assert json.loads(outcome)[1] == "done", (words, outcome)
        for _ in range(COUNT):
            number = random.randrange(len(COMMANDS))
            words = mutated_command(random, COMMANDS[number])
            if words == COMMANDS[number] or SAME_WORD.fullmatch("".join(set(words) - set(COMMANDS[number]))):
                continue
            if bench.run(words) == before[number]:
                silent.append(" ".join(words))
    silent = [line for line in silent if line not in SAME]
    assert not silent, "\n".join(silent)
