"""Experiments: the same table here, on the workers of a Dask cluster, and when one of them dies."""

import json
import os
import shutil
import subprocess
import sys

import pytest
from conftest import frame, needs_lab, write_pcap

import fastpath as fp
from fastpath import experiments
from fastpath.program import program

VIRTUAL = """
spec = 'net.toml'
seeds = 10
[matrix]
'link.a-b.a_to_b.loss' = ['none', '20%']
'link.a-b.trace' = ['slow.csv', 'fast.csv']
[replay]
in = { a = 'in.pcap' }
out = ['b']
[metric.delay]
delay = true
reduce = 'max'
[metric.arrived]
frames = 'delivered'
[[expect]]
metric = 'arrived'
at_least = '10'
"""
# What a step prints is that of its seed, so the table is the same on every machine.
LAB = """
spec = 'net.toml'
seeds = 4
[[step]]
name = 'count'
run = './count.sh {seed}'
on = 'a'
[metric.counted]
of = 'count'
pattern = 'counted ([0-9]+)'
"""


@pytest.fixture
def bench(tmp_path, monkeypatch):
    """A directory with experiments, which is the directory of work."""
    place = tmp_path / "bench"
    place.mkdir()
    monkeypatch.chdir(place)
    (place / "net.toml").write_text("[host.a]\n[host.b]\n[[link]]\nbetween = ['a', 'b']\ndelay = '1ms'\n")
    (place / "slow.csv").write_text("time_s,rate_mbps\n0,4\n1,2\n")
    (place / "fast.csv").write_text("time_s,rate_mbps\n0,40\n1,20\n")
    (place / "count.sh").write_text("#!/bin/sh\necho counted $1$1\n")
    (place / "count.sh").chmod(0o755)
    write_pcap(place / "in.pcap", [(number * 500_000, frame(1000, number)) for number in range(100)])
    (place / "virtual.toml").write_text(VIRTUAL)
    (place / "lab.toml").write_text(LAB)
    return place


def by_program(name, output):
    done = subprocess.run([program(), "experiment", name, "-o", output], capture_output=True, check=False)
    assert done.returncode == 0, done.stderr.decode()
    return (output / "results.csv").read_bytes()


def test_an_experiment_is_that_of_the_program_and_is_resumed(bench, tmp_path):
    said = []
    half = fp.experiment("virtual.toml", output=tmp_path / "ours", shard="1/2")
    assert len(half) == 20 and half.findings["of"] == 40
    whole = fp.experiment("virtual.toml", output=tmp_path / "ours", progress=lambda *at: said.append(at))
    assert whole.is_good and len(whole) == 40 and said[-1] == (20, 20) and not whole.left_out
    assert whole.csv == by_program("virtual.toml", tmp_path / "its")
    table = whole.to_dict()
    rows = zip(table["link.a-b.a_to_b.loss"], table["link.a-b.trace"], table["arrived"])
    arrived = {(loss, trace): count for loss, trace, count in rows}
    assert arrived["none", "fast.csv"] == 100 > arrived["20%", "fast.csv"]
    assert "40 of 40 runs" in repr(whole) and "<th>arrived</th>" in whole._repr_html_()
    one = fp.experiment("virtual.toml", output=tmp_path / "one", only=[7], workers=1)
    assert [run["run"] for run in one.findings.runs] == [7]


@pytest.mark.parametrize(("change", "said"), [
    ({"only": [40]}, "--only 40: virtual has 40 runs; write 0 to 39"),
    ({"only": []}, "only has no runs"),
    ({"only": [1.5]}, "only=1.5 is not a whole number"),
    ({"workers": 0}, "workers=0 is out of range"),
    ({"shard": "3/2"}, "shard"),
    ({"file": "none.toml"}, "none.toml"),
    ({"client": object(), "workers": 1}, "exclude each other"),
])
def test_bad_calls_are_refused(bench, change, said):
    with pytest.raises(fp.Error, match=said):
        fp.experiment(**{"file": "virtual.toml", **change})


def test_a_changed_experiment_is_refused_or_done_again(bench):
    before = fp.experiment("virtual.toml")
    (bench / "slow.csv").write_text("time_s,rate_mbps\n0,3\n1,2\n")
    with pytest.raises(fp.Error, match="slow.csv"):
        fp.experiment("virtual.toml")
    after = fp.experiment("virtual.toml", retry_changed=True)
    assert after.csv != before.csv


def elsewhere(path):
    return "/nonexistent" + path


