"""Nodes: hosts, switches and controllers."""

import os
import pty
import re
import select
import shlex
import shutil
import signal
import socket
import tempfile
from subprocess import PIPE, Popen

from fastpath.mininet.network import free_port

from mininet.cpulimit import CpuLimit
from mininet.lab import IPV6_HOSTS_MAX, NETWORK
from mininet.link import Intf
from mininet.log import debug, error, info, warn
from mininet.util import decode, encode, errRun, getincrementaldecoder

# Parameters of hosts, switches and controllers.
PARAMETERS = ("ip", "mac", "defaultRoute", "lo", "inNamespace", "privateDirs", "cpu", "cores", "sched", "period_us",
              "subnet", "localIntf", "flush", "isSwitch", "batch", "cls", "name", "dpid", "listenPort", "opts",
              "failMode", "datapath", "inband", "protocols", "reconnectms", "stp", "dpopts", "prio", "port",
              "command", "cargs", "cdir", "protocol")

# What a shell says of a program that it does not find.
_MISSING = re.compile(r"^bash: (\S+): command not found", re.M)

# What a shell prints when it waits for a command.
SENTINEL = chr(127)


class Node:
    """A place where programs run, reached through a shell that is started when it is needed."""

    portBase = 0
    inToNode = {}
    outToNode = {}
    isSetup = False

    def __init__(self, name, inNamespace=True, **params):
        self.name = params.get("name", name)
        self.privateDirs = params.get("privateDirs", [])
        self.inNamespace = params.get("inNamespace", inNamespace)
        self.params = params
        self.intfs = {}
        self.ports = {}
        self.nameToIntf = {}
        self.execed = False
        self.waiting = False
        self.lastPid = None
        self.lastCmd = None
        self.readbuf = ""
        self._shell = None
        self._master = None
        self._slave = None
        self._popens = []
        self.default_route = None
        # The process whose network namespace is that of the node, if a command came before its links.
        self.early_pid = None
        # The bridge of ovs-vsctl that the interfaces of a node on the machine are ports of.
        self.bridge = None
        NETWORK.add_node(self)

    # The lab ---------------------------------------------------------------------------------

    @property
    def lab_name(self):
        return self.name

    def description(self):
        """Return the kind and the keys of the node in a description; None: not part of it."""
        if not self.inNamespace:
            return self.bridge_description()
        keys = {}
        if self.early_pid is not None:
            return "host", {"attach": f"netns:/proc/{self.early_pid}/ns/net"}
        private, binds = [], []
        for entry in self.privateDirs:
            if isinstance(entry, tuple):
                source = entry[1] % self.__dict__
                os.makedirs(source, exist_ok=True)
                os.makedirs(entry[0], exist_ok=True)
                binds.append(f"{source}:{entry[0]}")
            else:
                os.makedirs(entry, exist_ok=True)
                private.append(entry)
        if private:
            keys["private"] = private
        if binds:
            keys["binds"] = binds
        return "host", keys

    def bridge_description(self):
        """Return the description of a node on the machine: a switch if it is one by ovs-vsctl."""
        if self.bridge is None:
            return None, {}
        if self.bridge["listen"] is None:
            return "switch", {}
        keys = {"controller": self.bridge["controllers"]} if self.bridge["controllers"] else {}
        keys["fail_mode"] = self.bridge.get("fail_mode") or "standalone"
        return "openflow", {**keys, "listen": [f"ptcp:{self.bridge['listen']}:127.0.0.1"]}

    def check_linked(self):
        """Refuse links to the machine itself: its interfaces and rules are never changed."""
        if self.description()[0] is None:
            raise Exception(
                f"{self.name}: inNamespace=False joins the network to the machine itself, which fastpath does "
                "not do for Mininet scripts; leave it out, or write a spec with an [uplink]"
            )

    def runs_programs(self):
        """Return whether the interfaces of the node are interfaces of a kernel."""
        return self.inNamespace

    def configuration(self, network, mine):
        """Return a script that gives interfaces their names and addresses, or an empty text."""
        if not self.inNamespace:
            return ""
        named = network.named.setdefault(self, {})
        new = [intf for intf in mine if intf not in named]
        if not new:
            return ""
        # The lab numbers the interfaces of a host in the order of its links.
        first = len([intf for intf in named if intf in mine])
        lines = []
        for place, intf in enumerate(new, start=first):
            lines.append(f"link set eth{place} down")
            lines.append(f"link set eth{place} name fp-{place}")
        for place, intf in enumerate(new, start=first):
            name = intf.name
            lines.append(f"link set fp-{place} name {name}")
            lines.append(f"addr flush dev {name}")
            if intf.mac:
                lines.append(f"link set {name} address {intf.mac}")
            lines.append(f"link set {name} {'up' if intf.is_up_ else 'down'}")
            if intf.ip:
                lines.append(f"addr add {intf.ip}/{intf.prefixLen} brd + dev {name}")
            named[intf] = name
        if network.applied > 1:
            # An interface whose link was moved keeps its name and its addresses.
            kept = " && ".join(f"[ -e /sys/class/net/{intf.name} ]" for intf in new)
        else:
            kept = "false"
        if self.default_route:
            lines.append(f"route replace default {self.default_route}")
        batch = "\n".join(lines)
        settings = "for f in arp_ignore arp_announce arp_filter; do " \
                   "echo 0 >/proc/sys/net/ipv4/conf/all/$f; done 2>/dev/null; "
        if len(network.nodes) <= IPV6_HOSTS_MAX:
            settings += "for f in /proc/sys/net/ipv6/conf/*/disable_ipv6; do echo 0 >$f; done 2>/dev/null; "
        return f"{kept} || {{ {settings}ip -batch - <<'END'\n{batch}\nEND\n}}\n"

    # The shell -------------------------------------------------------------------------------

    def shell_command(self):
        words = ["env", f"PS1={SENTINEL}", "bash", "--norc", "--noediting", "-is", f"mininet:{self.name}"]
        if not self.inNamespace and self.lab_name not in (NETWORK.lab.hosts if NETWORK.lab else {}):
            return words
        if self.is_early():
            return ["unshare", "--net", "--", *words]
        NETWORK.ensure_up()
        return NETWORK.lab[self.lab_name].arguments(self.wrapped(words))

    def is_early(self):
        """Return whether a command comes before the node has links, such as in its constructor.

        The lab is not made yet. The command runs in a network namespace that the lab takes over.
        """
        return self.inNamespace and not NETWORK.is_up and not self.intfs and not self.privateDirs

    def wrapped(self, words):
        """Return the command line with what limits programs of this node."""
        return words

    def environment(self):
        return {**os.environ}

    def startShell(self, mnopts=None):
        if self._shell:
            error(f"{self.name}: shell is already running\n")
            return
        command = self.shell_command()
        early = self.is_early()
        self._master, self._slave = pty.openpty()
        self._shell = Popen(
            command, stdin=self._slave, stdout=self._slave, stderr=self._slave, close_fds=True,
            start_new_session=True, env=self.environment(),
        )
        self._stdin = os.fdopen(self._master, "r")
        self._stdout = self._stdin
        self.pollOut = select.poll()
        self.pollOut.register(self._stdout)
        self.decoder = getincrementaldecoder()
        Node.outToNode[self._stdout.fileno()] = self
        Node.inToNode[self._stdin.fileno()] = self
        self.execed = False
        self.readbuf = ""
        self.waiting = False
        while True:
            data = self.read(1024)
            if data[-1:] == SENTINEL:
                break
            self.pollOut.poll()
        self.waiting = False
        if early:
            self.early_pid = self._shell.pid
        self.write("unset HISTFILE; stty -echo; set +m" + ("; ip link set lo up\n" if early else "\n"))
        self.waiting = True
        self.waitOutput()

    @property
    def shell(self):
        self._started()
        return self._shell

    @property
    def stdout(self):
        self._started()
        return self._stdout

    @property
    def stdin(self):
        self._started()
        return self._stdin

    @property
    def pid(self):
        self._started()
        return self._shell.pid

    def _started(self):
        if self._shell is None:
            self.startShell()

    def mountPrivateDirs(self):
        """The lab mounts private directories."""

    def unmountPrivateDirs(self):
        """The lab unmounts private directories."""

    def cleanup(self):
        if self._shell:
            self._stdin.close()
            os.close(self._slave)
            self._shell.wait()
        self._shell = None

    def read(self, size=1024):
        count = len(self.readbuf)
        if count < size:
            try:
                data = os.read(self.stdout.fileno(), size - count)
            except OSError:
                # The shell has ended: Linux reports EIO at the terminal.
                data = b""
            if not data:
                raise EOFError(f"{self.name}: the shell has ended")
            self.readbuf += self.decoder.decode(data)
        if size >= len(self.readbuf):
            result, self.readbuf = self.readbuf, ""
        else:
            result, self.readbuf = self.readbuf[:size], self.readbuf[size:]
        return result

    def readline(self):
        self.readbuf += self.read(1024)
        if "\n" not in self.readbuf:
            return None
        pos = self.readbuf.find("\n")
        line, self.readbuf = self.readbuf[:pos], self.readbuf[pos + 1:]
        return line

    def write(self, data):
        os.write(self.stdin.fileno(), encode(data))

    def terminate(self):
        self.unmountPrivateDirs()
        if self._shell:
            if self._shell.poll() is None:
                os.killpg(self._shell.pid, signal.SIGHUP)
            self.cleanup()

    def stop(self, deleteIntfs=False):
        if deleteIntfs:
            self.deleteIntfs()
        self.terminate()

    def waitReadable(self, timeoutms=None):
        if not self.readbuf:
            return self.pollOut.poll(timeoutms)
        return None

    def sendCmd(self, *args, **kwargs):
        """Send a command to the shell; `monitor` or `waitOutput` reads what it prints."""
        self._started()
        if NETWORK.is_stale and self.inNamespace:
            NETWORK.ensure_up()
        assert not self.waiting, f"{self.name} is still running {self.lastCmd!r}"
        printPid = kwargs.get("printPid", False)
        if len(args) == 1 and isinstance(args[0], (list, tuple)):
            args = args[0]
        # A line end would be a second, empty command.
        cmd = " ".join(str(arg) for arg in args).rstrip("\n")
        if not re.search(r"\w", cmd):
            cmd = "echo -n"
        self.lastCmd = cmd
        if cmd and cmd[-1] == "&":
            separator = "&"
            cmd = cmd[:-1]
            if printPid:
                cmd += f" & echo '\001'$!'\n'; "
                separator = ""
            cmd += separator
        self.write(cmd + "\n")
        self.lastPid = None
        self.waiting = True

    def sendInt(self, intr=chr(3)):
        """Interrupt the running command."""
        debug(f"sendInt: writing chr({ord(intr)})\n")
        self.write(intr)

    def monitor(self, timeoutms=None, findPid=True):
        """Return the next output of a command; `waiting` becomes False at its end."""
        ready = self.waitReadable(timeoutms)
        if ready is not None and not ready:
            return ""
        data = self.read(1024)
        if findPid and chr(1) in data:
            found = re.search(chr(1) + r"(\d+)\r?\n", data)
            if found:
                self.lastPid = int(found.group(1))
                data = data[: found.start()] + data[found.end():]
        if data and data[-1] == SENTINEL:
            self.waiting = False
            data = data[:-1]
        elif SENTINEL in data:
            self.waiting = False
            data = data.replace(SENTINEL, "")
        return data

    def waitOutput(self, verbose=False, findPid=True):
        """Wait until a command has ended. Returns what it printed."""
        log = info if verbose else debug
        output = ""
        while self.waiting:
            data = self.monitor(findPid=findPid)
            output += data
            log(data)
        NETWORK.remarks.check()
        for name in _MISSING.findall(output):
            NETWORK.remarks.warn(f"{self.name}: there is no program {name}")
        if not self.inNamespace:
            NETWORK.look_at_bridges()
        return output.replace("\r\n", "\n") if output else output

    def cmd(self, *args, **kwargs):
        """Run a command in the shell. Returns what it prints."""
        verbose = kwargs.get("verbose", False)
        log = info if verbose else debug
        log(f"*** {self.name} : {args}\n")
        before = NETWORK.before_command() if self.inNamespace else None
        self.sendCmd(*args, **kwargs)
        output = self.waitOutput(verbose)
        NETWORK.after_command(before)
        return output

    def cmdPrint(self, *args):
        return self.cmd(*args, verbose=True)

    def popen(self, *args, **kwargs):
        """Start a program on this node, beside its shell."""
        defaults = {"stdout": PIPE, "stderr": PIPE}
        defaults.update(kwargs)
        shell = defaults.pop("shell", False)
        if len(args) == 1:
            if isinstance(args[0], list):
                cmd = [str(arg) for arg in args[0]]
            elif isinstance(args[0], str):
                cmd = [args[0]] if shell else shlex.split(args[0])
            else:
                raise Exception("popen() requires a string or list")
        else:
            cmd = [str(arg) for arg in args]
        if shell:
            cmd = [os.environ.get("SHELL", "/bin/sh"), "-c", " ".join(cmd)]
        elif shutil.which(cmd[0]) is None:
            NETWORK.remarks.warn(f"{self.name}: there is no program {cmd[0]}")
        if self.is_early():
            self._started()
            cmd = ["nsenter", f"--net=/proc/{self.early_pid}/ns/net", "--", *cmd]
        elif self.inNamespace:
            NETWORK.ensure_up()
        if NETWORK.lab and self.lab_name in NETWORK.lab.hosts:
            cmd = NETWORK.lab[self.lab_name].arguments(self.wrapped(cmd))
        defaults.setdefault("start_new_session", True)
        defaults.pop("preexec_fn", None)
        defaults.setdefault("env", self.environment())
        process = Popen(cmd, **defaults)
        self._popens.append(process)
        return process

    def pexec(self, *args, **kwargs):
        """Run a program. Returns its output, its errors and its exit code."""
        process = self.popen(*args, stdin=PIPE, stdout=PIPE, stderr=PIPE, **kwargs)
        out, err = process.communicate()
        return decode(out), decode(err), process.wait()

    # Interfaces ------------------------------------------------------------------------------

    def newPort(self):
        return max(self.ports.values()) + 1 if self.ports else self.portBase

    def addIntf(self, intf, port=None, moveIntfFn=None):
        if port is None:
            port = self.newPort()
        self.intfs[port] = intf
        self.ports[intf] = port
        self.nameToIntf[intf.name] = intf
        if NETWORK.is_up and intf.link is not None:
            NETWORK.is_stale = True

    def delIntf(self, intf):
        port = self.ports.get(intf)
        if port is not None:
            del self.intfs[port]
            del self.ports[intf]
            del self.nameToIntf[intf.name]

    def defaultIntf(self):
        ports = self.intfs.keys()
        if ports:
            return self.intfs[min(ports)]
        warn(f"*** defaultIntf: warning: {self.name} has no interfaces\n")
        return None

    def intf(self, intf=None):
        if not intf:
            return self.defaultIntf()
        return self.nameToIntf[intf] if isinstance(intf, str) else intf

    def connectionsTo(self, node):
        connections = []
        for intf in self.intfList():
            link = intf.link
            if link:
                node1, node2 = link.intf1.node, link.intf2.node
                if node1 == self and node2 == node:
                    connections.append((intf, link.intf2))
                elif node1 == node and node2 == self:
                    connections.append((intf, link.intf1))
        return connections

    def deleteIntfs(self, checkName=True):
        for intf in list(self.intfs.values()):
            if not checkName or self.name in intf.name:
                intf.delete()

    def setARP(self, ip, mac):
        return self.cmd("arp", "-s", ip, mac)

    def setHostRoute(self, ip, intf):
        return self.cmd("route add -host", ip, "dev", intf)

    def setDefaultRoute(self, intf=None):
        """Set the default route: by an interface, or `via ADDRESS` and the like."""
        if isinstance(intf, str) and " " in intf:
            params = intf
        else:
            params = f"dev {intf or self.intf()}"
        self.default_route = params
        if NETWORK.is_up:
            self.cmd("ip route del default")
            return self.cmd("ip route add default", params)
        return ""

    def setMAC(self, mac, intf=None):
        return self.intf(intf).setMAC(mac)

    def setIP(self, ip, prefixLen=8, intf=None, **kwargs):
        if not self.inNamespace:
            self.check_linked()
        return self.intf(intf).setIP(ip, prefixLen, **kwargs)

    def IP(self, intf=None):
        found = self.intf(intf)
        return found.IP() if found else None

    def MAC(self, intf=None):
        found = self.intf(intf)
        return found.MAC() if found else None

    def intfIsUp(self, intf=None):
        return self.intf(intf).isUp()

    setParam = Intf.setParam

    def config(self, mac=None, ip=None, defaultRoute=None, lo="up", **params):
        r = {}
        self._unknown(params)
        if self.intfs:
            self.setParam(r, "setMAC", mac=mac)
            self.setParam(r, "setIP", ip=ip)
        self.setParam(r, "setDefaultRoute", defaultRoute=defaultRoute)
        return r

    def _unknown(self, params):
        """Name parameters that nothing takes. Those of a class of the script are its own."""
        if type(self).__module__.startswith("mininet."):
            NETWORK.remarks.unknown(self.name, [name for name in params if name not in PARAMETERS], PARAMETERS)

    def configDefault(self, **moreParams):
        self.params.update(moreParams)
        self.config(**self.params)

    def linkTo(self, node, link=None):
        from mininet.link import Link

        return (link or Link)(self, node)

    def intfList(self):
        return [self.intfs[port] for port in sorted(self.intfs)]

    def intfNames(self):
        return [str(intf) for intf in self.intfList()]

    def __repr__(self):
        intfs = ",".join(f"{i.name}:{i.IP()}" for i in self.intfList())
        pid = self._shell.pid if self._shell else None
        return f"<{self.__class__.__name__} {self.name}: {intfs} pid={pid}> "

    def __str__(self):
        return self.name

    @classmethod
    def checkSetup(cls):
        """Nothing is to be set up."""

    @classmethod
    def setup(cls):
        """Nothing is to be set up."""


