"""The programs that scripts call beside those of hosts: ovs-ofctl, ovs-vsctl, those of the OpenFlow
reference implementation, and tools of the machine that name a port of a switch.

Called as ``python -m fastpath.mininet.programs DIRECTORY PROGRAM ARGUMENTS…``; ``network.py`` describes the
files of the directory. What is not supported is written there too, so that the script ends
(``remarks.py``): its output alone would be discarded.
"""

from __future__ import annotations

import fcntl
import os
import subprocess
import sys
from typing import Callable, NoReturn, Optional

from .. import __version__
from . import database, reference, remarks
from .network import Network, Refused, Wrong, real_program
from .ofctl import ofctl
from .vsctl import vsctl

Run = Callable[[Network, list[str], list[str]], None]

# Options of ovs-ofctl. A batch of requests is a bundle here; ports are shown as numbers.
_OFCTL = ("--strict", "--bundle", "--no-stats", "--no-names")
# Options of ovs-vsctl with the commands that take them; None: all.
_VSCTL = {
    "--no-wait": None,
    "--no-syslog": None,
    "--may-exist": ("add-br", "add-port"),
    "--if-exists": ("del-br", "del-port", "get"),
    "--id": ("create", "get"),
    "--all": ("destroy",),
}
_PROTOCOLS = ("OpenFlow10", "OpenFlow11", "OpenFlow12", "OpenFlow13", "OpenFlow14", "OpenFlow15")
# Programs of Open vSwitch that a database answers.
_OF_DATABASE = ("ovs-vsctl", "ovs-ofctl", "ovsdb-client")
# Programs of Open vSwitch for which there is nothing here.
ABSENT = ("ovs-appctl", "ovs-dpctl", "ovsdb-client", "ovs-tcpdump")
# Programs of the machine that find no port of a switch.
TOOLS = ("tc", "ip", "ifconfig", "ethtool", "tcpdump", "tshark")


def main() -> None:
    directory, program, *arguments = sys.argv[1:]
    try:
        _run(directory, program, arguments)
    except (Refused, reference.Refused) as refused:
        text = f"{program}: {refused}" + (database.hint() if program == "ovs-vsctl" else "")
        remarks.write(directory, remarks.UNSUPPORTED, text)
        _end(text)
    except Wrong as wrong:
        text = f"{program}: {wrong}"
        remarks.write(directory, remarks.WARNING, text)
        _end(text)
    except Exception as error:
        # What was not foreseen is not done either: the script must not go on as if it were.
        text = f"{program} {' '.join(arguments)}: {type(error).__name__}: {error}"
        remarks.write(directory, remarks.UNSUPPORTED, text)
        _end(text)


def _end(text: str) -> NoReturn:
    # In one piece: the script may write its own line at the same moment.
    sys.stderr.write(text + "\n")
    sys.exit(1)


def _run(directory: str, program: str, arguments: list[str]) -> None:
    of_script = database.of_script(directory) if program in _OF_DATABASE else None
    if of_script is not None:
        database.run(directory, of_script, program, arguments)
    elif program == "ovs-ofctl":
        each(directory, program, options_of_ofctl(arguments), ofctl)
    elif program == "ovs-vsctl":
        each(directory, program, options_of_vsctl(arguments), vsctl)
    elif program in ("controller", "ovs-testcontroller"):
        reference.controller(arguments, real_program(program))
    elif program == "ofdatapath":
        reference.ofdatapath(arguments)
    elif program == "ofprotocol":
        reference.ofprotocol(arguments)
    elif program == "vconfig":
        reference.vconfig(arguments)
    elif program in TOOLS:
        tool(Network(directory, _warn(directory, program)), program, arguments)
    else:
        raise Refused(f"{' '.join(arguments)}: switches of fastpath have no such program; use ovs-ofctl or ovs-vsctl")


def _warn(directory: str, program: str) -> Callable[[str], None]:
    return lambda text: remarks.write(directory, remarks.WARNING, f"{program}: {text}")


