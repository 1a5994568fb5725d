import csv
import io
import json
import os
import signal
import subprocess
import sys

import pytest

import fastpath as fp
from fastpath.program import program

WORKLOAD = "line-rate,ports=4,duration=200us"
VARY = {"workload.size": [64, 128, 512], "machine.egress.engines": "1..2", "seed": [1, 2]}


def test_a_sweep_is_that_of_the_program(tmp_path):
    ours = fp.sweep("ixp1200", "linkem", WORKLOAD, VARY)
    path = tmp_path / "table.csv"
    vary = [word for axis in ("workload.size=64,128,512", "machine.egress.engines=1..2", "seed=1,2")
            for word in ("--vary", axis)]
    words = [program(), "sweep", "ixp1200", "--program", "linkem", "--workload", WORKLOAD, *vary]
    subprocess.run([*words, "-o", path], check=True, capture_output=True)
    assert len(ours) == 12 and ours.csv == path.read_bytes()
    assert ours.to_dict()["workload.size"][:5] == [64, 64, 64, 64, 128]
    assert not ours.problems


def test_a_sweep_is_resumed_from_its_file(tmp_path):
    path = tmp_path / "table.csv"
    half = fp.sweep("ixp1200", "linkem", WORKLOAD, VARY, shard="1/2", output=path)
    said = []
    whole = fp.sweep("ixp1200", "linkem", WORKLOAD, VARY, output=path, progress=lambda *at: said.append(at))
    assert len(half) == 6 and len(whole) == 12 and said[-1] == (6, 6)
    assert path.read_bytes() == whole.csv == fp.sweep("ixp1200", "linkem", WORKLOAD, VARY, threads=1).csv


def test_a_machine_has_values_that_change():
    machine = fp.Machine("ixp1200", set={"egress.engines": 2})
    assert "egress" in machine.text and machine.name in fp.Machine.shipped() and "linkem" in fp.programs()
    two = machine.simulate("linkem", WORKLOAD)
    assert two.trace_hash == fp.simulate("ixp1200-egress2", "linkem", WORKLOAD).trace_hash
    assert "<table>" in two._repr_html_()
    with pytest.raises(fp.Error, match="ixp9999"):
        fp.Machine("ixp9999")


@pytest.mark.parametrize(("change", "said"), [
    ({"vary": {"workload.sise": [64]}}, "sise"),
    ({"vary": "size"}, "write NAME=A,B,C"),
    ({"vary": {}, "random": 2, "halton": 2}, "exclude each other"),
    ({"vary": {"workload.size": "64..128"}, "threads": 0}, "0 threads"),
    ({"vary": {"workload.size": "64..128"}, "shard": "3/2"}, "shard"),
    ({"vary": {"machine": ["ixp9999"]}}, "ixp9999"),
])
def test_bad_sweeps_are_refused(change, said):
    with pytest.raises(fp.Error, match=said):
        fp.sweep("ixp1200", "linkem", WORKLOAD, **change)


def test_ctrl_c_ends_a_sweep(tmp_path):
    # A shell lets programs in its background ignore the signal.
    code = f"""
import signal; signal.signal(signal.SIGINT, signal.default_int_handler)
import fastpath as fp
fp.sweep("ixp1200", "linkem", "line-rate,ports=4,duration=1ms", {{"seed": "1..100000"}},
         output={str(tmp_path / "table.csv")!r}, progress=lambda done, _: print(done, flush=True))
"""
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE) as run:
        assert run.stdout.readline()
        run.send_signal(signal.SIGINT)
        _, errors = run.communicate()
    assert b"KeyboardInterrupt" in errors and run.returncode != 0
    rows = list(csv.reader(io.StringIO((tmp_path / "table.csv").read_text())))
    assert 1 < len(rows) < 100_000, "finished points are kept"


DASK = """
import os, signal, sys
from distributed import Client, LocalCluster
import fastpath as fp

def main():
    cluster = LocalCluster(n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None)
    with cluster, Client(cluster) as client:
        killed = []
        def said(done, _):
            # In the middle of the sweep one worker dies, as when its machine fails.
            if not killed:
                killed.append(min(client.run(os.getpid).values()))
                os.kill(killed[0], signal.SIGKILL)
        found = fp.sweep("ixp1200", "linkem", "line-rate,ports=4,duration=100us", {"seed": "1..600"},
                         client=client, progress=said)
        assert killed
        sys.stdout.buffer.write(found.csv)
        sys.stdout.flush()

if __name__ == "__main__":
    main()
"""


def test_the_table_is_the_same_on_dask_with_a_worker_that_dies(tmp_path):
    pytest.importorskip("distributed")
    (tmp_path / "sweep.py").write_text(DASK)
    done = subprocess.run([sys.executable, tmp_path / "sweep.py"], capture_output=True, check=False, timeout=300)
    assert done.returncode == 0, done.stderr.decode()
    here = fp.sweep("ixp1200", "linkem", "line-rate,ports=4,duration=100us", {"seed": "1..600"})
    assert done.stdout == here.csv


SCHEDULER = """
from distributed import LocalCluster

if __name__ == "__main__":
    with LocalCluster(n_workers=1, threads_per_worker=1, dashboard_address=None) as cluster:
        print(cluster.scheduler_address, flush=True)
        input()
"""


def test_the_program_sends_points_to_dask(tmp_path):
    pytest.importorskip("distributed")
    (tmp_path / "scheduler.py").write_text(SCHEDULER)
    words = [program(), "sweep", "ixp1200", "--program", "linkem", "--workload", WORKLOAD, "--vary", "seed=1..20"]
    run = [sys.executable, tmp_path / "scheduler.py"]
    environment = {**os.environ, "FASTPATH_PYTHON": sys.executable}
    with subprocess.Popen(run, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as scheduler:
        address = scheduler.stdout.readline().decode().strip()
        dask = [*words, "--dask", address, "-o", tmp_path / "dask.csv", "--json"]
        done = subprocess.run(dask, capture_output=True, check=False, env=environment)
        scheduler.communicate(b"\n")
    assert done.returncode == 0, done.stderr.decode()
    assert len(json.loads(done.stdout)["rows"]) == 20
    subprocess.run([*words, "-o", tmp_path / "here.csv"], check=True, capture_output=True)
    assert (tmp_path / "dask.csv").read_bytes() == (tmp_path / "here.csv").read_bytes()
    refused = subprocess.run([*words, "--dask", "tcp://127.0.0.1:9", "-o", tmp_path / "none.csv"],
                             capture_output=True, check=False, env=environment)
    assert refused.returncode == 2 and b"--dask tcp://127.0.0.1:9" in refused.stderr
    absent = subprocess.run([*words, "--dask", address, "-o", tmp_path / "none.csv"], capture_output=True,
                            check=False, env={**os.environ, "FASTPATH_PYTHON": "/nonexistent/python3"})
    assert absent.returncode == 2 and b"FASTPATH_PYTHON" in absent.stderr