class Host(Node):
    """A host."""


class CPULimitedHost(Host):
    """A host whose programs have a share of the processors (cgroups(7))."""

    def __init__(self, name, sched="cfs", **kwargs):
        Host.__init__(self, name, **kwargs)
        if sched not in ("cfs", "rt", "none"):
            raise Exception(f"{name}: sched={sched!r} is not a scheduler; write 'cfs' or 'rt'")
        self.sched = sched
        self.period_us = kwargs.get("period_us", 100000)
        self.limit = CpuLimit(name, sched)

    inited = False

    @classmethod
    def init(cls):
        cls.inited = True

    def wrapped(self, words):
        return self.limit.wrapped(words)

    def cpu_time_ns(self):
        """Return the processor time that its programs have used."""
        return self.limit.used_ns()

    def setCPUFrac(self, f, sched=None):
        """Limit the programs to a fraction of all processors; -1 is no limit."""
        if f is None or f == 0:
            return
        self.limit.set_fraction(f, self.period_us)

    def setCPUs(self, cores, mems=0):
        cores = cores if isinstance(cores, (list, tuple)) else [cores]
        if cores:
            self.limit.cores = ",".join(map(str, cores))
            if self._shell:
                self.cmd(f"taskset -cp {self.limit.cores} $$")

    def config(self, cpu=-1, cores=None, **params):
        r = Node.config(self, **params)
        self.setParam(r, "setCPUFrac", cpu=cpu)
        self.setParam(r, "setCPUs", cores=cores)
        return r

    def cleanup(self):
        Host.cleanup(self)
        self.limit.remove()


