"""Lines of ovs-vsctl as public scripts type them, on switches of a script of Mininet where Open vSwitch is
installed: each has the effect that can be seen from the network."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from conftest import needs_lab

from fastpath.program import program

# Unpacked by `cargo xtask test`.
UNPACKED = Path(program()).resolve().parent.parent / "openvswitch/usr"
SERVER = [path for path in ("/usr/sbin/ovsdb-server", "/usr/bin/ovsdb-tool", "/usr/bin/ovs-ofctl")
          if not os.path.exists(path)]
needs_database = pytest.mark.skipif(
    bool(SERVER) or not (UNPACKED / "bin/ovs-vsctl").exists(),
    reason=f"no {' '.join(SERVER) or 'ovs-vsctl'} (cargo xtask test gets it)",
)

NET = """
import json, os, re, subprocess, sys, time
from functools import partial
from mininet.net import Mininet
from mininet.node import OVSSwitch, RemoteController
from mininet.topo import SingleSwitchTopo

net = Mininet(topo=SingleSwitchTopo(3), autoSetMacs=True, autoStaticArp=True, {how})
net.start()
s1, h1, h2, h3 = net.get('s1', 'h1', 'h2', 'h3')

def run(words):
    return subprocess.run(words, shell=True, capture_output=True, text=True)

def has(text, words):
    done = run(words)
    return text in done.stdout + done.stderr

def vsctl(words):
    return run('ovs-vsctl ' + words).stdout.strip()

def pinged(a, address):
    return ' 0% packet loss' in a.cmd(f'ping -c1 -W1 {{address}}')

def reaches(a, b):
    # A link state takes up to 0.2 s.
    return any(pinged(a, b.IP()) for _ in range(5))

def blocked(a, b):
    return not pinged(a, b.IP())

# The machine, by an interface that a line makes a port.
def machine_reaches(a, interface, address):
    run(f'ip addr replace {{address}}/32 dev {{interface}}; ip link set {{interface}} up; '
        f'ip route replace {{a.IP()}}/32 dev {{interface}} src {{address}}')
    found = any(' 0% packet loss' in run(f'ping -c1 -W1 {{a.IP()}}').stdout for _ in range(5))
    run(f'ip addr flush dev {{interface}}')
    return found

def received(host):
    return int(host.cmd(f'cat /sys/class/net/{{host}}-eth0/statistics/rx_packets'))

def copies(host, a, b):
    '''Frames that a host receives while a asks b 50 times.'''
    before = received(host)
    a.cmd(f'ping -q -f -c 50 -W 1 {{b.IP()}}')
    time.sleep(0.2)
    print('COPIES', received(host) - before)
    return received(host) - before

def tags(host, a, b):
    '''The VLAN tags with which frames of a arrive at a host.'''
    dump = host.popen(['tcpdump', '-lnei', f'{{host}}-eth0', 'icmp or (vlan and icmp)'], text=True)
    dump.stderr.readline(), dump.stderr.readline()
    for _ in range(3):
        a.cmd(f'ping -c1 -W0.3 {{b.IP()}}')
    time.sleep(0.3)
    dump.terminate()
    out = dump.communicate()[0]
    return {{int(tag) for tag in re.findall(r'vlan (\\d+)', out)}} or ({{0}} if 'ICMP' in out else set())

PORTS = iter(range(5000, 6000))

def rate(a, b, queue=None):
    '''The Mbit/s that b receives of UDP frames from a. Others may still wait in queues.'''
    port = str(next(PORTS))
    if queue is not None:
        run(f'ovs-ofctl add-flow s1 priority=9,udp,tp_dst={{port}},actions=set_queue:{{queue}},normal')
    receiver = b.popen([sys.executable, '-c', '''
import socket, sys, time
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.bind(('', int(sys.argv[1])))
s.recv(2000)
def until(end):
    count = 0
    while time.monotonic() < end:
        count += len(s.recv(2000)) + 42
    return count
start = time.monotonic()
until(start + 0.7)
print(until(start + 1.7) * 8e-6)''', port], text=True)
    sender = a.popen([sys.executable, '-c', '''
import socket, sys, time
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
end = time.monotonic() + 6
while time.monotonic() < end:
    for _ in range(3):
        s.sendto(bytes(1000), (sys.argv[1], int(sys.argv[2])))
    time.sleep(0.0005)''', b.IP(), port])
    found = float(receiver.communicate(timeout=20)[0])
    sender.terminate()
    sender.wait()
    print('RATE', found)
    return found

