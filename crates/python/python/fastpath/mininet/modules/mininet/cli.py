"""Mininet's command line over a running network."""

import atexit
import errno
import os
import re
import select
import sys
import time
from cmd import Cmd
from subprocess import call

from fastpath.mininet.remarks import Stopped

from mininet.log import error, info, output
from mininet.term import makeTerms, runX11
from mininet.util import dumpNodeConnections, dumpPorts, quietRun


class CLI(Cmd):
    """Reads commands until `exit`."""

    prompt = "mininet> "

    def __init__(self, mininet, stdin=sys.stdin, script=None, **kwargs):
        self.mn = mininet
        self.locals = {"net": mininet}
        self.stdin = stdin
        self.inPoller = select.poll()
        self.inPoller.register(stdin)
        self.inputFile = script
        Cmd.__init__(self, stdin=stdin, **kwargs)
        info("*** Starting CLI:\n")
        if self.inputFile:
            self.do_source(self.inputFile)
            return
        self.initReadline()
        self.run()

    readlineInited = False

    @classmethod
    def initReadline(cls):
        if cls.readlineInited:
            return
        cls.readlineInited = True
        try:
            import readline
        except ImportError:
            return
        history = os.path.expanduser("~/.mininet_history")
        if os.path.isfile(history):
            try:
                readline.read_history_file(history)
                readline.set_history_length(1000)
            except OSError:
                return
        atexit.register(lambda: _keep(readline, history))

    def onecmd(self, line):
        """A command that is not carried out ends a script, but not a person's session."""
        try:
            return Cmd.onecmd(self, line)
        except Stopped as stopped:
            if not self.isatty():
                raise
            error(f"*** {stopped}\n")
            return None

    def run(self):
        while True:
            try:
                for node in self.mn.values():
                    while node.waiting:
                        info("stopping", node, "\n")
                        node.sendInt()
                        node.waitOutput()
                if self.isatty():
                    quietRun("stty echo sane intr ^C")
                self.cmdloop()
                break
            except KeyboardInterrupt:
                output("\nInterrupt\n")

    def emptyline(self):
        """An empty line repeats nothing."""

    def getLocals(self):
        self.locals.update(self.mn)
        return self.locals

    helpStr = (
        "You may also send a command to a node using:\n  <node> command {args}\nFor example:\n"
        "  mininet> h1 ifconfig\n\nThe interpreter automatically substitutes IP addresses\n"
        "for node names when a node is the first arg, so commands like\n  mininet> h2 ping h3\n"
        "should work.\n"
    )

    def do_help(self, line):
        """Describe the available commands."""
        Cmd.do_help(self, line)
        if line == "":
            output(self.helpStr)

    def do_nodes(self, _line):
        """List all nodes."""
        output("available nodes are: \n" + " ".join(sorted(node.name for node in self.mn.values())) + "\n")

    def do_ports(self, _line):
        """Show the ports of each switch."""
        dumpPorts(self.mn.switches)

    def do_net(self, _line):
        """List network connections."""
        dumpNodeConnections(self.mn.values())

    def do_sh(self, line):
        """Run a command on the machine."""
        assert self
        call(line, shell=True)

    def do_py(self, line):
        """Evaluate a Python expression."""
        try:
            result = eval(line, globals(), self.getLocals())
            if result is None:
                return
            output((result if isinstance(result, str) else repr(result)) + "\n")
        except Exception as e:
            output(str(e) + "\n")

    def do_px(self, line):
        """Execute a Python statement."""
        try:
            exec(line, globals(), self.getLocals())
        except Exception as e:
            output(str(e) + "\n")

    def do_pingall(self, line):
        """Ping between all hosts."""
        self.mn.pingAll(line)

    def do_pingpair(self, _line):
        """Ping between the first two hosts."""
        self.mn.pingPair()

    def do_pingallfull(self, _line):
        """Ping between all hosts, with times."""
        self.mn.pingAllFull()

    def do_pingpairfull(self, _line):
        """Ping between the first two hosts, with times."""
        self.mn.pingPairFull()

    def _hosts(self, names):
        hosts = []
        for name in names:
            if name not in self.mn:
                error(f"node '{name}' not in network\n")
                return None
            hosts.append(self.mn[name])
        return hosts

    def do_iperf(self, line):
        """Measure TCP throughput between two hosts: iperf node1 node2."""
        args = line.split()
        hosts = self._hosts(args)
        if not args:
            self.mn.iperf()
        elif len(args) != 2:
            error("invalid number of args: iperf src dst\n")
        elif hosts:
            self.mn.iperf(hosts)

    def do_iperfudp(self, line):
        """Measure UDP throughput between two hosts: iperfudp bw node1 node2."""
        args = line.split()
        hosts = self._hosts(args[1:])
        if not args:
            self.mn.iperf(l4Type="UDP")
        elif len(args) != 3:
            error("invalid number of args: iperfudp bw src dst\nbw examples: 10M\n")
        elif hosts:
            self.mn.iperf(hosts, l4Type="UDP", udpBw=args[0])

    def do_intfs(self, _line):
        """List interfaces."""
        for node in self.mn.values():
            output(f"{node.name}: {','.join(node.intfNames())}\n")

    def do_dump(self, _line):
        """Dump node info."""
        for node in self.mn.values():
            output(f"{node!r}\n")

    def do_link(self, line):
        """Take links between two nodes up or down: link end1 end2 [up down]."""
        args = line.split()
        if len(args) != 3:
            error("invalid number of args: link end1 end2 [up down]\n")
        elif args[2] not in ("up", "down"):
            error("invalid type: link end1 end2 [up down]\n")
        else:
            self.mn.configLinkStatus(*args)

    def do_xterm(self, line, term="xterm"):
        """Open terminals on nodes: xterm node1 node2 ..."""
        args = line.split()
        if not args:
            error(f"usage: {term} node1 node2 ...\n")
        else:
            nodes = self._hosts(args)
            if nodes:
                self.mn.terms += makeTerms(nodes, term=term)

    def do_x(self, line):
        """Run an X11 program: x node cmd."""
        args = line.split()
        if not args:
            error("usage: x node [cmd args]...\n")
        else:
            runX11(self.mn[args[0]], " ".join(args[1:]) or "xterm")

    def do_gterm(self, line):
        """Open gnome-terminals on nodes."""
        self.do_xterm(line, term="gnome-terminal")

    def do_exit(self, _line):
        """Exit."""
        return "exited by user command"

    def do_quit(self, line):
        """Exit."""
        return self.do_exit(line)

    def do_EOF(self, line):
        """Exit."""
        output("\n")
        return self.do_exit(line)

    def isatty(self):
        try:
            return os.isatty(self.stdin.fileno())
        except (OSError, ValueError):
            return False

    def do_noecho(self, line):
        """Run a command without echo: noecho node command."""
        if self.isatty():
            quietRun("stty -echo")
        self.default(line)
        if self.isatty():
            quietRun("stty echo")

    def do_source(self, line):
        """Read commands from a file."""
        args = line.split()
        if len(args) != 1:
            error("usage: source <file>\n")
            return
        try:
            with open(args[0]) as file:
                for line in file:
                    line = line.rstrip("\n")
                    self.onecmd(line)
        except OSError:
            error(f"error reading file {args[0]}\n")

    def do_dpctl(self, line):
        """Run ovs-ofctl on all switches: dpctl command [args]."""
        args = line.split()
        if not args:
            error("usage: dpctl command [arg1] [arg2] ...\n")
            return
        for sw in self.mn.switches:
            output(f"*** {sw.name} " + "-" * 72 + "\n")
            output(sw.dpctl(*args))

    def do_time(self, line):
        """Measure the time of a command."""
        start = time.time()
        self.onecmd(line)
        self.stdout.write(f"*** Elapsed time: {time.time() - start:0.6f} secs\n")

    def do_links(self, _line):
        """Report on links."""
        for link in self.mn.links:
            output(link, link.status(), "\n")

    def do_switch(self, line):
        """Start or stop a switch: its links go up or down."""
        args = line.split()
        if len(args) != 2:
            error("invalid number of args: switch <switch name> {start, stop}\n")
            return
        name, action = args
        if name not in self.mn or self.mn[name] not in self.mn.switches:
            error(f"invalid switch: {name}\n")
        elif action not in ("start", "stop"):
            error("invalid command: switch <switch name> {start, stop}\n")
        else:
            for intf in self.mn[name].intfList():
                intf.ifconfig("up" if action == "start" else "down")

    def do_wait(self, _line):
        """Wait until switches have connected."""
        self.mn.waitConnected()

    def default(self, line):
        """Send a command to a node; names of nodes in it become addresses."""
        first, args, line = self.parseline(line)
        if first in self.mn:
            if not args:
                error(f"*** Please enter a command for node: {first} <cmd>\n")
                return
            node = self.mn[first]
            node.sendCmd(" ".join(self.address(arg) for arg in args.split(" ")))
            self.waitForNode(node)
        else:
            error(f"*** Unknown command: {line}\n")

    def address(self, word):
        """Return the address of a node, or the word itself."""
        # A switch is named in commands such as ovs-ofctl.
        if word not in self.mn or not self.mn[word].intfs or hasattr(self.mn[word], "dpid"):
            return word
        node = self.mn[word]
        # A node whose shell is busy is not asked.
        return (None if node.waiting or not node.inNamespace else node.defaultIntf().updateIP()) or node.IP() or word

    def waitForNode(self, node):
        """Copy what a node prints to the terminal, and what is typed to the node."""
        nodePoller = select.poll()
        nodePoller.register(node.stdout)
        bothPoller = select.poll()
        bothPoller.register(self.stdin, select.POLLIN)
        bothPoller.register(node.stdout, select.POLLIN)
        if self.isatty():
            quietRun("stty -icanon min 1")
        while True:
            try:
                bothPoller.poll()
                if self.isatty() and isReadable(self.inPoller):
                    node.write(self.stdin.read(1))
                if isReadable(nodePoller):
                    output(node.monitor())
                if not node.waiting:
                    break
            except KeyboardInterrupt:
                node.sendInt()
            except OSError as e:
                if e.errno != errno.EINTR:
                    raise

    def precmd(self, line):
        """A comment ends a line."""
        return re.split(r"(?:^|\s)#", line)[0]


def _keep(readline, history):
    try:
        readline.write_history_file(history)
    except OSError:
        # A home directory that cannot be written keeps no history.
        return


def isReadable(poller):
    for _fd, mask in poller.poll(0):
        if mask & select.POLLIN:
            return True
    return False