class Switch(Node):
    """A switch of the network. Commands on it run on the machine."""

    portBase = 1
    dpidLen = 16
    batch = False

    def __init__(self, name, dpid=None, opts="", listenPort=None, **params):
        Node.__init__(self, name, **{**params, "inNamespace": False})
        self._unknown(params)
        self.dpid = self.defaultDpid(dpid)
        self.opts = opts
        self.listenPort = listenPort
        self.controllers = []
        self.is_started = False
        # The port of the machine at which the switch takes flows.
        self.listen = None
        self.controlIntf = Intf("lo", self, port=0)

    def defaultDpid(self, dpid=None):
        if dpid:
            dpid = dpid.replace(":", "")
            assert len(dpid) <= self.dpidLen and int(dpid, 16) >= 0
        else:
            nums = re.findall(r"\d+", self.name)
            if not nums:
                self.terminate()
                raise Exception(
                    "Unable to derive default datapath ID - please either specify a dpid or use a "
                    "canonical switch name such as s23."
                )
            dpid = hex(int(nums[0]))[2:]
        return "0" * (self.dpidLen - len(dpid)) + dpid

    def description(self):
        return "switch", {}

    def table(self):
        """Return what programs such as ovs-ofctl need to know of the flow table."""
        return {"listen": None, "why": f"{self.name} is a {type(self).__name__}, which has no flow table"}

    def runs_programs(self):
        return False

    def configuration(self, network, mine):
        return ""

    def shell_command(self):
        return ["env", f"PS1={SENTINEL}", "bash", "--norc", "--noediting", "-is", f"mininet:{self.name}"]

    def defaultIntf(self):
        return self.controlIntf

    def sendCmd(self, *cmd, **kwargs):
        NETWORK.programs()
        kwargs.setdefault("printPid", False)
        return Node.sendCmd(self, *cmd, **kwargs)

    def config(self, **_params):
        return {}

    def setIP(self, ip, prefixLen=8, intf=None, **kwargs):
        raise Exception(f"{self.name}: a switch of fastpath has no address on the machine; add a host for it")

    def start(self, controllers):
        """Take controllers. The lab comes up with the first command on a host, or with the network."""
        self.controllers = [controller for controller in controllers or [] if controller]
        self.is_started = True
        if NETWORK.is_up:
            NETWORK.programs()

    def connected(self):
        return True

    def attach(self, intf):
        """A port takes part as soon as its link exists."""

    def detach(self, intf):
        """A port leaves with its link."""

    def dpctl(self, *args):
        return self.cmd("ovs-ofctl", args[0], self.name, *args[1:])

    def vsctl(self, *args, **_kwargs):
        return self.cmd("ovs-vsctl", *args)

    def bridgeOpts(self):
        return ""

    def __repr__(self):
        intfs = ",".join(f"{i.name}:{i.IP()}" for i in self.intfList())
        return f"<{self.__class__.__name__} {self.name}: {intfs} pid={os.getpid()}> "