def soon(check):
    end = time.monotonic() + 8
    while time.monotonic() < end:
        try:
            if check():
                return True
        except ValueError:
            # Nothing is counted yet.
            pass
        time.sleep(0.1)
    return False

def flows():
    return run('ovs-ofctl dump-flows s1').stdout

{before}
for line, effect in json.load(open('lines.json')):
    done = subprocess.run('ovs-vsctl ' + line, shell=True, capture_output=True, text=True)
    out = done.stdout
    names = dict(globals(), out=out, words=out.split())
    try:
        seen = eval(effect, names)
    except Exception as error:
        seen = error
    print('SEEN' if done.returncode == 0 and seen is True else 'NOT SEEN', line, '|', effect, '|', seen, done, flush=True)
print('END', flush=True)
net.stop()
"""

# By topic: how the network is made, what comes before, and lines with what is seen after each.
LINES = {
    "bridges and ports": ("controller=None, switch=partial(OVSSwitch, failMode='standalone')", """
run('ip link add x0 type veth peer name x1')
""", [
        ("show", "'Bridge s1' in out and 'Port s1-eth2' in out"),
        ("list-br", "words == ['s1']"),
        ("list-ports s1", "words == ['s1-eth1', 's1-eth2', 's1-eth3']"),
        ("list-ifaces s1", "words == ['s1-eth1', 's1-eth2', 's1-eth3']"),
        ("port-to-br s1-eth1", "words == ['s1']"),
        ("iface-to-br s1-eth2", "words == ['s1']"),
        ("br-exists s1", "out == ''"),
        ("get Interface s1-eth1 ofport", "words == ['1']"),
        ("get bridge s1 datapath_id", "words == ['\"0000000000000001\"']"),
        ("--columns=name,ofport list interface s1-eth2", "'ofport              : 2' in out"),
        ("--bare --columns=name find interface ofport=3", "words == ['s1-eth3']"),
        ("get Interface s1-eth1 mac_in_use", "words[0].strip('\"') in run('ip link show s1-eth1').stdout"),
        ("--may-exist add-br s1", "reaches(h1, h2)"),
        ("del-port s1-eth2", "blocked(h1, h2)"),
        ("add-port s1 s1-eth2", "reaches(h1, h2)"),
        ("--if-exists del-port s1 eth9", "reaches(h1, h2)"),
        ("set interface s1-eth2 ofport_request=9", "has(' 9(s1-eth2)', 'ovs-ofctl show s1') and reaches(h1, h2)"),
        ("add-port s1 x0", "machine_reaches(h1, 'x1', '10.0.0.50')"),
        ("del-port s1 x0", "not machine_reaches(h1, 'x1', '10.0.0.50')"),
        ("add-br br0", "has('br0', 'ip link show br0')"),
        ("del-port s1 s1-eth3 -- add-port br0 s1-eth3", "blocked(h1, h3)"),
        ("add-port s1 patch0 -- set interface patch0 type=patch options:peer=patch1", "blocked(h1, h3)"),
        ("add-port br0 patch1 -- set interface patch1 type=patch options:peer=patch0", "reaches(h1, h3)"),
        ("add-port s1 vi1 -- set interface vi1 type=internal", "machine_reaches(h1, 'vi1', '10.0.0.60')"),
        ("set interface vi1 mtu_request=1400", "has('mtu 1400', 'ip link show vi1')"),
        ("get interface vi1 link_state", "words == ['up']"),
        ("get Interface s1-eth1 statistics", "out.startswith('{') and soon(lambda: int(vsctl('get interface s1-eth1 statistics:rx_packets')) > 5)"),
        ("br-set-external-id s1 place lab", "vsctl('br-get-external-id s1 place') == 'lab'"),
        ("del-br br0", "not has('br0:', 'ip link show') and blocked(h1, h3)"),
    ]),
    "VLANs": ("controller=None, switch=partial(OVSSwitch, failMode='standalone')", "", [
        ("set port s1-eth1 tag=10", "blocked(h1, h2)"),
        ("set Port s1-eth2 tag=10", "reaches(h1, h2) and blocked(h1, h3)"),
        ("add-port s1 s1-eth3 tag=10", "reaches(h1, h3)"),
        ("remove port s1-eth3 tag 10", "tags(h3, h1, h3) == {10}"),
        ("set port s1-eth3 trunks=20,30", "tags(h3, h1, h3) == set()"),
        ("add port s1-eth3 trunks 10", "tags(h3, h1, h3) == {10}"),
        ("set port s1-eth3 trunks=[]", "tags(h3, h1, h3) == {10}"),
        ("set port s1-eth3 vlan_mode=native-untagged tag=10", "tags(h3, h1, h3) == {0} and reaches(h1, h3)"),
        ("set port s1-eth3 vlan_mode=native-tagged", "tags(h3, h1, h3) == {10}"),
        ("clear port s1-eth3 vlan_mode -- set port s1-eth3 tag=10", "reaches(h1, h3)"),
        ("clear port s1-eth3 trunks", "reaches(h1, h3)"),
        ("set bridge s1 flood_vlans=10", "copies(h3, h1, h2) >= 100"),
        ("clear bridge s1 flood_vlans", "reaches(h1, h3) and reaches(h1, h2) and copies(h3, h1, h2) < 50"),
        ("add-br br10 s1 10", "machine_reaches(h1, 'br10', '10.0.0.70')"),
        ("clear port s1-eth1 tag", "blocked(h1, h2) and tags(h1, h2, h1) == {10}"),
        # As in Open vSwitch, the ports of its VLAN go with it.
        ("del-br br10", "blocked(h2, h3) and not has('s1-eth2', 'ovs-vsctl list-ports s1')"),
    ]),
    "mirrors": ("controller=None, switch=partial(OVSSwitch, failMode='standalone')", "reaches(h1, h2)", [
        ("-- --id=@p get port s1-eth3 -- --id=@m create mirror name=m0 select-all=true output-port=@p"
         " -- set bridge s1 mirrors=@m", "100 <= copies(h3, h1, h2) <= 110"),
        ("-- set mirror m0 select_all=false -- --id=@a get port s1-eth1 -- set mirror m0 select_src_port=@a",
         "50 <= copies(h3, h1, h2) <= 60"),
        ("-- --id=@a get port s1-eth1 -- set mirror m0 select_dst_port=@a", "100 <= copies(h3, h1, h2) <= 110"),
        ("clear mirror m0 select_src_port", "50 <= copies(h3, h1, h2) <= 60"),
        ("set mirror m0 select_vlan=5", "copies(h3, h1, h2) <= 5"),
        ("remove mirror m0 select_vlan 5", "50 <= copies(h3, h1, h2) <= 60"),
        ("get mirror m0 statistics", "soon(lambda: int(vsctl('get mirror m0 statistics:tx_packets')) >= 300)"),
        ("list mirror", "'m0' in out"),
        ("clear mirror m0 output_port -- set mirror m0 output_vlan=7", "tags(h3, h2, h1) == {7}"),
        ("clear bridge s1 mirrors", "copies(h3, h1, h2) <= 5"),
    ]),
    "queues": ("controller=None, switch=partial(OVSSwitch, failMode='standalone')", "reaches(h1, h2)", [
        ("set port s1-eth2 qos=@newqos -- --id=@newqos create qos type=linux-htb other-config:max-rate=8000000"
         " queues=0=@q0,1=@q1 -- --id=@q0 create queue other-config:min-rate=500000 other-config:max-rate=2000000"
         " -- --id=@q1 create queue other-config:max-rate=3000000", "1.7 <= rate(h1, h2) <= 2.3"),
        ("list queue", "'max-rate=\"3000000\"' in out and 2.6 <= rate(h1, h2, queue=1) <= 3.4"),
        ("set queue $(ovs-vsctl get qos $(ovs-vsctl get port s1-eth2 qos) queues:1) other-config:max-rate=1000000",
         "0.8 <= rate(h1, h2, queue=1) <= 1.2"),
        ("set qos $(ovs-vsctl get port s1-eth2 qos) other-config:max-rate=1500000", "1.2 <= rate(h1, h2) <= 1.8"),
        ("-- --id=@q create queue other-config:max-rate=700000 -- add qos $(ovs-vsctl get port s1-eth2 qos) queues 5=@q",
         "0.5 <= rate(h1, h2, queue=5) <= 0.9"),
        ("clear port s1-eth2 qos", "rate(h1, h2) > 5"),
        ("--all destroy qos -- --all destroy queue", "vsctl('list qos') == '' and rate(h1, h2) > 5"),
        ("set port s1-eth2 qos=@q -- --id=@q create qos type=linux-hfsc other-config:max-rate=2000000",
         "1.7 <= rate(h1, h2) <= 2.3"),
        ("remove port s1-eth2 qos $(ovs-vsctl get port s1-eth2 qos)", "rate(h1, h2) > 5"),
        ("set interface s1-eth1 ingress_policing_rate=2000 ingress_policing_burst=200", "1.6 <= rate(h1, h2) <= 2.4"),
        ("set interface s1-eth1 ingress_policing_rate=0", "rate(h1, h2) > 5"),
    ]),
    "controllers": ("", "", [
        ("get-controller s1", "words == ['tcp:127.0.0.1:6653'] and reaches(h1, h2)"),
        ("get-fail-mode s1", "words == ['secure']"),
        ("del-controller s1", "flows() == '' or 'actions' not in flows()"),
        ("set-fail-mode s1 standalone", "reaches(h1, h2)"),
        ("set-fail-mode s1 secure", "blocked(h1, h2)"),
        ("del-fail-mode s1", "reaches(h1, h2)"),
        ("set bridge s1 fail-mode=secure", "blocked(h1, h2)"),
        ("set-controller s1 tcp:127.0.0.1:6653", "soon(lambda: reaches(h1, h2))"),
        ("set controller s1 connection-mode=out-of-band", "vsctl('get controller s1 is_connected') == 'true'"),
        ("set bridge s1 protocols=OpenFlow13", "soon(lambda: has('NORMAL', 'ovs-ofctl -O OpenFlow13 dump-flows s1')) "
         "and not has('NORMAL', 'ovs-ofctl -O OpenFlow10 dump-flows s1')"),
        ("set Bridge s1 protocols=OpenFlow10,OpenFlow13",
         "soon(lambda: has('NORMAL', 'ovs-ofctl -O OpenFlow10 dump-flows s1'))"),
        ("set bridge s1 datapath_type=netdev", "reaches(h1, h2)"),
        ("set bridge s1 other-config:datapath-id=00000000000000ff", "soon(lambda: has('dpid:00000000000000ff', 'ovs-ofctl show s1'))"),
        ("set-controller s1 ptcp:6634", "soon(lambda: has('dpid:', 'ovs-ofctl show tcp:127.0.0.1:6634'))"),
        ("set-manager ptcp:6640:127.0.0.1", "soon(lambda: has('Open_vSwitch', 'ovsdb-client list-dbs tcp:127.0.0.1:6640'))"),
        ("del-manager", "soon(lambda: not has('Open_vSwitch', 'ovsdb-client list-dbs tcp:127.0.0.1:6640'))"),
    ]),
}
# The lines of scripts that have an effect; `mininet.md` states the number.
COUNT = sum(len(lines) for _, _, lines in LINES.values())


def environment():
    path = f"{UNPACKED / 'bin'}:{os.environ['PATH']}"
    return {**os.environ, "PATH": path}


def start(tmp_path, text, *options, **given):
    """Start a script of Mininet in a network namespace that stands for the machine."""
    (tmp_path / "script.py").write_text(text)
    words = ["unshare", "--net", "sh", "-c", 'ip link set lo up; exec "$@"', "sh", sys.executable, "-m",
             "fastpath.mininet", *options, "script.py"]
    return subprocess.Popen(words, cwd=tmp_path, env=environment(), stdout=subprocess.PIPE, text=True, **given)


def run(tmp_path, text, *options, code=0):
    started = start(tmp_path, text, *options, stderr=subprocess.STDOUT)
    said = started.communicate(timeout=280)[0]
    assert started.returncode == code, said
    return said


@needs_lab
@needs_database
@pytest.mark.parametrize("topic", LINES)
def test_each_line_has_its_effect(tmp_path, topic):
    how, before, lines = LINES[topic]
    (tmp_path / "lines.json").write_text(json.dumps(lines))
    said = run(tmp_path, NET.format(how=how, before=before))
    missed = [line for line in said.splitlines() if line.startswith("NOT SEEN")]
    seen = [line for line in said.splitlines() if line.startswith("SEEN")]
    assert not missed and len(seen) == len(lines), "\n".join(missed) + said


def test_there_are_as_many_lines_as_the_guide_says():
    guide = Path(__file__).parents[3] / "docs/guides/mininet.md"
    assert f"{COUNT} lines" in guide.read_text()


LOOK = "import os, sys\n" + NET.format(how="controller=None, switch=partial(OVSSwitch, failMode='standalone')",
                                       before="").split("for line, effect")[0]


def directory_of(said):
    return next(line.split()[1] for line in said.splitlines() if line.startswith("DIRECTORY"))


def is_running(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().split()[2] != "Z"
    except FileNotFoundError:
        return False


@needs_lab
@needs_database
def test_ports_come_and_go_while_the_network_runs(tmp_path):
    said = run(tmp_path, LOOK + """
