#!/usr/bin/env python3
"""Loads a `fastpath switch` with many rules over OpenFlow, changes single ones, deletes all, and holds it to:

- no rule is refused, and all are there at the end (aggregate statistics);
- memory is bounded: at most MEMORY_PER_RULE bytes a rule above what the switch takes without any;
- a change and its barrier take at most CHANGE_MAX in the median, of CHANGES changes in the full table;
- a delete of everything leaves no rule.

    cargo build --release
    python3 xtask/openflow-many-rules.py target/release/fastpath --rules 1000000 --kind mac

Exit code 1 if it does not hold. Times are of the machine as it is: run it where nothing else runs.
"""

import argparse
import socket
import statistics
import struct
import subprocess
import sys
import time

# Bytes of a rule at most. A rule is in the table, in the base, and while a base is made in another one.
MEMORY_PER_RULE = 2048
CHANGE_MAX = 1e-3
CHANGES = 200
# Between two changes, seconds.
PAUSE = 2e-3
# Rules sent between two barriers.
BATCH = 10_000
ANY = 0xffffffff
ADD, DELETE, DELETE_STRICT = 0, 3, 4
HELLO, ERROR, ECHO_REQUEST, ECHO_REPLY, FLOW_MOD, BARRIER = 0, 1, 2, 3, 14, 20
MULTIPART_REQUEST, MULTIPART_REPLY, AGGREGATE = 18, 19, 2


class Controller:
    def __init__(self, port):
        self.socket = socket.create_connection(("127.0.0.1", port))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.bytes = b""
        self.errors = 0
        self.send(HELLO, b"")

    def send(self, kind, body, xid=0):
        self.socket.sendall(message(kind, body, xid))

    def receive(self):
        while True:
            if len(self.bytes) >= 8:
                _, kind, length, xid = struct.unpack("!BBHI", self.bytes[:8])
                if len(self.bytes) >= length:
                    body, self.bytes = self.bytes[8:length], self.bytes[length:]
                    return kind, xid, body
            more = self.socket.recv(65536)
            if not more:
                sys.exit("the switch has closed the connection")
            self.bytes += more

    def wait_for(self, wanted):
        while True:
            kind, xid, body = self.receive()
            if kind == wanted:
                return body
            if kind == ERROR:
                self.errors += 1
            if kind == ECHO_REQUEST:
                self.send(ECHO_REPLY, body, xid)

    def barrier(self):
        self.send(BARRIER, b"")
        self.wait_for(BARRIER + 1)

    def flows(self):
        match = struct.pack("!HHI", 1, 4, 0)
        body = struct.pack("!HH4xB3xII4xQQ", AGGREGATE, 0, 0xff, ANY, ANY, 0, 0) + match
        self.send(MULTIPART_REQUEST, body)
        return struct.unpack("!I", self.wait_for(MULTIPART_REPLY)[24:28])[0]


def message(kind, body, xid=0):
    return struct.pack("!BBHI", 4, kind, 8 + len(body), xid) + body


def flow_mod(command, table, priority, match, instructions):
    head = struct.pack("!QQBBHHHIIIHxx", 0, 0, table, command, 0, 0, priority, ANY, ANY, ANY, 0)
    return message(FLOW_MOD, head + match + instructions)


def rule(kind, number, command=ADD):
    if kind == "mac":
        fields = struct.pack("!HBB", 0x8000, 3 << 1, 6) + struct.pack("!Q", 0x020000000000 + number)[2:]
    else:
        prefix = struct.pack("!HBBII", 0x8000, (12 << 1) | 1, 8, (number << 8) & ANY, 0xffffff00)
        fields = struct.pack("!HBBH", 0x8000, 5 << 1, 2, 0x0800) + prefix
    match = struct.pack("!HH", 1, 4 + len(fields)) + fields
    match += bytes(-len(match) % 8)
    output = struct.pack("!HHIHxxxxxx", 0, 16, 2, 0)
    apply = struct.pack("!HHxxxx", 4, 8 + len(output)) + output
    return flow_mod(command, 0, 10, match, apply)


def memory(process):
    """Mebibytes that a process has in memory, now and at most."""
    lines = dict(line.split(":", 1) for line in open(f"/proc/{process.pid}/status"))
    return [int(lines[key].split()[0]) / 1024 for key in ("VmRSS", "VmHWM")]


def run(process, arguments):
    first = process.stdout.readline()
    controller = Controller(int(first.split(":")[1]))
    controller.barrier()
    empty, _ = memory(process)
    start = time.monotonic()
    for begin in range(0, arguments.rules, BATCH):
        end = min(arguments.rules, begin + BATCH)
        controller.socket.sendall(b"".join(rule(arguments.kind, number) for number in range(begin, end)))
        controller.barrier()
        if end % (10 * BATCH) == 0:
            print(f"{end} rules after {time.monotonic() - start:.1f} s, {memory(process)[0]:.0f} MiB", flush=True)
    loaded = time.monotonic() - start
    flows = controller.flows()
    changes = []
    for number in range(CHANGES):
        time.sleep(PAUSE)
        is_new = number % 2 == 0
        which = arguments.rules + number if is_new else number * 7 % arguments.rules
        before = time.monotonic()
        controller.socket.sendall(rule(arguments.kind, which, ADD if is_new else DELETE_STRICT))
        controller.barrier()
        changes.append(time.monotonic() - before)
    _, most = memory(process)
    before = time.monotonic()
    controller.socket.sendall(flow_mod(DELETE, 0xff, 0, struct.pack("!HHI", 1, 4, 0), b""))
    controller.barrier()
    deleted = time.monotonic() - before
    left = controller.flows()
    # Structures that are done with go in the background.
    time.sleep(1)
    after, _ = memory(process)
    median = statistics.median(changes)
    print(f"{flows} rules in {loaded:.1f} s; {empty:.0f} MiB without, at most {most:.0f} MiB")
    print(f"change and barrier: {median * 1e6:.0f} us, at most {max(changes) * 1e6:.0f} us")
    print(f"deleting all: {deleted:.2f} s; {left} rules left, {after:.0f} MiB")
    wrong = []
    if controller.errors or flows != arguments.rules or left:
        wrong.append(f"{controller.errors} requests were refused, {flows} rules were there, {left} are left")
    if (most - empty) * 2**20 > MEMORY_PER_RULE * arguments.rules:
        wrong.append(f"a rule takes more than {MEMORY_PER_RULE} bytes")
    if median > CHANGE_MAX:
        wrong.append(f"a change takes more than {CHANGE_MAX * 1e3:.0f} ms")
    return wrong


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("fastpath", help="the program")
    parser.add_argument("--rules", type=int, default=1_000_000)
    parser.add_argument("--kind", choices=["mac", "cidr"], default="mac")
    arguments = parser.parse_args()
    words = ["switch", "--listen", "ptcp:0:127.0.0.1", "--port", "p1=memory", "--port", "p2=memory"]
    process = subprocess.Popen([arguments.fastpath, *words], stdout=subprocess.PIPE, text=True)
    try:
        wrong = run(process, arguments)
    finally:
        process.terminate()
        process.wait()
    for text in wrong:
        print(text)
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
