#!/usr/bin/env python3
"""Runs os-ken's OpenFlow 1.3 switch test suite against `fastpath switch`, and writes docs/reference/openflow-conformance.md.

    xtask/openflow-conformance.py --fastpath target/release/fastpath --venv target/osken [--runs 3] [--shards 6]

The suite (991 cases) is os-ken's own, unchanged, run by os-ken's own tester. Both its target and its tester switch
are `fastpath switch`, joined by three veth pairs in a network namespace of their own that goes with its processes, so
nothing stays behind. Cases run in parallel shards; cases that need many packets per second run one at a time.

51 cases measure throughput, to 10 %, of packets that the tester sends one by one in Python, at up to 20 000 a second, in
steps of 10 ms that it does not make up for. Three measures keep these rates right; as root the script takes them: the
tester waits by select(2), as its library can be configured to (epoll waits whole milliseconds, up to one too long);
tester and switches run before other programs (SCHED_RR; the other cases with nice -10); and no core falls asleep, which in
a virtual machine takes up to half a millisecond to wake from. Other machines on the same host cannot be excluded.
A measurement made while they took more than 2 % of the time is repeated, up to six times, before it counts. With
--patience SECONDS a measurement starts when the machine has been undisturbed for two seconds, or after SECONDS.

A run takes about a quarter of an hour. With --keep FILE each verdict is saved as it arrives: an interrupted run
resumes with the missing cases.

Needs root (or `unshare -Urn`), ip(8), and a virtual environment with os-ken 3.1.1:

    python3 -m venv target/osken && target/osken/bin/pip install os-ken==3.1.1
"""

import argparse
import collections
import contextlib
import json
import os
import pathlib
import platform
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

TARGET, TESTER = "0000000000000001", "0000000000000002"
# Only one shard at a time sends more packets per second than this: the tester is a Python program.
HEAVY_PKTPS = 1000
# Rates that were measured while the hypervisor took more than this share of the time are measured again, up to TRIES times.
STOLEN_MAX, TRIES = 0.02, 6
EXPLANATIONS = pathlib.Path(__file__).with_name("openflow-conformance-notes.json")


def suite(venv):
    found = sorted(venv.glob("lib/*/site-packages/os_ken/tests/switch/of13"))
    if not found:
        sys.exit(f"{venv}: no os-ken here; see the head of this file")
    return found[0]


def cases(path):
    """The cases of a file: its description, then a list of dictionaries."""
    content = json.loads(path.read_text())
    head = [item for item in content if isinstance(item, str)]
    return head, [item for item in content if isinstance(item, dict)]


def packet_rate(case):
    rates = [0]
    for test in case["tests"]:
        packets = test.get("ingress")
        if isinstance(packets, dict) and "packets" in packets:
            rates.append(packets["packets"].get("pktps", 1000))
    return max(rates)


def weight(case):
    """Seconds that a case takes, about."""
    return sum(30 if packet_rate(case) else 1.2 if "table-miss" in str(test) else 0.1 for test in case["tests"])