h4 = net.addHost('h4', ip='10.0.0.4/8')
link = net.addLink(h4, s1)
h4.configDefault()
print('LINKED', reaches(h1, h4), s1.cmd('ovs-vsctl get interface s1-eth4 ofport').strip())
s1.attach('s1-eth4')
print('TAGGED', repr(s1.cmd('ovs-vsctl add-port s1 s1-eth4 tag=5')), blocked(h1, h4))
print('AGAIN', 'already exists' in s1.cmd('ovs-vsctl add-port s1 s1-eth4'))
s1.detach('s1-eth4')
print('DETACHED', 's1-eth4' in s1.cmd('ovs-vsctl list-ports s1'))
s1.attach('s1-eth4')
print('ATTACHED', reaches(h1, h4))
net.delLink(link)
h1.cmd('true')
print('DELETED', 's1-eth4' in s1.cmd('ovs-vsctl list-ports s1'))
run('ip tuntap add dev tap7 mode tap; ip link set tap7 up; ovs-vsctl add-port s1 tap7')
print('TAP', s1.cmd('ovs-vsctl get interface tap7 error').strip(), s1.cmd('ovs-vsctl get interface tap7 ofport').strip())
s2 = net.addSwitch('s2')
s2.start([])
net.addLink(s1, s2)
h5 = net.addHost('h5', ip='10.0.0.5/8')
net.addLink(h5, s2)
h5.configDefault()
print('SECOND', reaches(h1, h5), s1.cmd('ovs-vsctl list-br').split())
print('DOWN', s1.cmd('ip link set s1-eth1 down'), soon(lambda: blocked(h1, h2)))
print('DUMP', 's1-eth1' in s1.cmd('tc qdisc show dev s1-eth1; ip link show s1-eth1'))
net.stop()
print('LEFT', s1.name in run('ovs-vsctl list-br').stdout.split())
""")
    wanted = ["LINKED True 4", "TAGGED '' True", "AGAIN True", "DETACHED False", "ATTACHED True", "DELETED False",
              "SECOND True ['s1', 's2']", "DOWN  True", "DUMP True", "LEFT False"]
    assert [line for line in wanted if line not in said.splitlines()] == [], said
    assert "\nTAP [] " in said and "\nTAP [] -1" not in said, said


@needs_lab
@needs_database
@pytest.mark.parametrize(("command", "named"), [
    ("s1.cmd('ovs-vsctl set bridge s1 stp_enable=true')", "stp_enable is not supported"),
    ("os.system('ovs-vsctl --no-wait set bridge s1 other_config:mac-aging-time=60')", "mac-aging-time is not supported"),
    ("run('ovs-vsctl add-port s1 gre0 -- set interface gre0 type=gre options:remote_ip=192.168.1.2')", "type gre"),
    ("run('ovs-vsctl add-bond s1 bond0 x1 x2 lacp=active')", "bonds are not supported"),
    ("h1.cmd('ovs-vsctl -- --id=@s create sflow agent=eth0 target=\\\\\"10.0.0.1:6343\\\\\" -- set bridge s1 sflow=@s')", "sflow is not supported"),
    ("run('ovs-vsctl set port s1-eth1 qos=@q -- --id=@q create qos type=linux-sfq')", "type linux-sfq is not supported"),
    ("run('ovs-ofctl add-flow s1 actions=delete_field:tun_metadata0')", "the switch refuses it"),
    ("run('ovs-appctl fdb/show s1')", "ovs-appctl: fdb/show s1"),
])
def test_what_is_not_done_ends_the_script(tmp_path, command, named):
    said = run(tmp_path, LOOK + f"{command}\nprint('NOT REACHED')\nnet.stop()\n", code=1)
    assert named in said and "NOT REACHED" not in said, said


@needs_lab
@needs_database
def test_what_open_vswitch_refuses_too_is_a_warning(tmp_path):
    said = run(tmp_path, LOOK + """