class FlowSwitch(Switch):
    """A switch with a flow table: of its controller, of ovs-ofctl, or of both."""

    failMode = "secure"

    def own_controllers(self):
        """Return the controllers given to `start`; before it, those of the network."""
        return self.controllers if self.is_started else NETWORK.controllers

    def remotes(self):
        """Return the controllers that the switch connects to."""
        controllers = self.own_controllers()
        # A remote controller at the address of one that makes switches learn is that one.
        known = [(node.ip, node.port) for node in NETWORK.controllers if not node.is_remote()]
        return [node for node in controllers if node.is_remote() and (node.ip, node.port) not in known]

    def learns(self):
        """Return whether it forwards by learned addresses what matches no flow of a script."""
        return not self.remotes() and (bool(self.own_controllers()) or self.failMode == "standalone")

    def description(self):
        if self.learns() and not NETWORK.has_flows(self):
            return "switch", {}
        if self.listen is None:
            self.listen = free_port()
        keys = {"dpid": f"0x{int(self.dpid, 16):x}", "listen": [f"ptcp:{self.listen}:127.0.0.1"]}
        remotes = self.remotes()
        if remotes:
            keys["controller"] = [f"tcp:{node.ip}:{node.port}" for node in remotes]
        keys["fail_mode"] = "standalone" if self.learns() else self.failMode
        return "openflow", keys

    def table(self):
        has_table = self.description()[0] == "openflow"
        if self in NETWORK.rings:
            why = (f"{self.name} is part of a ring of switches, whose loops are cut: it learns addresses and takes "
                   "no flows; use controller=None with failMode='secure', or a RemoteController")
        else:
            why = (f"{self.name} learns addresses and takes no flows, because the script speaks of none; run it "
                   "with `python -m fastpath.mininet --openflow SCRIPT`")
        return {
            "listen": self.listen if has_table else None,
            "why": why,
            "listen_port": self.listenPort,
            "fail_mode": self.failMode,
            "dials": bool(self.remotes()),
            "is_taught": self.learns() and bool(self.own_controllers()),
        }


