"""The node: its place in the lab, its shell, its programs and its interfaces."""

import os
import pty
import re
import select
import shlex
import shutil
import signal
from subprocess import PIPE, Popen

from mininet.lab import IPV6_HOSTS_MAX, NETWORK
from mininet.link import Intf
from mininet.log import debug, error, info, warn
from mininet.util import decode, encode, getincrementaldecoder

# Parameters of hosts, switches and controllers.
PARAMETERS = ("ip", "mac", "defaultRoute", "lo", "inNamespace", "privateDirs", "cpu", "cores", "sched", "period_us",
              "subnet", "localIntf", "flush", "isSwitch", "batch", "cls", "name", "dpid", "listenPort", "opts",
              "failMode", "datapath", "inband", "protocols", "reconnectms", "stp", "dpopts", "prio", "port",
              "command", "cargs", "cdir", "protocol")

# What a shell says of a program that it does not find.
_MISSING = re.compile(r"^bash: (\S+): command not found", re.M)

# What marks the interfaces of hosts that have their addresses of Mininet.
_MARK = "mininet"

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
        # The process with the namespace of the node, if a command came before its links.
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
        if self.is_of_database():
            return "bridge", {}
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
        if self.is_of_machine():
            # Its interfaces are made in the namespace of the machine, and end with the lab.
            return "host", {"attach": f"netns:/proc/{os.getpid()}/ns/net"}
        if self.bridge is None:
            return None, {}
        if self.bridge["listen"] is None:
            return "switch", {}
        keys = {"controller": self.bridge["controllers"]} if self.bridge["controllers"] else {}
        keys["fail_mode"] = self.bridge.get("fail_mode") or "standalone"
        return "openflow", {**keys, "listen": [f"ptcp:{self.bridge['listen']}:127.0.0.1"]}

    def is_of_machine(self):
        """Return whether the node is the machine itself, with links to the network."""
        if self.inNamespace or self.bridge is not None or self.is_of_database():
            return False
        return any(intf.link for intf in self.intfs.values())

    def is_of_database(self):
        """Return whether the links of the node end at ports for bridges of the database.

        Of a node on the machine that a script makes a bridge of by ovs-vsctl.
        """
        is_linked = any(intf.link for intf in self.intfs.values())
        return NETWORK.of_database is not None and not self.inNamespace and is_linked

    def has_interfaces(self):
        """Return whether the links of the node end at interfaces of a kernel."""
        return self.inNamespace or self.is_of_machine()

    def runs_programs(self):
        """Return whether the interfaces of the node are interfaces of a kernel."""
        return self.inNamespace or (NETWORK.is_up and self.is_of_machine())

    def configuration(self, network, mine):
        """Return a script that gives interfaces their names and addresses, or an empty text."""
        if self.is_of_machine():
            return self.machine_configuration(network, mine)
        if not self.inNamespace:
            return ""
        named = network.named.setdefault(self, {})
        new = [intf for intf in mine if intf not in named]
        if not new:
            return ""
        settings = "for f in arp_ignore arp_announce arp_filter; do " \
                   "echo 0 >/proc/sys/net/ipv4/conf/all/$f; done 2>/dev/null\n"
        if len(network.nodes) <= IPV6_HOSTS_MAX:
            settings += "for f in /proc/sys/net/ipv6/conf/*/disable_ipv6; do echo 0 >$f; done 2>/dev/null\n"
        blocks = [settings, "set -e\n"]
        for intf in new:
            name = named[intf] = intf.name
            lines = [f"addr flush dev {name}", f"link set {name} alias {_MARK}"]
            if intf.mac:
                lines += [f"link set {name} down", f"link set {name} address {intf.mac}"]
            lines.append(f"link set {name} {'up' if intf.is_up_ else 'down'}")
            if intf.ip:
                lines.append(f"addr add {intf.ip}/{intf.prefixLen} brd + dev {name}")
            batch = "\n".join(lines)
            # An interface whose link was moved may have stayed, with its addresses.
            blocks.append(f'[ "$(cat /sys/class/net/{name}/ifalias)" = {_MARK} ] || '
                          f"{{ ip -batch - <<'END'\n{batch}\nEND\nis_new=1; }}\n")
        if self.default_route:
            blocks.append(f'[ -z "$is_new" ] || ip route replace default {self.default_route}\n')
        return "".join(blocks)

    def machine_configuration(self, network, mine):
        """Return a script that gives new interfaces of the machine their addresses."""
        named = network.named.setdefault(self, {})
        new = [intf for intf in mine if intf not in named]
        lines = []
        for intf in new:
            # Nothing but what the script asks for stays on the machine.
            lines += [f"addr flush dev {intf.name}", f"route flush dev {intf.name}"]
            lines += [f"addr add {intf.ip}/{intf.prefixLen} brd + dev {intf.name}"] if intf.ip else []
            named[intf] = intf.name
            network.remarks.warn(f"{self.name}: inNamespace=False: {intf.name} is an interface of the machine until "
                                 "the network ends")
        return "ip -batch - <<'END'\n" + "\n".join(lines) + "\nEND\n" if lines else ""

    # The shell -------------------------------------------------------------------------------

    def shell_command(self):
        words = ["env", f"PS1={SENTINEL}", "bash", "--norc", "--noediting", "-is", f"mininet:{self.name}"]
        if not self.inNamespace and (self.is_of_machine() or self.lab_name not in NETWORK.hosts()):
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
        if NETWORK.is_stale and self.inNamespace or self.is_of_database():
            # Ports for bridges are interfaces of the machine, which commands name.
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
            NETWORK.look_at_names()
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
        if self.lab_name in NETWORK.hosts() and not self.is_of_machine():
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
        if not self.inNamespace and not self.intfs:
            raise Exception(f"{self.name}: inNamespace=False without a link: it is the machine, whose addresses stay")
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
