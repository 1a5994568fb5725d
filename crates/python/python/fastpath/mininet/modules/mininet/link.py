"""Interfaces and links: the parameters of Mininet as values of links of fastpath."""

import re

from mininet.lab import NETWORK
from mininet.log import debug, error, info
from mininet.util import makeNumeric, specialClass

# What tc-netem(8) and Mininet take when no queue length is given.
DEFAULT_QUEUE_PACKETS = 1000


# Parameters of TCIntf, and of every interface.
TC_PARAMETERS = ("bw", "delay", "jitter", "loss", "latency_ms", "enable_ecn", "enable_red", "max_queue_size",
                 "speedup", "use_hfsc", "use_htb", "use_tbf", "gro", "txo", "rxo")
_INTF_PARAMETERS = ("ip", "mac", "ifconfig", "up", "port", "intfName1", "intfName2", "addr1", "addr2", "params1",
                    "params2", "cls")


class Intf:
    """An interface of a node."""

    def __init__(self, name, node=None, port=None, link=None, mac=None, **params):
        self.node = node
        self.name = name
        self.link = link
        self.mac = mac
        self.ip, self.prefixLen = None, None
        self.is_up_ = True
        self.settings = {}
        # The node of the lab that stands for an interface of the machine.
        self.lab_end = None
        if self.name == "lo":
            self.ip = "127.0.0.1"
            self.prefixLen = 8
        self.params = params
        if node:
            is_of_machine = link is None and name != "lo"
            if is_of_machine and not hasattr(node, "dpid"):
                raise Exception(
                    f"Intf({name}, {node}): fastpath does not move an interface of the machine into a host, because a "
                    "host that ends would take it along; give it to a switch that the host has a link to"
                )
            node.addIntf(self, port=port)
            if is_of_machine and node.is_of_database():
                # A bridge of the database takes it as it is.
                is_of_machine = False
                NETWORK.follow_bridges()
            elif is_of_machine:
                from mininet._machine import joined

                self.link = joined(self)
        self.config_ready = False
        self.config(**params)
        if node and is_of_machine:
            NETWORK.add_link(self.link)

    def cmd(self, *args, **kwargs):
        return self.node.cmd(*args, **kwargs)

    @property
    def end_name(self):
        """The node of the lab at this end of the link."""
        return self.lab_end or self.node.lab_name

    def ifconfig(self, *args):
        words = [word for arg in args for word in str(arg).split()]
        if words in (["up"], ["down"]):
            self.is_up_ = words == ["up"]
            self.apply_state()
        if not self.node.runs_programs():
            return ""
        return self.cmd("ifconfig", self.name, *args)

    def apply_state(self):
        """Take the link down while either end is down, as a cable without carrier."""
        if self.link and NETWORK.is_up and self.link.is_emulated():
            up = self.link.intf1.is_up_ and self.link.intf2.is_up_
            NETWORK.lab.link(self.link.lab_name).set(state="up" if up else "down")

    def setIP(self, ipstr, prefixLen=None):
        if "/" in ipstr:
            self.ip, length = ipstr.split("/")
            self.prefixLen = int(length)
        else:
            if prefixLen is None:
                raise Exception(f"No prefix length set for IP address {ipstr}")
            self.ip, self.prefixLen = ipstr, prefixLen
        if NETWORK.is_up and self.node.runs_programs():
            return self.cmd(f"ip addr flush dev {self.name}; ip addr add {self.ip}/{self.prefixLen} "
                            f"brd + dev {self.name}; ip link set {self.name} up")
        return ""

    def setMAC(self, macstr):
        self.mac = macstr
        if NETWORK.is_up and self.node.runs_programs():
            return self.cmd(f"ip link set {self.name} down; ip link set {self.name} address {macstr}; "
                            f"ip link set {self.name} up")
        return ""

    _ipMatchRegex = re.compile(r"\d+\.\d+\.\d+\.\d+")
    _macMatchRegex = re.compile(r"..:..:..:..:..:..")

    def updateIP(self):
        found = re.search(r"inet (\d+\.\d+\.\d+\.\d+)/(\d+)", self.cmd(f"ip -4 addr show dev {self.name}"))
        self.ip = found.group(1) if found else None
        return self.ip

    def updateMAC(self):
        if self.node.runs_programs():
            found = self._macMatchRegex.findall(self.cmd(f"ip link show dev {self.name}"))
            self.mac = found[0] if found else None
        return self.mac

    def updateAddr(self):
        return self.updateIP(), self.updateMAC()

    def IP(self):
        return self.ip

    def MAC(self):
        if self.mac is None and self.name != "lo" and NETWORK.is_up and self.node.runs_programs():
            self.updateMAC()
        return self.mac

    def isUp(self, setUp=False):
        if setUp:
            self.ifconfig("up")
            return True
        return self.is_up_

    def rename(self, newname):
        self.name, old = newname, self.name
        if NETWORK.is_up and self.node.runs_programs():
            return self.cmd(f"ip link set {old} down; ip link set {old} name {newname}; "
                            f"ip link set {newname} up")
        return ""

    def setParam(self, results, method, **param):
        name, value = list(param.items())[0]
        f = getattr(self, method, None)
        if not f or value is None:
            return None
        if isinstance(value, list):
            result = f(*value)
        elif isinstance(value, dict):
            result = f(**value)
        else:
            result = f(value)
        results[name] = result
        return result

    def config(self, mac=None, ip=None, ifconfig=None, up=True, **params):
        r = {}
        self._unknown(params)
        self.setParam(r, "setMAC", mac=mac)
        self.setParam(r, "setIP", ip=ip)
        if up and NETWORK.is_up and not self.is_up_:
            self.setParam(r, "isUp", up=up)
        if ifconfig is not None:
            self.setParam(r, "ifconfig", ifconfig=ifconfig)
        return r

    def _unknown(self, params):
        """Name parameters that nothing takes. Those of a class of the script are its own."""
        if not type(self).__module__.startswith("mininet."):
            return
        shaped = [name for name in params if name in TC_PARAMETERS]
        # TCIntf itself has taken its parameters; all shapers are alike.
        if shaped and not isinstance(self, TCIntf):
            NETWORK.remarks.warn(f"{self.name}: {', '.join(shaped)}: {type(self).__name__} has no such values; "
                                 "write link=TCLink")
        others = [name for name in params if name not in shaped]
        known = [*_INTF_PARAMETERS, *(TC_PARAMETERS if isinstance(self, TCIntf) else ())]
        NETWORK.remarks.unknown(self.name, others, known)

    def values(self):
        """Return the values of the direction that begins here, as keys of a link of fastpath."""
        return dict(self.settings)

    def delete(self):
        if self.link:
            NETWORK.remove_link(self.link)
        self.node.delIntf(self)
        self.link = None

    def status(self):
        return "OK" if self.link and self.link.intf1.node and self.link.intf2.node else "missing"

    def __repr__(self):
        return f"<{self.__class__.__name__} {self.name}>"

    def __str__(self):
        return self.name