class OVSSwitch(FlowSwitch):
    """Open vSwitch's class."""

    def __init__(self, name, failMode="secure", datapath="kernel", inband=False, protocols=None,
                 reconnectms=1000, stp=False, batch=False, **params):
        Switch.__init__(self, name, **params)
        if failMode not in ("secure", "standalone"):
            raise Exception(f"{name}: failMode={failMode!r}; write 'secure' or 'standalone'")
        self.failMode = failMode
        self.datapath = datapath
        self.protocols = protocols
        self.stp = stp
        if protocols and "OpenFlow13" not in str(protocols):
            NETWORK.remarks.warn(f"{name}: protocols={protocols}: it speaks OpenFlow 1.3")
        if inband:
            NETWORK.remarks.warn(f"{name}: inband has no effect; its controllers are outside the network")

    @classmethod
    def isOldOVS(cls):
        return False

    @classmethod
    def batchStartup(cls, switches, run=errRun):
        return switches

    @classmethod
    def batchShutdown(cls, switches, run=errRun):
        return switches

    def controllerUUIDs(self, update=False):
        return []


OVSKernelSwitch = OVSSwitch
KernelSwitch = OVSSwitch


class OVSBridge(OVSSwitch):
    """A learning switch without a controller."""

    def __init__(self, *args, **kwargs):
        kwargs.setdefault("failMode", "standalone")
        OVSSwitch.__init__(self, *args, **kwargs)

    def own_controllers(self):
        return []

    def start(self, controllers):
        OVSSwitch.start(self, controllers=[])


