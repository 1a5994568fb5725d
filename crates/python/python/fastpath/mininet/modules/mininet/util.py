"""Small functions of Mininet: commands, addresses, names, iteration."""

import codecs
import os
import re
import sys
from functools import partial
from select import POLLHUP, POLLIN, poll
from subprocess import PIPE, STDOUT, Popen, call, check_call
from time import sleep

from mininet.lab import NETWORK
from mininet.log import debug, error, info, output

Python3 = True
BaseString = str
Encoding = "utf-8"
IPERF_PORT = 5001
isShellBuiltinNames = (
    "alias bg bind break builtin caller case cd command compgen continue declare dirs disown echo "
    "enable eval exec exit export false fc fg for getopts hash help history if jobs kill let local "
    "logout popd printf pushd pwd read readonly return select set shift shopt source suspend test "
    "time times trap true type typeset ulimit umask unalias unset until wait while"
).split()


def decode(buf):
    return buf if isinstance(buf, str) else buf.decode(Encoding, errors="replace")


def encode(buf):
    return buf if isinstance(buf, bytes) else buf.encode(Encoding)


getincrementaldecoder = codecs.getincrementaldecoder(Encoding)

try:
    import pexpect as _pexpect

    class Pexpect:
        """pexpect with text in place of bytes."""

        @staticmethod
        def spawn(*args, **kwargs):
            kwargs.setdefault("encoding", Encoding)
            return _pexpect.spawn(*args, **kwargs)

        def __getattr__(self, name):
            return getattr(_pexpect, name)

    pexpect = Pexpect()
except ImportError:
    pexpect = None


def checkRun(cmd):
    return check_call(cmd.split(" "))


def oldQuietRun(*cmd):
    return quietRun(list(cmd) if len(cmd) > 1 else cmd[0])


def errRun(*cmd, **kwargs):
    """Run a command. Returns its output, its errors and its exit code."""
    stderr = kwargs.get("stderr", PIPE)
    shell = kwargs.get("shell", False)
    echo = kwargs.get("echo", False)
    if len(cmd) == 1:
        cmd = cmd[0]
        if isinstance(cmd, str) and not shell:
            cmd = cmd.split(" ")
    if echo:
        info(cmd, "\n")
    popen = Popen(cmd, stdout=PIPE, stderr=stderr, shell=shell)
    out, err = popen.communicate()
    NETWORK.remarks.check()
    return decode(out), decode(err or b""), popen.returncode


def errFail(*cmd, **kwargs):
    """Run a command as `errRun` does; raise if it fails."""
    out, err, ret = errRun(*cmd, **kwargs)
    if ret:
        raise Exception(f"errFail: {cmd} failed with return code {ret}: {err}")
    return out, err, ret


def quietRun(cmd, **kwargs):
    """Run a command. Returns its output and errors."""
    return errRun(cmd, stderr=STDOUT, **kwargs)[0]


def which(cmd, **kwargs):
    out, _, ret = errRun("which " + cmd, **kwargs)
    return out.rstrip() if ret == 0 else None


def isShellBuiltin(cmd):
    return (cmd[: cmd.index(" ")] if " " in cmd else cmd) in isShellBuiltinNames


def dumpNodeConnections(nodes):
    """Print what each node is connected to."""
    for node in nodes:
        output(node.name)
        for intf in node.intfList():
            output(f" {intf}:")
            if intf.link:
                ends = [intf.link.intf1, intf.link.intf2]
                ends.remove(intf)
                output(ends[0])
            else:
                output(" ")
        output("\n")


def dumpNetConnections(net):
    dumpNodeConnections(net.controllers + net.switches + net.hosts)


def dumpPorts(switches):
    for switch in switches:
        output(f"{switch.name} ")
        for intf in switch.intfList():
            output(f"{intf}:{switch.ports[intf]} ")
        output("\n")


def ipStr(w, x=None, y=None, z=None):
    """Format an address: of a 32-bit number, or of four bytes."""
    if x is None:
        return ".".join(str(w >> shift & 0xFF) for shift in (24, 16, 8, 0))
    return f"{w}.{x}.{y}.{z}"


def ipNum(w, x, y, z):
    return (w << 24) | (x << 16) | (y << 8) | z


def ipAdd(i, prefixLen=8, ipBaseNum=0x0A000000):
    """Return the i-th address of a subnet, as text."""
    imax = 0xFFFFFFFF >> prefixLen
    assert i <= imax, "Not enough IP addresses in the subnet"
    mask = 0xFFFFFFFF ^ imax
    return ipStr((ipBaseNum & mask) + i)


def ipParse(ip):
    parts = [int(part) for part in ip.split(".")]
    return ipNum(*(parts + [0] * (4 - len(parts))))


def netParse(ipstr):
    """Parse `address/length`. Returns a 32-bit number and the length."""
    prefixLen = 0
    if "/" in ipstr:
        ipstr, length = ipstr.split("/")
        prefixLen = int(length)
    elif len(ipstr.split(".")) in (1, 2, 3):
        prefixLen = 8 * len(ipstr.split("."))
    return ipParse(ipstr), prefixLen


def _colonHex(val, bytecount):
    return ":".join(f"{val >> (8 * i) & 0xFF:02x}" for i in reversed(range(bytecount)))


def macColonHex(mac):
    return _colonHex(mac, 6)


def checkInt(s):
    try:
        return int(s)
    except ValueError:
        return None


def checkFloat(s):
    try:
        return float(s)
    except ValueError:
        return None


def makeNumeric(s):
    """Return text as a number, if it is one."""
    for convert in (checkInt, checkFloat):
        number = convert(s)
        if number is not None:
            return number
    return s


