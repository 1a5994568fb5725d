"""Scripts written for Mininet."""

import os
import subprocess
import sys

import pytest
from conftest import lab_names, needs_lab, run_script as run


SCRIPT = """
from mininet.topo import Topo
from mininet.net import Mininet
from mininet.node import Node
from mininet.link import TCLink
from mininet.util import dumpNodeConnections
from mininet.log import setLogLevel
from mininet.cli import CLI

class Router(Node):
    def config(self, **params):
        super().config(**params)
        self.cmd('sysctl -w net.ipv4.ip_forward=1')

class Two(Topo):
    def build(self, **_):
        r = self.addNode('r0', cls=Router, ip='192.168.1.1/24')
        s1, s2 = self.addSwitch('s1'), self.addSwitch('s2')
        self.addLink(s1, r, intfName2='r0-eth1', params2={'ip': '192.168.1.1/24'})
        self.addLink(s2, r, intfName2='r0-eth2', params2={'ip': '172.16.0.1/12'})
        h1 = self.addHost('h1', ip='192.168.1.100/24', defaultRoute='via 192.168.1.1', mac='02:00:00:00:aa:01')
        h2 = self.addHost('h2', ip='172.16.0.100/12', defaultRoute='via 172.16.0.1')
        self.addLink(h1, s1, cls=TCLink, bw=10, delay='5ms', loss=0)
        self.addLink(h2, s2)

setLogLevel('info')
net = Mininet(topo=Two(), waitConnected=True)
net.start()
dumpNodeConnections(net.hosts)
h1, h2 = net.get('h1', 'h2')
print('MAC', h1.MAC(), h1.IP(), h1.cmd('cat /sys/class/net/h1-eth0/address').strip())
net.pingAll()
p = h1.popen('ping -c1 %s' % h2.IP())
print('TTL', [word for word in p.communicate()[0].decode().split() if word.startswith('ttl')])
h1.sendCmd('echo one; echo two')
print('SENT', repr(h1.waitOutput()))
net.configLinkStatus('s1', 'h1', 'down')
print('LOSS', net.ping([h1, h2], timeout=1))
net.configLinkStatus('s1', 'h1', 'up')
CLI(net)
net.stop()
"""


@needs_lab
def test_a_script_with_a_router_a_shaped_link_and_the_command_line(tmp_path):
    before = lab_names()
    said = run(tmp_path, SCRIPT, given="nodes\nh1 echo said by h2\npy 1 + 1\nexit\n")
    assert "MAC 02:00:00:00:aa:01 192.168.1.100 02:00:00:00:aa:01" in said
    assert "*** Results: 0% dropped (6/6 received)" in said
    assert "TTL ['ttl=63']" in said
    assert "SENT 'one\\ntwo\\n'" in said
    assert "LOSS 100.0" in said
    assert "h1 h1-eth0:s1-eth2" in said
    assert "said by 172.16.0.100" in said and "available nodes are: \nc0 h1 h2 r0 s1 s2" in said
    assert lab_names() <= before


@needs_lab
def test_the_values_of_tclink_are_those_of_the_lab(tmp_path):
    said = run(tmp_path, """
from mininet.net import Mininet
from mininet.link import TCLink
from mininet.lab import NETWORK
net = Mininet(link=TCLink, controller=None)
h1, h2, s1 = net.addHost('h1'), net.addHost('h2'), net.addSwitch('s1')
net.addLink(h1, s1, bw=5000, delay='5ms', loss=1, max_queue_size=77, jitter='1ms')
link = net.addLink(h2, s1, params2={'bw': 10})
net.start()
for name in ('h1-eth0-s1-eth1', 'h2-eth0-s1-eth2'):
    for d in NETWORK.lab.link(name).state['directions']:
        print(d['from'], d['rate'], d['delay'], d['loss'], d['queue'])
link.intf2.config(bw=20, delay='3000')
d = NETWORK.lab.link('h2-eth0-s1-eth2').state['directions'][1]
print('later', d['from'], d['rate'], d['delay'])
net.stop()
""")
    assert "h1 5Gbit 5ms 1% " in said and "s1 5Gbit 5ms 1% " in said
    assert "77p" in said
    assert "h2 unlimited 0" in said and "s1 10Mbit 0" in said
    assert "later s1 20Mbit 3ms" in said