class UserSwitch(FlowSwitch):
    """The switch of the OpenFlow reference implementation: here as any other."""

    def __init__(self, name, dpopts="--no-slicing", **kwargs):
        Switch.__init__(self, name, **kwargs)


class IVSSwitch(FlowSwitch):
    """Indigo Virtual Switch: here as any other switch."""


class LinuxBridge(Switch):
    """A bridge; loops are cut when the network is built, as its spanning tree would."""

    def __init__(self, name, stp=False, prio=None, **kwargs):
        Switch.__init__(self, name, **kwargs)


# The commands of controllers that make switches learn addresses.
_TEACHERS = ("controller", "ovs-controller", "ovs-testcontroller", "test-controller")


class Controller(Node):
    """The reference controller, which makes switches learn addresses; they do that themselves.

    Another command, or a class of the script with a start of its own, is a controller that runs: the
    switches connect to it.
    """

    def __init__(self, name, inNamespace=False, command="controller", cargs="-v ptcp:%d", cdir=None,
                 ip="127.0.0.1", port=6653, protocol="tcp", **params):
        self.command = command
        self.cargs = cargs
        self.cdir = cdir
        self.ip, self.port, self.protocol = ip, port, protocol
        Node.__init__(self, name, inNamespace=False, **params)
        NETWORK.controllers.append(self)

    def description(self):
        return None, {}

    def is_remote(self):
        """Return whether switches connect to it."""
        return self.command not in _TEACHERS or not type(self).start.__module__.startswith("mininet.")

    def start(self):
        """Start the command, unless the switches learn addresses themselves."""
        if not self.is_remote():
            return
        if self.cdir is not None:
            self.cmd("cd", self.cdir)
        log = os.path.join(tempfile.gettempdir(), f"{self.name}.log")
        arguments = self.cargs % self.port if "%" in self.cargs else self.cargs
        self.cmd(f"{self.command} {arguments} 1>{log} 2>{log} &")
        self.execed = True

    def stop(self, *args, **kwargs):
        if self.execed and self._shell:
            self.cmd("kill $(jobs -p) 2>/dev/null; wait")
        self.terminate()

    def checkListening(self):
        """No port is needed."""

    def IP(self, intf=None):
        return self.ip

    @classmethod
    def isAvailable(cls):
        return True

    def __repr__(self):
        return f"<{self.__class__.__name__} {self.name}: {self.IP()}:{self.port} pid={os.getpid()}> "