print('A', s1.cmd('ovs-vsctl add-port s9 eth1'))
print('B', s1.cmd('ovs-vsctl add-port s1 eth9'))
print('C', s1.cmd('ovs-vsctl set port s1-eth1 tagg=3'))
print('D', s1.cmd('ovs-ofctl add-flow s9 actions=drop'))
net.stop()
""")
    assert "A ovs-vsctl: no bridge named s9" in said
    assert "B ovs-vsctl: Error detected while setting up 'eth9'" in said and "there is no interface of this name" in said
    assert "C ovs-vsctl: Port does not contain a column whose name matches \"tagg\"" in said
    assert "D ovs-ofctl: s9 is not a bridge or a socket" in said
    assert said.count("script.py:") >= 4


@needs_lab
@needs_database
@pytest.mark.parametrize("end", [signal.SIGKILL, signal.SIGINT, None])
def test_server_switches_and_files_end_with_the_script(tmp_path, end):
    started = start(tmp_path, LOOK + """
print('DIRECTORY', os.environ['OVS_RUNDIR'], run('pgrep -f ' + os.environ['OVS_RUNDIR']).stdout.split(), flush=True)
sys.stdin.readline()
net.stop()
""", stdin=subprocess.PIPE, stderr=subprocess.PIPE)
    line = started.stdout.readline()
    while not line.startswith("DIRECTORY"):
        assert line, started.communicate()
        line = started.stdout.readline()
    directory, pids = line.split()[1], [int(pid) for pid in json.loads(line.split(maxsplit=2)[2].replace("'", '"'))]
    names = [Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")[0] for pid in pids if is_running(pid)]
    assert any(b"ovsdb-server" in name for name in names) and any(b"fastpath" in name for name in names), names
    if end is None:
        started.communicate("\n")
        assert started.returncode == 0
    else:
        started.send_signal(end)
        started.communicate()
    deadline = time.monotonic() + 20
    while (os.path.exists(directory) or any(map(is_running, pids))) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not os.path.exists(directory) and not any(map(is_running, pids))


@needs_lab
@needs_database
def test_a_ring_of_learning_switches_is_cut_in_the_engine_without_a_database(tmp_path):
    said = run(tmp_path, """
