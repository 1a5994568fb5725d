"""The network: nodes, links, and tests between hosts."""

import math
import os
import random
import re
import select
import shutil
import signal
import time
from itertools import chain

from mininet.cli import CLI
from mininet.lab import NETWORK
from mininet.link import Intf, Link
from mininet.log import debug, error, info, output
from mininet.node import Controller, DefaultController, Host, Node, OVSKernelSwitch
from mininet.nodelib import NAT
from mininet.term import cleanUpScreens, makeTerms
from mininet.util import ipAdd, macColonHex, netParse, waitAccepted

VERSION = "2.3.0"


class Mininet:
    """A network of hosts, switches and controllers."""

    def __init__(self, topo=None, switch=OVSKernelSwitch, host=Host, controller=DefaultController,
                 link=Link, intf=Intf, build=True, xterms=False, cleanup=False, ipBase="10.0.0.0/8",
                 inNamespace=False, autoSetMacs=False, autoStaticArp=False, autoPinCpus=False,
                 listenPort=None, waitConnected=False):
        self.topo = topo
        self.switch, self.host, self.controller = switch, host, controller
        self.link, self.intf = link, intf
        self.ipBase = ipBase
        self.ipBaseNum, self.prefixLen = netParse(self.ipBase)
        hostIP = (0xFFFFFFFF >> self.prefixLen) & self.ipBaseNum
        self.nextIP = hostIP if hostIP > 0 else 1
        self.inNamespace = inNamespace
        self.xterms, self.cleanup = xterms, cleanup
        self.autoSetMacs, self.autoStaticArp, self.autoPinCpus = autoSetMacs, autoStaticArp, autoPinCpus
        self.numCores = os.cpu_count() or 1
        self.nextCore = 0
        self.listenPort = listenPort
        self.waitConn = waitConnected
        self.hosts, self.switches, self.controllers, self.links = [], [], [], []
        self.nameToNode = {}
        self.terms = []
        self.built = False
        Mininet.init()
        if topo and build:
            self.build()

    def waitConnected(self, timeout=None, delay=0.5):
        """Wait until switches forward: without a database they do as soon as the network is up."""
        NETWORK.ensure_up()
        NETWORK.follow_bridges()
        passed = 0.0
        while not all(switch.connected() for switch in self.switches):
            if timeout is not None and passed >= timeout:
                return False
            time.sleep(delay)
            passed += delay
        return True

    def getNextIp(self):
        ip = ipAdd(self.nextIP, ipBaseNum=self.ipBaseNum, prefixLen=self.prefixLen)
        self.nextIP += 1
        return ip

    def addHost(self, name, cls=None, **params):
        defaults = {"ip": f"{self._peekIp()}/{self.prefixLen}"}
        if self.autoSetMacs:
            defaults["mac"] = macColonHex(self.nextIP)
        if self.autoPinCpus:
            defaults["cores"] = self.nextCore
            self.nextCore = (self.nextCore + 1) % self.numCores
        self.nextIP += 1
        defaults.update(params)
        host = (cls or self.host)(name, **defaults)
        self.hosts.append(host)
        self.nameToNode[name] = host
        return host

    def _peekIp(self):
        return ipAdd(self.nextIP, ipBaseNum=self.ipBaseNum, prefixLen=self.prefixLen)

    def delNode(self, node, nodes=None):
        if nodes is None:
            nodes = next(group for group in (self.hosts, self.switches, self.controllers) if node in group)
        node.stop(deleteIntfs=True)
        nodes.remove(node)
        del self.nameToNode[node.name]
        NETWORK.nodes.remove(node)

    def delHost(self, host):
        self.delNode(host, nodes=self.hosts)

    def addSwitch(self, name, cls=None, **params):
        defaults = {"listenPort": self.listenPort, "inNamespace": self.inNamespace}
        defaults.update(params)
        switch = (cls or self.switch)(name, **defaults)
        if not self.inNamespace and self.listenPort:
            self.listenPort += 1
        self.switches.append(switch)
        self.nameToNode[name] = switch
        return switch

    def delSwitch(self, switch):
        self.delNode(switch, nodes=self.switches)

    def addController(self, name="c0", controller=None, **params):
        if not controller:
            controller = self.controller
        if isinstance(name, Controller):
            made = name
            name = made.name
        else:
            made = controller(name, **params)
        if made:
            self.controllers.append(made)
            self.nameToNode[name] = made
        return made

    def delController(self, controller):
        self.delNode(controller, nodes=self.controllers)

    def addNAT(self, name="nat0", connect=True, inNamespace=False, **params):
        nat = self.addHost(name, cls=NAT, inNamespace=inNamespace, subnet=self.ipBase, **params)
        if connect:
            if not isinstance(connect, Node):
                connect = self.switches[0]
            self.addLink(nat, connect)
            natIP = nat.params["ip"].split("/")[0]
            for host in self.hosts:
                if host.inNamespace:
                    host.setDefaultRoute(f"via {natIP}")
        return nat

    def getNodeByName(self, *args):
        return self.nameToNode[args[0]] if len(args) == 1 else [self.nameToNode[name] for name in args]

    def get(self, *args):
        return self.getNodeByName(*args)

    def __getitem__(self, key):
        return self.nameToNode[key]

    def __delitem__(self, key):
        self.delNode(self.nameToNode[key])

    def __iter__(self):
        return (node.name for node in chain(self.hosts, self.switches, self.controllers))

    def __len__(self):
        return len(self.hosts) + len(self.switches) + len(self.controllers)

    def __contains__(self, item):
        return item in self.nameToNode

    def keys(self):
        return list(self)

    def values(self):
        return [self[name] for name in self]

    def items(self):
        return zip(self.keys(), self.values())

    @staticmethod
    def randMac():
        return macColonHex(random.randint(1, 2**48 - 1) & 0xFEFFFFFFFFFF | 0x020000000000)

    def addLink(self, node1, node2, port1=None, port2=None, cls=None, **params):
        node1 = node1 if not isinstance(node1, str) else self[node1]
        node2 = node2 if not isinstance(node2, str) else self[node2]
        options = dict(params)
        if port1 is not None:
            options.setdefault("port1", port1)
        if port2 is not None:
            options.setdefault("port2", port2)
        if self.intf is not Intf and cls is None and self.link is Link:
            options.setdefault("intf", self.intf)
        link = (cls or self.link)(node1, node2, **options)
        self.links.append(link)
        return link

    def delLink(self, link):
        link.delete()
        self.links.remove(link)

    def linksBetween(self, node1, node2):
        return [link for link in self.links
                if (node1, node2) in ((link.intf1.node, link.intf2.node), (link.intf2.node, link.intf1.node))]

    def delLinkBetween(self, node1, node2, index=0, allLinks=False):
        links = self.linksBetween(node1, node2)
        for link in links if allLinks else [links[index]]:
            self.delLink(link)

    def configHosts(self):
        for host in self.hosts:
            info(host.name + " ")
            intf = host.defaultIntf()
            if intf:
                host.configDefault()
            else:
                host.configDefault(ip=None, mac=None)
        info("\n")

    def buildFromTopo(self, topo=None):
        info("*** Creating network\n")
        if not self.controllers and self.controller:
            info("*** Adding controller\n")
            classes = self.controller if isinstance(self.controller, list) else [self.controller]
            for i, cls in enumerate(classes):
                if isinstance(cls, Controller):
                    self.addController(cls)
                else:
                    self.addController(f"c{i}", cls)
        info("*** Adding hosts:\n")
        for name in topo.hosts():
            self.addHost(name, **topo.nodeInfo(name))
            info(name + " ")
        info("\n*** Adding switches:\n")
        for name in topo.switches():
            params = topo.nodeInfo(name)
            cls = params.get("cls", self.switch)
            if hasattr(cls, "batchStartup"):
                params.setdefault("batch", True)
            params = {key: value for key, value in params.items() if key != "isSwitch"}
            self.addSwitch(name, **params)
            info(name + " ")
        info("\n*** Adding links:\n")
        for src, dst, params in topo.links(sort=True, withInfo=True):
            options = {key: value for key, value in params.items() if key not in ("node1", "node2")}
            self.addLink(self[params["node1"]], self[params["node2"]], **options)
            info(f"({src}, {dst}) ")
        info("\n")

    def configureControlNetwork(self):
        raise Exception("inNamespace=True: switches of fastpath have no namespaces and need no control network")

    def build(self):
        if self.topo:
            self.buildFromTopo(self.topo)
        if self.inNamespace:
            self.configureControlNetwork()
        info("*** Configuring hosts\n")
        self.configHosts()
        if self.xterms:
            self.startTerms()
        if self.autoStaticArp:
            self.staticArp()
        self.built = True

    def startTerms(self):
        if "DISPLAY" not in os.environ:
            error("Error starting terms: Cannot connect to display\n")
            return
        self.terms += makeTerms(self.hosts, "host")

    def stopXterms(self):
        for term in self.terms:
            os.kill(term.pid, signal.SIGKILL)
        cleanUpScreens()

    def staticArp(self):
        for src in self.hosts:
            pairs = [(dst.IP(), dst.MAC()) for dst in self.hosts if dst is not src and dst.IP()]
            if pairs:
                device = src.defaultIntf()
                src.cmd("; ".join(f"ip neigh replace {ip} lladdr {mac} dev {device} nud permanent"
                                  for ip, mac in pairs))

    def start(self):
        if not self.built:
            self.build()
        info("*** Starting controller\n")
        for controller in self.controllers:
            info(controller.name + " ")
            controller.start()
        info("\n")
        info(f"*** Starting {len(self.switches)} switches\n")
        for switch in self.switches:
            info(switch.name + " ")
            switch.start(self.controllers)
        info("\n")
        NETWORK.ensure_up()
        NETWORK.follow_bridges()
        NETWORK.programs()
        if self.waitConn:
            self.waitConnected()

    def stop(self):
        info(f"*** Stopping {len(self.controllers)} controllers\n")
        for controller in self.controllers:
            info(controller.name + " ")
            controller.stop()
        info("\n")
        if self.terms:
            info(f"*** Stopping {len(self.terms)} terms\n")
            self.stopXterms()
        info(f"*** Stopping {len(self.links)} links\n")
        info(f"*** Stopping {len(self.switches)} switches\n")
        for switch in self.switches:
            info(switch.name + " ")
            switch.terminate()
        info("\n")
        info(f"*** Stopping {len(self.hosts)} hosts\n")
        for host in self.hosts:
            info(host.name + " ")
            host.terminate()
        NETWORK.down()
        info("\n*** Done\n")

    def run(self, test, *args, **kwargs):
        self.start()
        result = test(*args, **kwargs)
        self.stop()
        return result

    def monitor(self, hosts=None, timeoutms=-1):
        if hosts is None:
            hosts = self.hosts
        poller = select.poll()
        for host in hosts:
            poller.register(host.stdout)
        while True:
            for fd, event in poller.poll(timeoutms):
                host = Node.outToNode[fd]
                if event & select.POLLIN:
                    line = host.readline()
                    if line is not None:
                        yield host, line
            if timeoutms >= 0:
                yield None, None

    @staticmethod
    def _parsePing(pingOutput):
        if "connect: Network is unreachable" in pingOutput:
            return 1, 0
        found = re.search(r"(\d+) packets transmitted, (\d+)( packets)? received", pingOutput)
        if found is None:
            error(f"*** Error: could not parse ping output: {pingOutput}\n")
            return 1, 0
        return int(found.group(1)), int(found.group(2))

    def ping(self, hosts=None, timeout=None):
        packets, lost = 0, 0
        if not hosts:
            hosts = self.hosts
            output("*** Ping: testing ping reachability\n")
        for node in hosts:
            output(f"{node.name} -> ")
            for dest in hosts:
                if node == dest:
                    continue
                opts = f"-W {timeout}" if timeout else ""
                sent, received = 0, 0
                if dest.intfs:
                    result = node.cmd("LANG=C ping -c1", opts, dest.IP())
                    sent, received = self._parsePing(result)
                packets += sent
                if received > sent:
                    error(f"*** Error: received too many packets: {result}")
                    node.cmdPrint("route")
                    raise SystemExit(1)
                lost += sent - received
                output(f"{dest.name} " if received else "X ")
            output("\n")
        if packets > 0:
            ploss = 100.0 * lost / packets
            output(f"*** Results: {ploss:.0f}% dropped ({packets - lost}/{packets} received)\n")
        else:
            ploss = 0
            output("*** Warning: No packets sent\n")
        return ploss

    @staticmethod
    def _parsePingFull(pingOutput):
        errorTuple = (1, 0, 0, 0, 0, 0)
        if re.search(r"[uU]nreachable", pingOutput):
            return errorTuple
        found = re.search(r"(\d+) packets transmitted, (\d+)( packets)? received", pingOutput)
        if found is None:
            error(f"*** Error: could not parse ping output: {pingOutput}\n")
            return errorTuple
        sent, received = int(found.group(1)), int(found.group(2))
        times = re.search(r"rtt min/avg/max/mdev = ([\d.]+)/([\d.]+)/([\d.]+)/([\d.]+) ms", pingOutput)
        if not times:
            return (*errorTuple[:0], sent, received, 0, 0, 0, 0) if received else errorTuple
        return (sent, received, *map(float, times.groups()))

    def pingFull(self, hosts=None, timeout=None):
        all_outputs = []
        if not hosts:
            hosts = self.hosts
            output("*** Ping: testing ping reachability\n")
        for node in hosts:
            output(f"{node.name} -> ")
            for dest in hosts:
                if node == dest:
                    continue
                opts = f"-W {timeout}" if timeout else ""
                outputs = self._parsePingFull(node.cmd("ping -c1", opts, dest.IP()))
                all_outputs.append((node, dest, outputs))
                output(f"{dest.name} " if outputs[1] else "X ")
            output("\n")
        output("*** Results: \n")
        for src, dest, (sent, received, *times) in all_outputs:
            output(f" {src}->{dest}: {sent}/{received}, ")
            output("rtt min/avg/max/mdev {:0.3f}/{:0.3f}/{:0.3f}/{:0.3f} ms\n".format(*times))
        return all_outputs

    def pingAll(self, timeout=None):
        return self.ping(timeout=timeout)

    def pingPair(self):
        return self.ping(hosts=self.hosts[:2])

    def pingAllFull(self):
        return self.pingFull()

    def pingPairFull(self):
        return self.pingFull(hosts=self.hosts[:2])

    @staticmethod
    def _parseIperf(iperfOutput):
        found = re.findall(r"([\d\.]+ \w+/sec)", iperfOutput)
        if found:
            return found[-1]
        error("could not parse iperf output: " + iperfOutput)
        return ""

    def iperf(self, hosts=None, l4Type="TCP", udpBw="10M", fmt=None, seconds=5, port=5001):
        """Measure the throughput between two hosts by iperf 2, or by iperf3 where it is missing."""
        hosts = hosts or [self.hosts[0], self.hosts[-1]]
        assert len(hosts) == 2
        client, server = hosts
        output(f"*** Iperf: testing {l4Type} bandwidth between {client} and {server}\n")
        if l4Type not in ("TCP", "UDP"):
            raise Exception(f"Unexpected l4 type: {l4Type}")
        if shutil.which("iperf"):
            return self._iperf2(client, server, l4Type, udpBw, fmt, seconds, port)
        if shutil.which("iperf3"):
            return self._iperf3(client, server, l4Type, udpBw, fmt, seconds, port)
        raise Exception("net.iperf needs the program iperf or iperf3: install one of them")

    def _iperf2(self, client, server, l4Type, udpBw, fmt, seconds, port):
        server.cmd("killall -9 iperf")
        args = f"iperf -p {port} "
        bwArgs = ""
        if l4Type == "UDP":
            args += "-u "
            bwArgs = f"-b {udpBw} "
        if fmt:
            args += f"-f {fmt} "
        listening = server.popen(f"{args} -s", stderr=-2)
        if l4Type == "TCP" and not waitAccepted(client, server.IP(), port, timeout=10):
            raise Exception(f"Could not connect to iperf on port {port}")
        if l4Type == "UDP":
            server.cmd(f"while ! ss -Hlun | grep -q ':{port} '; do read -rt 0.05 <> <(:) || :; done")
        cliout = client.cmd(f"{args} -t {seconds} -c {server.IP()} {bwArgs}")
        debug(f"Client output: {cliout}\n")
        # The server prints its report after the last datagram.
        servout = ""
        count = 2 if l4Type == "TCP" else 1
        poller = select.poll()
        poller.register(listening.stdout, select.POLLIN)
        while len(re.findall("/sec", servout)) < count and poller.poll(5000):
            data = os.read(listening.stdout.fileno(), 4096)
            if not data:
                break
            servout += data.decode(errors="replace")
            if l4Type == "TCP" and re.search("/sec", servout):
                break
        listening.send_signal(signal.SIGINT)
        listening.wait()
        result = [self._parseIperf(servout), self._parseIperf(cliout)]
        if l4Type == "UDP":
            result.insert(0, udpBw)
        output(f"*** Results: {result}\n")
        return result

    def _iperf3(self, client, server, l4Type, udpBw, fmt, seconds, port):
        listening = server.popen(f"iperf3 -s -1 --forceflush -p {port}")
        if not waitAccepted(server, server.IP(), port, timeout=10):
            raise Exception(f"Could not connect to iperf3 on port {port}")
        listening.wait() if listening.poll() is not None else None
        listening.terminate()
        listening.wait()
        listening = server.popen(f"iperf3 -s -1 --forceflush -p {port}")
        listening.stdout.readline()
        listening.stdout.readline()
        udp = f"-u -b {udpBw} " if l4Type == "UDP" else ""
        text = client.cmd(f"iperf3 -p {port} -t {seconds} -c {server.IP()} {udp}{f'-f {fmt} ' if fmt else ''}")
        listening.terminate()
        listening.wait()
        sent, received = ([line for line in text.splitlines() if line.rstrip().endswith(end)]
                          for end in ("sender", "receiver"))
        result = [self._parseIperf("\n".join(received)), self._parseIperf("\n".join(sent))]
        if l4Type == "UDP":
            result.insert(0, udpBw)
        output(f"*** Results: {result}\n")
        return result

    def runCpuLimitTest(self, cpu, duration=5):
        """Keep the processors of all hosts busy. Returns the percentage that each had, per second."""
        info(f"*** Testing CPU {cpu * 100:.0f}% bandwidth limit\n")
        count = math.ceil(self.numCores * cpu)
        for host in self.hosts:
            for _ in range(count):
                host.cmd("while true; do a=1; done &")
        results = []
        before = {host: (time.monotonic_ns(), host.cpu_time_ns()) for host in self.hosts}
        for _ in range(duration):
            time.sleep(1)
            for host in self.hosts:
                now, used = time.monotonic_ns(), host.cpu_time_ns()
                then, had = before[host]
                before[host] = (now, used)
                results.append(round(100 * (used - had) / (now - then) / self.numCores, 3))
        for host in self.hosts:
            host.cmd("kill -9 $(jobs -p)")
        output(f"*** Results: {results}\n")
        return results

    def configLinkStatus(self, src, dst, status):
        """Take the links between two nodes up or down."""
        if src not in self.nameToNode:
            error(f"src not in network: {src}\n")
        elif dst not in self.nameToNode:
            error(f"dst not in network: {dst}\n")
        else:
            connections = self[src].connectionsTo(self[dst])
            if not connections:
                error(f"src and dst not connected: {src} {dst}\n")
            for srcIntf, dstIntf in connections:
                for intf in (srcIntf, dstIntf):
                    result = intf.ifconfig(status)
                    if result:
                        error(f"link status change failed: {result}\n")

    def interact(self):
        self.start()
        result = CLI(self)
        self.stop()
        return result

    inited = False

    @classmethod
    def init(cls):
        cls.inited = True


class MininetWithControlNet(Mininet):
    """A network whose switches reach their controllers by a network of their own."""

    def __init__(self, *_args, **_kwargs):
        raise Exception("MininetWithControlNet: switches of fastpath have no namespaces; use Mininet")