def each(directory: str, program: str, commands: list[tuple[list[str], list[str]]], run: Run) -> None:
    """Run each command of a line, and keep what they change."""
    with open(os.path.join(directory, "lock"), "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        network = Network(directory, _warn(directory, program))
        try:
            for options, words in commands:
                run(network, options, words)
        except Wrong:
            # A line of ovs-vsctl is one transaction.
            if program != "ovs-vsctl":
                network.write()
            raise
        except SystemExit:
            network.write()
            raise
        network.write()


def options_of_ofctl(arguments: list[str]) -> list[tuple[list[str], list[str]]]:
    """Split a line into options and words. An option that is not known is refused."""
    options: list[str] = []
    words: list[str] = []
    given = iter(arguments)
    for word in given:
        name, _, value = word.partition("=")
        if name in ("-V", "--version"):
            _version("ovs-ofctl")
        elif name in ("-O", "--protocols"):
            _check_protocols(value or next(given, ""))
        elif word.startswith("-O"):
            _check_protocols(word[2:])
        elif name in ("-t", "--timeout"):
            _check_seconds(value or next(given, ""))
        elif name in _OFCTL:
            options.append(name)
        elif word.startswith("-") and word != "-" and name not in ("-v", "--verbose", "-m", "--more"):
            raise Refused(f"{word}: fastpath's ovs-ofctl has no such option")
        elif not word.startswith("-") or word == "-":
            words.append(word)
    if not words:
        raise Wrong("missing command name; use --help for help")
    return [(options, words)]


def _check_protocols(text: str) -> None:
    odd = [version for version in text.split(",") if version not in _PROTOCOLS]
    if odd:
        raise Wrong(f"{odd[0]}: unknown OpenFlow protocol version")


def options_of_vsctl(arguments: list[str]) -> list[tuple[list[str], list[str]]]:
    """Split a line at ``--`` into commands with their options."""
    found: list[tuple[list[str], list[str]]] = [([], [])]
    given = iter(arguments)
    for word in given:
        name, _, value = word.partition("=")
        options, words = found[-1]
        if word == "--":
            found.append(([], []))
        elif name in ("-V", "--version"):
            _version("ovs-vsctl")
        elif name in ("-t", "--timeout"):
            _check_seconds(value or next(given, ""))
        elif name in _VSCTL:
            options.append(word)
        elif word.startswith("-") and len(word) > 1 and not name.startswith(("-v", "--verbose")):
            raise Refused(f"{word}: fastpath's ovs-vsctl has no such option")
        elif not word.startswith("-"):
            words.append(word)
    commands = [(options, words) for options, words in found if words]
    if not commands:
        raise Wrong("missing command name (use --help for help)")
    for options, words in commands:
        for option in options:
            of = _VSCTL[option.partition("=")[0]]
            if of is not None and words[0] not in of:
                raise Wrong(f"'{words[0]}' command has no '{option}' option")
    return commands


def _check_seconds(text: str) -> None:
    if not text.isdigit():
        raise Wrong(f"value {text} on -t or --timeout is not at least 1")


def _version(program: str) -> None:
    print(f"{program} of fastpath {__version__}")
    sys.exit()


def tool(network: Network, program: str, words: list[str]) -> None:
    """Run a program of the machine on a port of a switch, which the machine does not have."""
    port = next((word for word in words if word in network.ports()), None)
    if port is None:
        raise Wrong("command not found")
    is_link = program == "ifconfig" or (program == "ip" and words[:1] in (["link"], ["l"]))
    states = [word for word in words if word in ("up", "down")]
    others = [word for word in words if word not in ("link", "l", "set", "dev", port, "up", "down")]
    is_rename = program == "ip" and is_link and not states and len(others) == 2 and others[0] == "name"
    if network.is_interface(port):
        _interface(network, program, words, (port, others[1]) if is_rename else None)
        return
    if is_link and len(states) == 1 and not others:
        network.set_link(port, states[0])
        return
    if is_rename:
        network.rename(port, others[1])
        return
    text = f"{' '.join(words)}: {port} is a port inside the engine, not an interface of the machine"
    if program == "tc" and not {"show", "ls", "list"} & set(words):
        raise Refused(f"{text}; use the parameters of TCLink, or intf.config(…) while the network runs")
    if program in ("tcpdump", "tshark"):
        network.warn(f"{text}; capture on a host, or by `fastpath capture`")
    elif program in ("ip", "ifconfig") and set(others) - {"show", "addr", "a", "-s", "-d"}:
        raise Refused(text)
    else:
        network.warn(text)
    real = real_program(program)
    if real is None:
        raise Wrong("command not found")
    os.execv(real, [program, *words])


def _interface(network: Network, program: str, words: list[str], names: Optional[tuple[str, str]]) -> None:
    """Run a program of the machine on a port that the machine has; `names`: the old and the new one."""
    real = real_program(program)
    if real is None:
        raise Wrong("command not found")
    if names is None:
        os.execv(real, [program, *words])
    old, new = names
    # Only an interface that is down takes another name in every kernel.
    for change in (["down"], ["name", new]):
        done = subprocess.run([real, "link", "set", "dev", old, *change], capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise Wrong(done.stderr.strip())
    subprocess.run([real, "link", "set", "dev", new, "up"], check=False)
    network.rename(old, new)


if __name__ == "__main__":
    main()