from mininet.net import Mininet
net = Mininet()
net.addController('c0')
s = [net.addSwitch('s%d' % n) for n in (1, 2, 3)]
h = [net.addHost('h%d' % n) for n in (1, 2)]
for a, b in ((s[0], s[1]), (s[1], s[2]), (s[2], s[0]), (h[0], s[0]), (h[1], s[1])):
    net.addLink(a, b)
net.start()
print('LOSS', int(net.pingAll(timeout=1)))
s[0].cmd('ovs-vsctl set port s1-eth1 tag=3')
print('REACHED')
""", code=1)
    assert "LOSS 0" in said and "REACHED" not in said and "set port s1-eth1 tag=3" in said, said


@needs_lab
@needs_database
def test_options_choose_the_database(tmp_path):
    text = """
from mininet.net import Mininet
from mininet.topo import SingleSwitchTopo
net = Mininet(topo=SingleSwitchTopo(2))
net.start()
print('LOSS', int(net.pingAll()))
print('SHOWN', net['s1'].cmd(''.join(['ovs-vs', 'ctl get bridge s1 other_config'])))
net.stop()
"""
    said = run(tmp_path, text, "--ovsdb")
    assert "LOSS 0" in said and 'SHOWN {datapath-id="0000000000000001"' in said
    said = run(tmp_path, text + "# ovs-vsctl\n", "--no-ovsdb", code=1)
    assert "get bridge s1 other_config: switches of fastpath have no such column" in said


@needs_lab
@needs_database
def test_a_bridge_of_a_node_on_the_machine(tmp_path):
    # As in Mininet's example scratchnet.py.
    said = run(tmp_path, """
from mininet.net import Mininet
from mininet.node import Node
from mininet.link import Link
import time
controller, switch = Node('c0', inNamespace=False), Node('s0', inNamespace=False)
h0, h1 = Node('h0'), Node('h1')
Link(h0, switch)
Link(h1, switch)
h0.setIP('192.168.123.1/24')
h1.setIP('192.168.123.2/24')
controller.cmd('controller ptcp:6633 &')
switch.cmd('ovs-vsctl del-br dp0')
switch.cmd('ovs-vsctl add-br dp0')
for intf in switch.intfs.values():
    print(switch.cmd('ovs-vsctl add-port dp0 %s' % intf))
switch.cmd('ovs-vsctl set-controller dp0 tcp:127.0.0.1:6633')
while 'is_connected' not in switch.cmd('ovs-vsctl show'):
    time.sleep(0.1)
print('PING', ' 0% packet loss' in h0.cmd('ping -c1 -W5 ' + h1.IP()))
switch.cmd('ovs-vsctl del-br dp0')
controller.cmd('kill %controller')
""")
    assert "PING True" in said, said