@needs_lab
def test_the_command_line_of_mininet(tmp_path):
    code = "from fastpath.mininet.__main__ import mn; import sys; sys.argv[0] = 'fastpath-mn'; mn()"
    done = subprocess.run(
        [sys.executable, "-c", code, "--topo", "tree,2,2", "--test", "pingall"],
        capture_output=True, text=True, check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "*** Results: 0% dropped (12/12 received)" in done.stdout


def test_python_2_is_named(tmp_path):
    said = run(tmp_path, "from mininet.net import Mininet\nprint 'hello'\n", code=1)
    assert "script.py:2: this is not Python 3" in said and "2to3" in said
    assert "Traceback" not in said


def test_our_modules_win_over_another_mininet(tmp_path):
    other = tmp_path / "mininet"
    other.mkdir()
    (other / "__init__.py").write_text("raise SystemExit('the other Mininet')")
    said = run(tmp_path, "import mininet.net; print(mininet.net.__file__)")
    assert os.path.join("fastpath", "mininet", "modules", "mininet") in said


@pytest.mark.parametrize(("text", "named"), [
    ("from mininet.net import MininetWithControlNet as M\nM()", "switches of fastpath have no namespaces"),
    ("from mininet.node import Node\nroot = Node('root', inNamespace=False)\nroot.setIP('10.0.0.1/8')",
     "root: inNamespace=False without a link"),
    ("from mininet.node import Host\nfrom mininet.link import Intf\nIntf('eth9', node=Host('h1'))", "give it to a switch"),
    ("from mininet.util import moveIntf\nmoveIntf('eth9', None)", "write Intf(NAME, node=SWITCH)"),
    ("from mininet.node import CPULimitedHost\nCPULimitedHost('h1', sched='fair')", "write 'cfs' or 'rt'"),
    ("from mininet.node import NOX\nNOX('c0')", "NOX is not here"),
])
def test_what_is_lacking_is_named(tmp_path, text, named):
    assert named in run(tmp_path, text, code=1)


@needs_lab
def test_a_command_before_the_links_runs_on_the_same_host(tmp_path):
    said = run(tmp_path, """
from mininet.net import Mininet
from mininet.node import Host
class Quiet(Host):
    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.cmd('sysctl -w net.ipv4.ip_default_ttl=33')
        print('EARLY', self.popen('cat /proc/sys/net/ipv4/ip_default_ttl').communicate()[0].decode().strip())
net = Mininet(host=Quiet, controller=None)
h1, h2 = net.addHost('h1'), net.addHost('h2')
net.addLink(h1, h2)
net.start()
print('SENT', h1.cmd('ping -c1', h2.IP()))
net.stop()
""")
    assert said.count("EARLY 33") == 2
    assert "ttl=33" in said and "1 received" in said


@needs_lab
def test_a_bridge_made_by_ovs_vsctl_is_a_switch_with_its_controller(tmp_path):
    said = run(tmp_path, """
from mininet.node import Node
from mininet.link import Link
from mininet.util import quietRun
import time
c0, s0 = Node('c0', inNamespace=False), Node('s0', inNamespace=False)
h0, h1 = Node('h0'), Node('h1')
Link(h0, s0)
Link(h1, s0)
h0.setIP('192.168.123.1/24')
h1.setIP('192.168.123.2/24')
c0.cmd('controller -v ptcp:26633 &')
s0.cmd('ovs-vsctl add-br dp0')
for intf in s0.intfs.values():
    s0.cmd('ovs-vsctl add-port dp0 %s\\n' % intf)
print('ODD', s0.cmd('ovs-vsctl add-port dp9 s0-eth0'))
s0.cmd('ovs-vsctl set-controller dp0 tcp:127.0.0.1:26633')
while 'is_connected' not in quietRun('ovs-vsctl show'):
    time.sleep(0.1)
print('SENT', h0.cmd('ping -c1 ' + h1.IP()))
c0.cmd('kill %controller')
s0.cmd('ovs-vsctl del-br dp0')
s0.deleteIntfs()
""")
    assert "ODD ovs-vsctl: no bridge named dp9 (have: dp0)" in said and "1 received" in said


@needs_lab
def test_the_user_datapath_of_the_reference_implementation(tmp_path):
    said = run(tmp_path, """
from mininet.node import Node
from mininet.link import Link
c0, s0, h0, h1 = Node('c0'), Node('s0'), Node('h0'), Node('h1')
Link(c0, s0), Link(h0, s0), Link(h1, s0)
c0.setIP('10.0.123.1/24')
s0.setIP('10.0.123.2/24')
h0.setIP('192.168.123.1/24')
h1.setIP('192.168.123.2/24')
c0.cmd('controller ptcp: &')
s0.cmd('ofdatapath -i s0-eth1,s0-eth2 ptcp: &')
s0.cmd('ofprotocol tcp:10.0.123.1 tcp:localhost &')
print('SENT', h0.cmd('ping -c3 ' + h1.IP()))
""")
    assert "received" in said and "100% packet loss" not in said


@needs_lab
def test_hosts_have_a_share_of_the_processors(tmp_path):
    if not os.path.exists("/sys/fs/cgroup/cpuacct/tasks"):
        pytest.skip("no cgroups of version 1")
    said = run(tmp_path, """
from mininet.net import Mininet
from mininet.node import CPULimitedHost
from mininet.topolib import TreeTopo
from mininet.util import custom
net = Mininet(topo=TreeTopo(1, 2), host=custom(CPULimitedHost, sched='cfs', cpu=.1))
net.start()
print('SHARES', max(net.runCpuLimitTest(cpu=.1, duration=2)))
net['h1'].cmd("setsid sh -c 'trap : HUP TERM INT; while :; do sleep 300; done' >/dev/null 2>&1 &")
net.stop()
import glob, os
print('LEFT', glob.glob('/sys/fs/cgroup/cpu*/fastpath-mn-%d-*' % os.getpid()))
""")
    share = float(said.split("SHARES ")[1].split()[0])
    # A processor that others need too has less for them, never more.
    assert 0 < share < 12, said
    assert "LEFT []" in said


@needs_lab
def test_a_vlan_interface_needs_no_kernel_module(tmp_path):
    said = run(tmp_path, """
from functools import partial
from mininet.net import Mininet
from mininet.node import Host
from mininet.topo import SingleSwitchTopo
class Tagged(Host):
    def config(self, vlan=100, **params):
        super().config(**params)
        intf = self.defaultIntf()
        self.cmd('ifconfig %s inet 0' % intf)
        print('ADDED', repr(self.cmd('vconfig add %s %d' % (intf, vlan))))
        self.cmd('ifconfig %s.%d inet %s' % (intf, vlan, params['ip']))
        intf.name = '%s.%d' % (intf, vlan)
        self.nameToIntf[intf.name] = intf
net = Mininet(host=partial(Tagged, vlan=7), topo=SingleSwitchTopo(2))
net.start()
net.pingAll()
net['h1'].cmd('tcpdump -i h1-eth0 -c1 -e -nn vlan 7 >seen 2>/dev/null &')
print('SEEN', net['h1'].cmd('ping -c3 -i 0.3 %s >/dev/null; wait; cat seen; rm seen' % net['h2'].IP()))
net.stop()
""")
    assert said.count("ADDED ''") == 2, said
    assert "0% dropped (2/2 received)" in said
    assert "vlan 7" in said


@needs_lab
def test_only_a_server_of_iperf_is_greeted(tmp_path):
    said = run(tmp_path, """
import sys
from mininet.net import Mininet
from mininet.util import waitListening
net = Mininet(controller=None)
h1, h2 = net.addHost('h1'), net.addHost('h2')
net.addLink(h1, h2)
net.start()
code = "import socket, sys; print(socket.create_server(('', int(sys.argv[1]))).accept()[0].recv(99))"
for port in (5001, 5002):
    server = h2.popen([sys.executable, '-c', code, str(port)])
    print('UP', waitListening(h1, h2, port, timeout=10))
    print('GOT', port, server.communicate()[0].decode().strip())
net.stop()
""")
    assert "GOT 5001 b'-----'" in said and "GOT 5002 b''" in said


@needs_lab
def test_a_program_that_is_missing_is_named_and_a_host_has_a_process(tmp_path):
    said = run(tmp_path, """
import os, subprocess
from mininet.net import Mininet
net = Mininet(controller=None)
h1 = net.addHost('h1')
net.addLink(h1, net.addHost('h2'))
net.start()
print('LINK', subprocess.run(['nsenter', '-t', str(h1.pid), '-n', 'ip', '-br', 'link'], capture_output=True).stdout)
print('CODE', h1.popen('nosuchprogram -x').wait())
print('SUDO', h1.cmd('sudo A=1 ip -br link'))
h1.cmd('nosuchcommand')
net.stop()
""")
    assert "h1-eth0" in said and "CODE 127" in said
    assert "script.py:9: warning: h1: there is no program nosuchprogram" in said
    assert "script.py:11: warning: h1: there is no program nosuchcommand" in said


def test_what_the_machine_carried_is_compared_with_the_rate():
    from fastpath.mininet.carried import Sample, shortfalls

    def at(seconds, gbit, late, busy):
        direction = {"from": "h1", "rate": "5Gbit", "bytes_out": gbit * 10**9 // 8, "frames_out": 1000 * gbit,
                     "lateness": {"late": late}}
        report = {"links": [{"name": "h1-s1", "directions": [direction]}], "workers": [{"busy_s": busy}]}
        return Sample(seconds, report)

    [text] = shortfalls(at(0, 0, 0, 0), at(2, 6, 700, 1))
    assert text == "the machine carried 3.00 of 5 Gbit/s on h1-s1 from h1: 700 of 6000 frames were late"
    [text] = shortfalls(at(0, 0, 0, 0), at(2, 6, 0, 1.98))
    assert text.endswith("the engine used 99% of a processor")
    # A program that sends less, a link that is full, a command that is short.
    assert not shortfalls(at(0, 0, 0, 0), at(2, 6, 0, 1))
    assert not shortfalls(at(0, 0, 0, 0), at(10, 5, 5000, 10))
    assert not shortfalls(at(0, 0, 0, 0), at(2, 10, 5000, 2))
    assert not shortfalls(at(0, 0, 0, 0), at(0.5, 1, 900, 0.5))
