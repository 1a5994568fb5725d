"""Mininet's command line `mn`: makes a network, tests it, and reads commands."""

import os
import sys
import time
from optparse import OptionParser

from fastpath.mininet.tables import OPTION

from mininet.clean import cleanup
from mininet.cli import CLI
from mininet.lab import NETWORK
from mininet.link import Link, OVSLink, TCLink, TCULink
from mininet.log import LEVELS, info, output, setLogLevel
from mininet.net import VERSION, Mininet
from mininet.node import (
    NOX,
    Controller,
    CPULimitedHost,
    DefaultController,
    Host,
    IVSSwitch,
    LinuxBridge,
    NullController,
    OVSBridge,
    OVSController,
    OVSSwitch,
    RemoteController,
    Ryu,
    UserSwitch,
)
from mininet.topo import LinearTopo, MinimalTopo, SingleSwitchReversedTopo, SingleSwitchTopo
from mininet.topolib import TorusTopo, TreeTopo
from mininet.util import buildTopo, customClass, specialClass

TOPOS = {
    "minimal": MinimalTopo,
    "linear": LinearTopo,
    "reversed": SingleSwitchReversedTopo,
    "single": SingleSwitchTopo,
    "tree": TreeTopo,
    "torus": TorusTopo,
}
SWITCHES = {
    "user": UserSwitch,
    "ovs": OVSSwitch,
    "ovsbr": OVSBridge,
    "ovsk": OVSSwitch,
    "ivs": IVSSwitch,
    "lxbr": LinuxBridge,
    "default": OVSSwitch,
}
HOSTS = {
    "proc": Host,
    "rt": specialClass(CPULimitedHost, defaults={"sched": "rt"}),
    "cfs": specialClass(CPULimitedHost, defaults={"sched": "cfs"}),
}
CONTROLLERS = {
    "ref": Controller,
    "ovsc": OVSController,
    "nox": NOX,
    "remote": RemoteController,
    "ryu": Ryu,
    "default": DefaultController,
    "none": NullController,
}
LINKS = {"default": Link, "tc": TCLink, "tcu": TCULink, "ovs": OVSLink}
TESTS = {
    "cli": CLI,
    "build": lambda _net: None,
    "none": lambda _net: None,
    "all": lambda net: (net.start(), net.ping(), net.iperf()),
    "pingall": lambda net: net.pingAll(),
    "pingpair": lambda net: net.pingPair(),
    "iperf": lambda net: net.iperf(),
    "iperfudp": lambda net: net.iperf(l4Type="UDP"),
}


