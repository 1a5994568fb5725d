import os
import signal
import subprocess
import sys
import threading

import pytest
from conftest import lab_names, needs_lab

import fastpath as fp

pytestmark = needs_lab


def test_programs_run_on_hosts_and_links_change(net):
    with net.lab() as lab:
        assert "1 received" in lab["a"].cmd("ping -c 1 b")
        assert lab["a"].popen(["true"]).wait() == 0
        assert lab["b"].run("exit 7").returncode == 7
        lab.link("a-b").set(delay="1ms")
        lab.link("a-b").set(from_="a", rate="5Mbit")
        forward, backward = lab.link("a-b").state["directions"]
        assert (forward["delay"], forward["rate"], backward["rate"]) == ("1ms", "5Mbit", "10Mbit")
        assert lab.report()["links"][0]["name"] == "a-b"
        name = lab.name
        assert name in lab_names()
    assert name not in lab_names()


def test_what_a_lab_lacks_is_named(net):
    with net.lab() as lab:
        with pytest.raises(fp.LabError, match=r"no host z \(have: a, b\)"):
            lab["z"]
        with pytest.raises(fp.LabError, match=r"no link z \(have: a-b\)"):
            lab.link("z")
        with pytest.raises(fp.Error, match="delay"):
            lab.link("a-b").set(delay="5 parsec")
    with pytest.raises(fp.LabError, match="is not up"):
        lab["a"].cmd("true")


def test_a_lab_that_dies_is_reported(net):
    lab = net.lab().up()
    waiting = lab["a"].popen(["sleep", "1000"])
    os.kill(lab.engine_pid, signal.SIGKILL)
    waiting.wait()
    lab._engine.wait()
    with pytest.raises(fp.LabError, match="has ended"):
        lab["a"].cmd("true")
    lab.close()


def test_a_call_that_waits_ends_with_the_lab(net):
    lab = net.lab().up()
    threading.Timer(0.3, os.kill, (lab.engine_pid, signal.SIGKILL)).start()
    with pytest.raises(fp.LabError, match="has ended"):
        lab["a"].cmd("sleep 1000")
    lab.close()
    lab = net.lab().up()
    # A stopped engine takes connections and does not answer.
    os.kill(lab.engine_pid, signal.SIGSTOP)
    threading.Timer(0.3, os.kill, (lab.engine_pid, signal.SIGKILL)).start()
    with pytest.raises(fp.LabError, match="does not answer|has ended"):
        lab.links()
    lab.close()


def test_links_are_records_and_are_shown_while_the_lab_runs(net, capsys):
    with net.lab() as lab:
        lab["a"].cmd("ping -c 1 b")
        forward, backward = lab.directions()
        assert (forward.link, forward.from_, forward.to, backward["from"]) == ("a-b", "a", "b", "b")
        assert forward.frames_out >= 1 and lab.link("a-b").state.directions[0].rate == "10Mbit"
        with pytest.raises(AttributeError, match="no speed .have: link, from"):
            forward.speed
        lab.watch(seconds=0.1, every=0.05)
        said = capsys.readouterr().out
        assert "a → b" in said and "25ms" in said and "Mbit/s" in said
        assert "<td>a → b</td>" in lab._repr_html_()
    assert lab._repr_html_() == "<table><tr></tr></table>"


def test_nothing_stays_when_the_interpreter_is_killed():
    code = """
import fastpath as fp, time
net = fp.Topology(); net.link(net.host("a"), net.host("b"))
lab = net.lab().up()
lab["a"].popen(["sleep", "1000"])
print(lab.name, lab.engine_pid, flush=True)
time.sleep(1000)
"""
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE) as run:
        name, pid = run.stdout.readline().split()
        ended = os.pidfd_open(int(pid)) if hasattr(os, "pidfd_open") else None
        run.kill()
    if ended is None:
        pytest.skip("Python 3.9 on Linux 5.3 is needed to wait for another process")
    import select

    assert select.select([ended], [], [], 60)[0], "the engine ends"
    assert name.decode() not in lab_names()


def test_a_forked_process_leaves_the_lab_alone(net):
    with net.lab() as lab:
        child = os.fork()
        if child == 0:
            lab.close()
            os._exit(0)
        os.waitpid(child, 0)
        assert "1 received" in lab["a"].cmd("ping -c 1 b")