def test_runs_are_the_same_on_a_machine_without_the_files(bench, tmp_path):
    here = fp.experiment("virtual.toml")
    asked = experiments._Asked.of("virtual.toml", tmp_path / "there", "1/1", None, False, False, False)
    missing = experiments._missing(asked)
    names = {os.path.basename(path) for path in missing["files"]}
    assert names == {"virtual.toml", "net.toml", "slow.csv", "fast.csv", "in.pcap"}
    files = {elsewhere(path): open(path, "rb").read() for path in missing["files"]}
    place = experiments._Place(elsewhere(str(bench / "virtual.toml")), elsewhere(str(bench)), experiments._version(), False)
    for number, content in experiments._runs(place, files, missing["runs"]).items():
        experiments._keep(experiments._of(tmp_path / "there", number), content)
    there = fp.experiment("virtual.toml", output=tmp_path / "there")
    assert there.csv == here.csv
    assert len({run["origin"] if "origin" in run else run["version"] for run in there.findings.runs}) == 1
    other = experiments._Place(place.file, place.work, "fastpath 0.0.0", False)
    with pytest.raises(fp.Error, match="another version of fastpath"):
        experiments._runs(other, files, [0])


DASK = """
import asyncio, os, signal, sys
from distributed import Client, LocalCluster
import fastpath as fp

def run(client):
    killed = []
    def said(done, _):
        # In the middle of the runs one worker dies, as when its machine fails.
        if done and not killed:
            killed.append(min(client.run(os.getpid).values()))
            os.kill(killed[0], signal.SIGKILL)
    found = fp.experiment(sys.argv[1], output=sys.argv[2], client=client, progress=said)
    assert killed and found.is_good, found

def main():
    cluster = LocalCluster(n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None,
                           resources=RESOURCES)
    is_done = False
    try:
        with cluster, Client(cluster) as client:
            run(client)
            is_done = True
    except (TimeoutError, asyncio.TimeoutError):
        # On a busy machine the workers take longer to end than Dask waits.
        if not is_done:
            raise

if __name__ == "__main__":
    main()
"""


def by_dask(tmp_path, name, resources):
    (tmp_path / "run.py").write_text(DASK.replace("RESOURCES", repr(resources)))
    words = [sys.executable, tmp_path / "run.py", name, tmp_path / "dask"]
    done = subprocess.run(words, capture_output=True, check=False, timeout=300)
    assert done.returncode == 0, done.stderr.decode()
    return (tmp_path / "dask" / "results.csv").read_bytes()


def test_the_table_is_the_same_on_dask_with_a_worker_that_dies(bench, tmp_path):
    pytest.importorskip("distributed")
    assert by_dask(tmp_path, "virtual.toml", {}) == by_program("virtual.toml", tmp_path / "here")
    runs = sorted((tmp_path / "dask" / "runs").iterdir())
    assert len(runs) == 40 and (runs[7] / "b.pcap").stat().st_size > 24


@needs_lab
def test_labs_are_run_on_workers_that_offer_them(bench, tmp_path):
    pytest.importorskip("distributed")
    assert by_dask(tmp_path, "lab.toml", {"fastpath-lab": 1}) == by_program("lab.toml", tmp_path / "here")
    left = subprocess.run([program(), "lab", "list", "--json"], capture_output=True, check=True)
    assert not [lab for lab in json.loads(left.stdout) if lab["name"].startswith("experiment-") and lab["alive"]]


SCHEDULER = """
from distributed import LocalCluster

if __name__ == "__main__":
    with LocalCluster(n_workers=1, threads_per_worker=1, dashboard_address=None) as cluster:
        print(cluster.scheduler_address, flush=True)
        input()
"""


def test_the_program_sends_runs_to_dask(bench, tmp_path):
    pytest.importorskip("distributed")
    (tmp_path / "scheduler.py").write_text(SCHEDULER)
    environment = {**os.environ, "FASTPATH_PYTHON": sys.executable}

    def run(name, address, **changed):
        words = [program(), "experiment", name, "--dask", address, "-o", tmp_path / name, "--json"]
        return subprocess.run(words, capture_output=True, text=True, check=False, env={**environment, **changed})

    with subprocess.Popen([sys.executable, tmp_path / "scheduler.py"], stdin=subprocess.PIPE,
                          stdout=subprocess.PIPE) as scheduler:
        address = scheduler.stdout.readline().decode().strip()
        done = run("virtual.toml", address)
        lab = run("lab.toml", address)
        scheduler.communicate(b"\n")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["finished"] == 40
    assert (tmp_path / "virtual.toml" / "results.csv").read_bytes() == by_program("virtual.toml", tmp_path / "here")
    assert lab.returncode == 2 and 'no worker has the resource fastpath-lab' in lab.stderr
    shutil.rmtree(tmp_path / "virtual.toml")
    refused = run("virtual.toml", "tcp://127.0.0.1:9")
    assert refused.returncode == 2 and "--dask tcp://127.0.0.1:9" in refused.stderr
    absent = run("virtual.toml", address, FASTPATH_PYTHON="/nonexistent/python3")
    assert absent.returncode == 2 and "fastpath[dask]" in absent.stderr and "FASTPATH_PYTHON" in absent.stderr