class MininetRunner:
    """Reads the options, makes the network and runs the tests."""

    def __init__(self):
        self.validate = None
        self.options, arguments = self.parser().parse_args()
        if arguments:
            sys.exit(f"fastpath-mn: {arguments[0]}: write options only; see --help")

    @staticmethod
    def parser():
        parser = OptionParser(
            usage="%prog [options]\n(type fastpath-mn -h for details)",
            description="Make a network of Mininet's classes as a lab of fastpath, and test it.",
        )

        def choices(flag, default, names):
            text = f"{'|'.join(sorted(names))}[,param=value...]"
            parser.add_option(flag, type="string", default=default, help=text)

        choices("--switch", "default", SWITCHES)
        choices("--host", "proc", HOSTS)
        parser.add_option("--controller", action="append", help="|".join(sorted(CONTROLLERS)))
        choices("--link", "default", LINKS)
        choices("--topo", "minimal", TOPOS)
        parser.add_option("--clean", "-c", action="store_true", help="clean and exit")
        parser.add_option("--custom", action="callback", callback=_custom, type="string",
                          help="read custom classes or params from .py file(s)")
        parser.add_option("--test", action="append", default=[], help="|".join(sorted(TESTS)))
        parser.add_option("--xterms", "-x", action="store_true", help="spawn xterms for each node")
        parser.add_option("--ipbase", "-i", default="10.0.0.0/8", help="base IP address for hosts")
        parser.add_option("--mac", action="store_true", help="automatically set host MACs")
        parser.add_option("--arp", action="store_true", help="set all-pairs ARP entries")
        parser.add_option("--verbosity", "-v", type="choice", choices=list(LEVELS), default="info")
        parser.add_option("--innamespace", action="store_true", help="sw and ctrl in namespace?")
        parser.add_option("--listenport", type="int", default=6654, help="base port for passive switches")
        parser.add_option("--nolistenport", action="store_true", help="don't use passive listening port")
        parser.add_option("--pre", help="CLI script to run before tests")
        parser.add_option("--post", help="CLI script to run after tests")
        parser.add_option("--pin", action="store_true", help="pin hosts to CPU cores")
        parser.add_option("--nat", action="callback", callback=_nat, help="[option=val...] adds a NAT")
        parser.add_option("--version", action="callback", callback=_version, help="prints the version")
        parser.add_option("--wait", "-w", action="store_true", help="wait for switches to connect")
        parser.add_option("--twait", "-t", type="int", help="timed wait (s) for switches to connect")
        parser.set_defaults(nat=False)
        return parser

    def begin(self):
        options = self.options
        if options.clean:
            cleanup()
            return
        setLogLevel(options.verbosity)
        start = time.time()
        topo = buildTopo(TOPOS, options.topo)
        controllers = [customClass(CONTROLLERS, name) for name in options.controller or ["default"]]
        net = Mininet(
            topo=topo,
            switch=customClass(SWITCHES, options.switch),
            host=customClass(HOSTS, options.host),
            controller=controllers if len(controllers) > 1 else controllers[0],
            link=customClass(LINKS, options.link),
            ipBase=options.ipbase,
            inNamespace=bool(options.innamespace),
            xterms=bool(options.xterms),
            autoSetMacs=bool(options.mac),
            autoStaticArp=bool(options.arp),
            autoPinCpus=bool(options.pin),
            listenPort=None if options.nolistenport else options.listenport,
            waitConnected=bool(options.wait),
        )
        if options.nat:
            net.addNAT().configDefault()
        tests = options.test or ["cli"]
        names = [name for test in tests for name in test.replace("+", ",").split(",")]
        names = [alias.get(name, name) for alias in ({"pingAll": "pingall", "pingPair": "pingpair",
                 "iperfUdp": "iperfudp"},) for name in names]
        unknown = [name for name in names if name not in TESTS]
        if unknown:
            NETWORK.down()
            sys.exit(f"fastpath-mn: test {unknown[0]} is unknown (have: {', '.join(TESTS)})")
        if "cli" in names or options.pre or options.post:
            # A person may type commands that change flows.
            if len(net.switches) <= 64:
                os.environ.setdefault(OPTION, "1")
        if names != ["build"]:
            net.start()
        if options.pre:
            CLI(net, script=options.pre)
        for name in names:
            TESTS[name](net)
        if options.post:
            CLI(net, script=options.post)
        net.stop()
        info(f"completed in {time.time() - start:0.3f} seconds\n")


def _custom(_option, _flag, value, _parser):
    """Take the tables `topos`, `switches`, … of files into ours."""
    for name in value.split(","):
        if not os.path.isfile(name):
            sys.exit(f"fastpath-mn: could not find custom file: {name}")
        found = {}
        with open(name) as file:
            exec(compile(file.read(), name, "exec"), found, found)
        tables = {"topos": TOPOS, "switches": SWITCHES, "hosts": HOSTS, "links": LINKS, "tests": TESTS,
                  "testnames": {}, "controllers": CONTROLLERS}
        for key, table in tables.items():
            table.update(found.get(key, {}))


def _nat(_option, _flag, _value, parser):
    parser.values.nat = True


def _version(*_):
    output(f"{VERSION}\n")
    sys.exit()


def main():
    try:
        MininetRunner().begin()
    except KeyboardInterrupt:
        info("\n\nKeyboard Interrupt. Shutting down and cleaning up...\n\n")
        NETWORK.down()
    except Exception as e:
        NETWORK.down()
        sys.exit(f"fastpath-mn: {e}")