class TCIntf(Intf):
    """An interface with a rate, a delay, loss and a queue, which are those of its egress."""

    def config(
        self,
        bw=None,
        delay=None,
        jitter=None,
        loss=None,
        gro=False,
        txo=True,
        rxo=True,
        speedup=0,
        use_hfsc=False,
        use_tbf=False,
        latency_ms=None,
        enable_ecn=False,
        enable_red=False,
        max_queue_size=None,
        **params,
    ):
        result = Intf.config(self, **params)
        if bw is not None and bw < 0:
            error(f"Bandwidth {bw} is outside supported range 0..inf - ignoring\n")
            bw = None
        if loss is not None and not 0 <= loss <= 100:
            error(f"Bad loss percentage {loss}%\n")
            loss = None
        self._without_effect(bw, delay, jitter, loss, max_queue_size, latency_ms, enable_ecn or enable_red, speedup)
        given = (bw, delay, loss, max_queue_size)
        shown = [(f"{bw}Mbit", bw), (f"{delay} delay", delay), (f"{jitter} jitter", jitter),
                 (f"{loss}% loss", loss)]
        words = [text for text, value in shown if value is not None]
        if words:
            info(f"({' '.join(words)}) ")
        if all(value is None for value in given) and not self.settings:
            return result
        self.settings = tc_values(bw, delay, jitter, loss, max_queue_size, latency_ms, enable_ecn, enable_red)
        debug(f"{self}: {self.settings}\n")
        if NETWORK.is_up and self.link and self.link.is_emulated():
            NETWORK.lab.link(self.link.lab_name).set(from_=self.end_name, **self.settings)
        return result


    def _without_effect(self, bw, delay, jitter, loss, queue, latency_ms, red, speedup):
        """Name the parameters that need another one, as in Mininet."""
        lone = [("jitter", jitter, "delay", delay), ("max_queue_size", queue, "bw", bw),
                ("latency_ms", latency_ms, "bw", bw), ("enable_ecn or enable_red", red or None, "bw", bw)]
        for name, value, needed, other in lone:
            if value is not None and other is None:
                NETWORK.remarks.warn(f"{self.name}: {name} has no effect without {needed}")
        if speedup:
            NETWORK.remarks.warn(f"{self.name}: speedup has no effect; the rate is bw")