def irange(start, end):
    """Return the numbers from start to end, both included."""
    return range(start, end + 1)


def natural(text):
    """Return a key that sorts h2 before h10."""
    parts = re.split(r"(\d+)", str(text))
    return [int(part) if part.isdigit() else part for part in parts]


def naturalSeq(t):
    return [natural(x) for x in t] if not isinstance(t, str) else natural(t)


def numCores():
    return os.cpu_count() or 1


def fixLimits():
    """The limits of a lab are those of the program fastpath, which raises them itself."""


def mountCgroups(_cgcontrol="cpu cpuacct cpuset"):
    return "cgroup2"


def ensureRoot():
    if os.getuid() != 0:
        error("*** fastpath-mn: run as root, as Mininet needs\n")
        sys.exit(1)


def moveIntf(intf, dstNode, printError=True):
    return moveIntfNoRetry(intf, dstNode, printError)


def moveIntfNoRetry(_intf, _dstNode, printError=False):
    raise Exception("moveIntf: interfaces of a lab are not moved between namespaces; add a link, or for an interface "
                    "of the machine write Intf(NAME, node=SWITCH)")


def makeIntfPair(intf1, intf2, *_args, **_kwargs):
    raise Exception(f"makeIntfPair: {intf1} and {intf2} are made by Link(node1, node2); use it instead")


def retry(retries, delaySecs, fn, *args, **keywords):
    tries = 0
    while not fn(*args, **keywords) and tries < retries:
        sleep(delaySecs)
        tries += 1
    if tries >= retries:
        error(f"*** gave up after {retries} retries\n")
        sys.exit(1)


def pmonitor(popens, timeoutms=500, readline=True, readmax=1024):
    """Yield pairs of a key of `popens` and its next output, until all programs have ended."""
    poller = poll()
    fdToHost = {}
    for host, popen in popens.items():
        fd = popen.stdout.fileno()
        fdToHost[fd] = host
        poller.register(fd, POLLIN | POLLHUP)
        if not readline:
            os.set_blocking(fd, False)
    while popens:
        fds = poller.poll(timeoutms)
        if not fds:
            yield None, ""
            continue
        for fd, event in fds:
            host = fdToHost[fd]
            popen = popens.get(host)
            if popen is None:
                continue
            if event & POLLIN:
                if readline:
                    yield host, decode(popen.stdout.readline())
                else:
                    yield host, decode(popen.stdout.read(readmax) or b"")
            elif event & POLLHUP:
                # What was written before the end is read first.
                line = decode(popen.stdout.readline())
                if line:
                    yield host, line
                else:
                    poller.unregister(fd)
                    del popens[host]


def waitListening(client=None, server="127.0.0.1", port=80, timeout=None):
    """Wait until a server accepts connections. Returns whether it does."""
    # Scripts such as Mininet's cpu.py read what iperf 2 reports on this connection. Newer versions
    # report one that has sent something.
    return waitAccepted(client, server, port, timeout, greeting="-----" if port == IPERF_PORT else "")


def waitAccepted(client, server, port, timeout, greeting=""):
    """Connect until a server accepts, and send a greeting. Returns whether it does."""
    runCmd = client.cmd if client else partial(quietRun, shell=True)
    host = server if isinstance(server, str) else server.IP()
    passed = 0.0
    opened = f"exec 3<>/dev/tcp/{host}/{port}" + (f"; printf -- {greeting} >&3" if greeting else "")
    test = f"timeout 1 bash -c '{opened}' 2>/dev/null && echo accepted"
    while "accepted" not in runCmd(test):
        if timeout is not None and passed >= timeout:
            error(f"could not connect to {server} on port {port}\n")
            return False
        debug("waiting for", server, "to listen on port", port, "\n")
        sleep(0.5)
        passed += 0.5
    return True


def splitArgs(argstr):
    """Split `name,arg,key=value`. Returns name, arguments and keywords."""
    parts = argstr.split(",")
    args = [makeNumeric(s) for s in parts[1:] if "=" not in s]
    kwargs = {k: makeNumeric(v) for k, v in (s.split("=", 1) for s in parts[1:] if "=" in s)}
    return parts[0], args, kwargs


def customClass(classes, argStr):
    """Return a class with the arguments of the text as defaults."""
    name, args, kwargs = splitArgs(argStr)
    cls = classes.get(name)
    if not cls:
        raise Exception(f"error: {name} is unknown - please specify one of {list(classes)}")
    return specialClass(cls, prepend=args, defaults=kwargs) if args or kwargs else cls


def custom(cls, **params):
    """Return a constructor of a class with parameters."""

    def customized(*args, **kwargs):
        return cls(*args, **{**params, **kwargs})

    customized.__name__ = f"custom({cls.__name__},{params})"
    return customized


def specialClass(cls, prepend=None, append=None, defaults=None, override=None):
    """Return a subclass whose constructor has further arguments."""
    prepend, append = prepend or [], append or []
    defaults, override = defaults or {}, override or {}

    class CustomClass(cls):
        def __init__(self, *args, **params):
            newparams = dict(defaults)
            newparams.update(params)
            newparams.update(override)
            cls.__init__(self, *(list(args) + list(prepend) + list(append)), **newparams)

    CustomClass.__name__ = f"{cls.__name__}{defaults}"
    return CustomClass


def buildTopo(topos, topoStr):
    """Make a topology of `name,arguments`."""
    topo, args, kwargs = splitArgs(topoStr)
    if topo not in topos:
        raise Exception(f"invalid topo name {topo} (have: {', '.join(topos)})")
    return topos[topo](*args, **kwargs)


def runCmd(cmd):
    return call(cmd, shell=True)