class OVSController(Controller):
    """Open vSwitch's test controller."""

    def __init__(self, name, **kwargs):
        Controller.__init__(self, name, **kwargs)


class NOX(Controller):
    def __init__(self, name, *_noxArgs, **_kwargs):
        raise Exception(f"controller {name}: NOX is not here; start it yourself and use RemoteController")


class Ryu(Controller):
    def __init__(self, name, *_ryuArgs, **_kwargs):
        raise Exception(f"controller {name}: start Ryu (os-ken) yourself and use RemoteController")


class RemoteController(Controller):
    """A controller that runs outside: OpenFlow switches connect to it."""

    def __init__(self, name, ip="127.0.0.1", port=None, **kwargs):
        Controller.__init__(self, name, ip=ip, port=port or 6653, **kwargs)

    def is_remote(self):
        return True

    def isListening(self, ip, port):
        with socket.socket() as probe:
            probe.settimeout(1)
            return probe.connect_ex((ip, int(port))) == 0

    def checkListening(self):
        if not self.isListening(self.ip, self.port):
            warn(f"Unable to contact the remote controller at {self.ip}:{self.port}\n")

    def start(self):
        """The switches connect to it."""
        self.checkListening()


DefaultControllers = (Controller, OVSController)


def findController(controllers=DefaultControllers):
    return controllers[0]


def DefaultController(name, controllers=DefaultControllers, **kwargs):
    return controllers[0](name, **kwargs)


def NullController(*_args, **_kwargs):
    """No controller."""
    return None


