"""``python -m fastpath.mininet SCRIPT``, and ``fastpath-mn``."""

from __future__ import annotations

import ast
import os
import runpy
import sys
from pathlib import Path

from .database import OPTION as DATABASE
from .tables import OPTION

MODULES = str(Path(__file__).absolute().parent / "modules")
USAGE = """usage: python -m fastpath.mininet [--openflow] [--ovsdb] SCRIPT [ARGUMENTS…]
       python -m fastpath.mininet [--openflow] [--ovsdb] -m MODULE [ARGUMENTS…]
       fastpath-mn --topo tree,3,2 --test pingall

Runs a script written for Mininet 2.3; fastpath-mn is Mininet's command line mn.

--openflow: every switch has a flow table, also in a script that does not speak of flows. Such a
network cannot change while it runs.
--ovsdb, --no-ovsdb: whether the switches are bridges of a database of Open vSwitch, which ovs-vsctl
changes. Without it they are if the script calls ovs-vsctl and Open vSwitch is installed."""


def use_modules() -> None:
    """Make ``import mininet`` mean these modules, here and in programs that are started."""
    for name in [name for name in sys.modules if name.split(".")[0] == "mininet"]:
        del sys.modules[name]
    if MODULES not in sys.path:
        sys.path.insert(0, MODULES)
    others = [path for path in os.environ.get("PYTHONPATH", "").split(os.pathsep) if path]
    package = str(Path(MODULES).parent.parent.parent)
    os.environ["PYTHONPATH"] = os.pathsep.join([MODULES, package, *others])


def check_syntax(path: str) -> None:
    """End with a message if a script is not Python 3."""
    with open(path, "rb") as file:
        text = file.read()
    try:
        ast.parse(text, path)
    except SyntaxError as error:
        line = (error.text or "").strip()
        why = f"{error.msg}: {line}" if line else str(error.msg)
        python2 = any(mark in line for mark in ("print ", "except ", "exec ", "raise ", "`", "<>", "0"))
        hint = "; it looks like Python 2: run `2to3 -w` on it first" if python2 else ""
        sys.exit(f"fastpath: {path}:{error.lineno}: this is not Python 3 ({why}){hint}")


def main() -> None:
    arguments = sys.argv[1:]
    if not arguments or arguments[0] in ("-h", "--help"):
        print(USAGE)
        sys.exit(0 if arguments else 2)
    use_modules()
    options = {"--openflow": (OPTION, "1"), "--ovsdb": (DATABASE, "1"), "--no-ovsdb": (DATABASE, "0")}
    while arguments and arguments[0] in options:
        name, value = options[arguments.pop(0)]
        os.environ[name] = value
    if arguments[:1] == ["-m"]:
        if len(arguments) < 2:
            sys.exit(USAGE)
        sys.argv = arguments[1:]
        runpy.run_module(arguments[1], run_name="__main__", alter_sys=True)
        end()
        return
    if not arguments:
        sys.exit(USAGE)
    script = arguments[0]
    if not os.path.isfile(script):
        sys.exit(f"fastpath: {script}: no such file")
    check_syntax(script)
    sys.argv = arguments
    # After our modules: a directory `mininet` beside the script is not meant.
    sys.path.insert(1, os.path.dirname(os.path.abspath(script)))
    runpy.run_path(script, run_name="__main__")
    end()


def end() -> None:
    """Fail if the script went on after a command that was not carried out."""
    lab = sys.modules.get("mininet.lab")
    if lab is not None:
        lab.NETWORK.remarks.check()
        if lab.NETWORK.remarks.stopped:
            raise lab.NETWORK.remarks.stopped


def mn() -> None:
    """Run Mininet's command line."""
    use_modules()
    from .command_line import main as command_line

    command_line()


if __name__ == "__main__":
    main()