def plan(suite_dir, shards, only, known):
    """The wanted cases without a known verdict, as FILE#INDEX, in batches of shards that run side by side: those that
    look at single packets, a few at a time those that count some packets a second, and one by one those that count many.
    With them, how many are wanted."""
    kinds, wanted = [[], [], []], 0
    for path in sorted(suite_dir.rglob("*.json")):
        name = str(path.relative_to(suite_dir))
        for index, case in enumerate(cases(path)[1]):
            if only and not re.search(only, f"{name}: {case['description']}"):
                continue
            wanted += 1
            if (name, case["description"]) not in known:
                rate = packet_rate(case)
                kinds[(rate > 0) + (rate > HEAVY_PKTPS)].append((weight(case), f"{name}#{index}"))
    single, some, many = kinds
    bins = [[0, []] for _ in range(shards)]
    for cost, name in sorted(single, reverse=True):
        least = min(bins)
        least[0] += cost
        least[1].append(name)
    batches = [[names for _, names in bins if names]]
    for timed, width in ((some, (shards + 1) // 2), (many, 1)):
        batches += [[[name] for _, name in timed[at:at + width]] for at in range(0, len(timed), width)]
    return batches, wanted


def stolen():
    """Time of all cores so far, and the share that other machines of the host had (proc_stat(5))."""
    times = [int(word) for word in pathlib.Path("/proc/stat").read_text().split("\n")[0].split()[1:9]]
    return sum(times), times[7]


def wait_for_quiet(patience):
    """Waits until a busy thread has its core for all but STOLEN_MAX / 2 of two seconds, at most `patience` seconds."""
    until = time.monotonic() + patience
    while time.monotonic() < until:
        began, worked = time.monotonic(), time.process_time()
        while time.monotonic() < began + 2:
            pass
        if time.process_time() - worked > (1 - STOLEN_MAX / 2) * (time.monotonic() - began):
            return
        time.sleep(5)


@contextlib.contextmanager
def awake():
    """Keeps every core busy with threads of the lowest priority (SCHED_IDLE)."""
    spin = "import os, sys; os.sched_setaffinity(0, {int(sys.argv[1])}); os.sched_setscheduler(0, os.SCHED_IDLE, " \
           "os.sched_param(0))\nwhile True: pass"
    spinners = [subprocess.Popen([sys.executable, "-c", spin, str(core)]) for core in os.sched_getaffinity(0)]
    try:
        yield
    finally:
        for spinner in spinners:
            spinner.kill()
            spinner.wait()


def chosen(args, names):
    source = suite(args.venv)
    return [cases(source / path)[1][int(index)] for path, index in (name.split("#") for name in names)]


def copy_cases(source, work, names):
    """Writes the named cases as files of the suite; keeps the head of each file."""
    chosen = collections.defaultdict(list)
    for name in names:
        path, index = name.split("#")
        chosen[path].append(int(index))
    for path, indices in chosen.items():
        head, found = cases(source / path)
        (work / path).parent.mkdir(parents=True, exist_ok=True)
        (work / path).write_text(json.dumps(head + [found[index] for index in sorted(indices)]))


def shard(args, names):
    """Inside a network namespace: the two switches, the tester, and its report on standard output."""
    try:
        if any(packet_rate(case) for case in chosen(args, names)):
            os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(1))
        else:
            os.nice(-10)
    except PermissionError:
        pass
    sh = lambda *words: subprocess.run(words, check=True, stdout=subprocess.DEVNULL)
    sh("ip", "link", "set", "lo", "up")
    for key in ("all", "default"):
        pathlib.Path(f"/proc/sys/net/ipv6/conf/{key}/disable_ipv6").write_text("1")
    for port in "123":
        sh("ip", "link", "add", f"target{port}", "type", "veth", "peer", "name", f"tester{port}")
        sh("ip", "link", "set", f"target{port}", "up")
        sh("ip", "link", "set", f"tester{port}", "up")
    work = pathlib.Path(tempfile.mkdtemp(prefix="conformance-"))
    children = []
    try:
        source = suite(args.venv)
        copy_cases(source, work, names)
        for role, dpid in (("target", TARGET), ("tester", TESTER)):
            ports = [word for port in "123" for word in ("--port", f"p{port}={role}{port}")]
            command = [args.fastpath, "switch", "--datapath-id", dpid, "--connect", "tcp:127.0.0.1:6653", *ports]
            children.append(
                subprocess.Popen(command + ["--packet-in-rate", "0"], stdout=subprocess.DEVNULL,
                                 stderr=subprocess.DEVNULL))
        command = [args.venv / "bin/osken-manager", "--ofp-tcp-listen-port", "6653", "--ofp-listen-host", "127.0.0.1",
                   "--test-switch-target", TARGET, "--test-switch-tester", TESTER, "--test-switch-dir", work,
                   source.parent / "tester.py"]
        tester = subprocess.Popen([str(word) for word in command], stdout=subprocess.DEVNULL,
                                  stderr=subprocess.PIPE, text=True, cwd=work,
                                  env={**os.environ, "EVENTLET_HUB": "selects"})
        children.append(tester)
        for line in tester.stderr:
            sys.stdout.write(line)
            sys.stdout.flush()
        tester.wait()
    finally:
        for child in children:
            child.terminate()
        for child in children:
            child.wait()
        shutil.rmtree(work)


def side_by_side(args, batch):
    """What the testers of a batch of shards say, each run in a network namespace."""
    shards = []
    try:
        for names in batch:
            inner = [sys.executable, __file__, "--fastpath", args.fastpath, "--venv", args.venv, "--inside", *names]
            out = tempfile.TemporaryFile("w+")
            shards.append((subprocess.Popen([str(word) for word in ["unshare", "-n", *inner]], stdout=out), out))
        for child, _ in shards:
            child.wait()
    finally:
        # Ended early, they end what they have started.
        for child, _ in shards:
            child.terminate()
            child.wait()
    texts = []
    for _, out in shards:
        out.seek(0)
        texts.append(out.read())
    return texts


def verdicts(text, by_title):
    """(file, case) to OK or what the tester says; the tester names files by their descriptions."""
    found, title, last = {}, None, None
    for line in text.splitlines():
        if line.startswith("--- Test report") or line.startswith("---  Test end"):
            break
        result = re.match(r"    (\S.*?)\s+(OK|ERROR)$", line)
        if result and title:
            last = (title, result[1])
            found.setdefault(last, result[2])
        elif line.startswith("        ") and last and found.get(last) == "ERROR":
            found[last] = line.strip()
        elif line.strip() in by_title:
            title = by_title[line.strip()]
    return found


def titles(suite_dir):
    """Files by their descriptions, which is how the tester names them."""
    found = {}
    for path in suite_dir.rglob("*.json"):
        head, _ = cases(path)
        name = str(path.relative_to(suite_dir))
        found[head[0] if head else path.stem] = name
    return found


def run(args, suite_dir, found, keep):
    """Adds the verdicts that are missing to `found`; says how many cases there are."""
    batches, wanted = plan(suite_dir, args.shards, args.only, found)
    by_title = titles(suite_dir)
    began, again = time.time(), 0
    for number, batch in enumerate(batches):
        for attempt in range(TRIES):
            # The first batch counts no rates.
            if number > 0:
                wait_for_quiet(args.patience)
            (all_before, stolen_before), said = stolen(), {}
            with awake() if number > 0 else contextlib.nullcontext():
                texts = side_by_side(args, batch)
            for names, text in zip(batch, texts):
                said.update({(name, case): "no verdict" for name, case in map(key_of(suite_dir), names)})
                said.update(verdicts(text, by_title))
            all_after, stolen_after = stolen()
            is_quiet = stolen_after - stolen_before <= STOLEN_MAX * (all_after - all_before)
            if number == 0 or is_quiet or all(verdict == "OK" for verdict in said.values()):
                break
            again += attempt + 1 < TRIES
        found.update(said)
        keep()
    print(f"{sum(v == 'OK' for v in found.values())} passed so far; {time.time() - began:.0f} s; {again} times something was "
          "measured again, for the machine was not ours", flush=True)
    return wanted


def key_of(suite_dir):
    """From FILE#INDEX to (file, case)."""
    def key(name):
        path, index = name.split("#")
        return path, cases(suite_dir / path)[1][int(index)]["description"]
    return key


def kept(path):
    """The runs of a file of verdicts."""
    if not path or not path.exists():
        return []
    return [{tuple(key.split("\t")): said for key, said in run.items()} for run in json.loads(path.read_text())]


def keeper(path, runs):
    def keep():
        if path:
            path.write_text(json.dumps([{"\t".join(key): said for key, said in run.items()} for run in runs], indent=1))
    return keep


def is_refused(verdict):
    """Whether the switch answered with an error message."""
    return "OFPErrorMsg" in verdict


def python(venv):
    """The Python of a virtual environment."""
    code = "import platform as p; print(p.python_implementation(), p.python_version())"
    return subprocess.run([venv / "bin/python", "-c", code], check=True, capture_output=True, text=True).stdout.strip()


REFUSED = """
## What the switch refuses

- **Queues.** Ports have no queues, and lists of queues are empty. A request for a queue gets
  `OFPQOFC_BAD_QUEUE`; a request for the queues of a port that does not exist gets `OFPQOFC_BAD_PORT`.
  The set-queue action is accepted and changes nothing, because a port has one way out. Rates belong to
  links: set the rate of the link behind the port.
- **Buffers.** Packet-ins carry the whole packet, whatever length was requested. A buffer id gets
  `OFPBRC_BUFFER_UNKNOWN`.
- **Table features.** A request for more than a table has gets `OFPTFFC_BAD_ARGUMENT`. Metadata bits that
  do not exist get `OFPTFFC_BAD_METADATA`. A request for less is accepted and the table stays as it is,
  which §7.3.5.5.1 allows. Names are stored. Tables that a request does not name stay as they are.
- **Fragments.** Any handling of fragments other than as packets gets `OFPSCFC_BAD_FLAGS`.
- **Auxiliary connections.** The switch opens none, which §6.3.8 leaves to the switch. It sends auxiliary
  id 0 on every connection. os-ken and Faucet take a second connection with the same datapath id for a
  reconnection of the switch, and forget the first. A controller that dials the switch twice has two main
  connections.
"""


def report(args, runs, expected):
    notes = json.loads(EXPLANATIONS.read_text()) if EXPLANATIONS.exists() else {}
    lines = [
        "# OpenFlow conformance",
        "",
        "Results of os-ken 3.1.1's OpenFlow 1.3 switch tests. The tests are unchanged and run by os-ken's own tester.",
        "Target and tester switch are both `fastpath switch`. Generated by `xtask/openflow-conformance.py`; do not edit.",
        "",
        f"Machine: {os.cpu_count()} CPUs, {platform.machine()}, Linux {platform.release().split('-')[0]}; the tester ran on",
        f"{python(args.venv)}. The 51 cases of meters and groups each measure throughput for half a minute, to",
        f"10 %. A measurement is repeated (up to {TRIES} times) while other machines of the host take more than {STOLEN_MAX:.0%}",
        "of the time.",
        "",
        *([f"Only cases that match `{args.only}` were run; the suite has 991 cases.", ""] if args.only else []),
        "| run | cases | passed | failed | refused | without verdict |",
        "|---|---|---|---|---|---|",
    ]
    for number, found in enumerate(runs, 1):
        counts = collections.Counter(
            "passed" if v == "OK" else "none" if v == "no verdict" else "refused" if is_refused(v) else "failed"
            for v in found.values())
        lines.append(f"| {number} | {expected} | {counts['passed']} | {counts['failed']} | {counts['refused']} "
                     f"| {counts['none']} |")
    keys = sorted({key for found in runs for key in found})
    flipped = [key for key in keys if len({found.get(key, 'none') == 'OK' for found in runs}) > 1]
    lines += ["", f"Cases whose verdict differs between runs: {len(flipped)}.", ""]
    groups = collections.defaultdict(lambda: [0, 0])
    for (name, case) in keys:
        groups[name.split("/")[0]][0] += 1
        groups[name.split("/")[0]][1] += runs[-1].get((name, case)) == "OK"
    lines += ["| group | cases | passed in the last run |", "|---|---|---|"]
    lines += [f"| {name} | {all_} | {passed} |" for name, (all_, passed) in sorted(groups.items())]
    lines += ["", "## Cases that do not pass in every run", ""]
    for key in keys:
        said = [found.get(key, "no verdict") for found in runs]
        if any(one != "OK" for one in said):
            name, case = key
            why = next((note for pattern, note in notes.items() if re.search(pattern, f"{name}: {case}")), None)
            lines.append(f"- `{name}`: {case}")
            lines.append(f"  - tester: {'; '.join(sorted(set(said)))}")
            lines.append(f"  - {why or 'not explained yet'}")
    lines.append(REFUSED)
    pathlib.Path(args.output).write_text("\n".join(lines).rstrip() + "\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--fastpath", type=pathlib.Path, default=pathlib.Path("target/release/fastpath"))
    parser.add_argument("--venv", type=pathlib.Path, default=pathlib.Path("target/osken"))
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--shards", type=int, default=6)
    parser.add_argument("--keep", type=pathlib.Path, help="keep verdicts in this file; go on with those that are missing")
    parser.add_argument("--patience", type=float, default=0, help="seconds that a rate may wait for a quiet machine")
    parser.add_argument("--only", help="cases whose 'FILE: DESCRIPTION' matches this expression")
    parser.add_argument("--output", default="docs/reference/openflow-conformance.md")
    parser.add_argument("--inside", nargs="+", help=argparse.SUPPRESS)
    args = parser.parse_args()
    args.fastpath, args.venv = args.fastpath.absolute(), args.venv.absolute()
    # Ended by a signal it removes what it made, too.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("ended"))
    if args.inside:
        return shard(args, args.inside)
    suite_dir = suite(args.venv)
    runs = kept(args.keep)
    for number in range(args.runs):
        if number == len(runs):
            runs.append({})
        expected = run(args, suite_dir, runs[number], keeper(args.keep, runs))
        for key, verdict in sorted(runs[number].items()):
            if verdict != "OK":
                print("  ".join(key), "\n    ", verdict[:300], flush=True)
    report(args, runs, expected)


if __name__ == "__main__":
    main()