def tc_values(bw, delay, jitter, loss, queue, latency_ms, enable_ecn, enable_red):
    """Return the values of a direction for the parameters of TCIntf; what is absent is off."""
    values = {
        "rate": "unlimited" if not bw else f"{round(float(bw) * 1e6)}bit",
        "delay": quantity(delay) if delay is not None else "0ms",
        "loss": f"{loss or 0}%",
    }
    if jitter is not None:
        # tc-netem(8): without a distribution, uniform between delay - jitter and delay + jitter.
        values["jitter"] = {"law": "uniform", "half_width": quantity(jitter)}
    packets = queue if queue is not None else DEFAULT_QUEUE_PACKETS
    if bw and latency_ms is not None:
        values["queue"] = f"{latency_ms}ms"
    elif bw and (enable_red or enable_ecn):
        # The thresholds that Mininet passes to tc-red(8), in bytes.
        red = {"kind": "red", "limit": "1000000B", "min": "30000B", "max": "35000B",
               "mean_packet": "1500B", "probability": "100%"}
        values["queue"] = {**red, **({"ecn": True} if enable_ecn else {})}
    elif bw:
        values["queue"] = f"{packets}p"
    return values


def quantity(time):
    """Return a time of tc(8) as one of fastpath: a plain number is in microseconds."""
    text = str(time).strip()
    number = makeNumeric(text)
    if not isinstance(number, str):
        return f"{text}us"
    for ours, theirs in (("us", ("usecs", "usec", "us")), ("ms", ("msecs", "msec", "ms")),
                         ("s", ("secs", "sec", "s"))):
        for suffix in theirs:
            head = text[: -len(suffix)]
            if text.endswith(suffix) and not isinstance(makeNumeric(head), str):
                return head + ours
    return text


class Link:
    """A link between two nodes."""

    def __init__(
        self,
        node1,
        node2,
        port1=None,
        port2=None,
        intfName1=None,
        intfName2=None,
        addr1=None,
        addr2=None,
        intf=Intf,
        cls1=None,
        cls2=None,
        params1=None,
        params2=None,
        fast=True,
        **params,
    ):
        params1 = dict(params1) if params1 else {}
        params2 = params1 if params2 is params1 else dict(params2) if params2 else {}
        for end in (params1, params2):
            for key, value in params.items():
                end.setdefault(key, value)
        if port1 is not None:
            params1["port"] = port1
        if port2 is not None:
            params2["port"] = port2
        if "port" not in params1:
            params1["port"] = node1.newPort()
        if "port" not in params2:
            params2["port"] = node2.newPort() + (node1 is node2)
        intfName1 = intfName1 or self.intfName(node1, params1["port"])
        intfName2 = intfName2 or self.intfName(node2, params2["port"])
        self.fast = fast
        self.lab_name = f"{intfName1}-{intfName2}" if "-eth" in intfName1 else f"{node1.name}-{intfName1}"
        taken = {link.lab_name for link in NETWORK.links}
        if self.lab_name in taken:
            self.lab_name = next(f"{self.lab_name}.{n}" for n in range(2, 1 << 20)
                                 if f"{self.lab_name}.{n}" not in taken)
        self.intf1, self.intf2 = None, None
        self.intf1 = (cls1 or intf)(name=intfName1, node=node1, link=self, mac=addr1, **params1)
        self.intf2 = (cls2 or intf)(name=intfName2, node=node2, link=self, mac=addr2, **params2)
        NETWORK.add_link(self)

    @staticmethod
    def intfName(node, n):
        return f"{node.name}-eth{n}"

    def is_emulated(self):
        """Return whether the link is part of the lab."""
        ends = [intf and intf.node for intf in (self.intf1, self.intf2)]
        return all(end is not None and end.description()[0] is not None for end in ends)

    def delete(self):
        NETWORK.remove_link(self)
        for intf in (self.intf1, self.intf2):
            if intf and intf.link:
                intf.node.delIntf(intf)
                intf.link = None

    def stop(self):
        self.delete()

    def status(self):
        return f"({self.intf1.status()} {self.intf2.status()})"

    def __str__(self):
        return f"{self.intf1}<->{self.intf2}"


class OVSIntf(Intf):
    """A port of a switch."""


class OVSLink(Link):
    """A link between switches; all links are alike here."""


class TCLink(Link):
    """A link whose ends have a rate, a delay, loss and a queue."""

    def __init__(self, *args, **kwargs):
        kwargs.setdefault("cls1", TCIntf)
        kwargs.setdefault("cls2", TCIntf)
        Link.__init__(self, *args, **kwargs)


class TCULink(TCLink):
    """TCLink without offloads; frames have their true lengths here anyway."""


TCIntfCustom = specialClass(TCIntf)
