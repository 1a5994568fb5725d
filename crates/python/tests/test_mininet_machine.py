"""Scripts of Mininet that reach beyond their network: the machine, its interfaces, and later nodes and links."""

import re
import subprocess
import sys

import pytest
from conftest import needs_lab, run_script

# Runs a script in a network namespace that stands for the machine, with an interface `hw0` of which
# the other end has an address in another namespace.
MACHINE = """
set -e
ip link set lo up
ip link add hw0 type veth peer name hw1
ip link set hw0 up
mkfifo ready
unshare --net sh -c 'echo >ready; read -r line <moved; ip link set lo up; ip addr add 10.0.0.99/8 dev hw1;
    ip link set hw1 up; echo >ready; read -r line <moved' &
peer=$!
mkfifo moved
read -r line <ready
ip link set hw1 netns $peer
echo >moved
read -r line <ready
"$@"
ip -br link
ip route
echo >moved
wait
"""


def on_machine(tmp_path, text):
    (tmp_path / "script.py").write_text(text)
    (tmp_path / "machine.sh").write_text(MACHINE)
    words = ["unshare", "--net", "sh", "machine.sh", sys.executable, "-m", "fastpath.mininet", "script.py"]
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout, done.stderr


@needs_lab
def test_a_node_of_the_machine_has_an_interface_that_ends_with_the_network(tmp_path):
    # As in Mininet's examples sshd.py and baresshd.py.
    said, warned = on_machine(tmp_path, """
from mininet.net import Mininet
from mininet.node import Node
from mininet.topo import SingleSwitchTopo
net = Mininet(SingleSwitchTopo(1))
root = Node('root', inNamespace=False)
intf = net.addLink(root, net['s1']).intf1
root.setIP('10.123.123.1/32', intf=intf)
net.start()
print('added', root.cmd(f'ip route add 10.0.0.0/24 dev {intf}').strip())
print('addresses', root.cmd(f'ip -4 -br addr show dev {intf}').strip())
net['h1'].cmd('ip route add 10.123.123.1 dev h1-eth0')
print('ping', ' 0% packet loss' in root.cmd('ping -c1 -W5 10.0.0.1'))
net.stop()
print('after')
""")
    before, after = said.split("after\n")
    assert before.splitlines()[0] == "added " and before.endswith("ping True\n")
    assert before.splitlines()[1].split() == ["addresses", "root-eth0", "UNKNOWN", "10.123.123.1/32"]
    assert "root-eth0" not in after and "10." not in after and "hw0" in after
    assert "script.py:9: warning: root: inNamespace=False: root-eth0 is an interface of the machine" in warned


@needs_lab
def test_an_interface_of_the_machine_is_a_port_of_a_switch(tmp_path):
    # As in Mininet's example hwintf.py.
    said, warned = on_machine(tmp_path, """
from mininet.link import Intf
from mininet.net import Mininet
from mininet.topo import SingleSwitchTopo
net = Mininet(SingleSwitchTopo(2))
intf = Intf('hw0', node=net['s1'])
net.start()
print('ping', ' 0% packet loss' in net['h2'].cmd('ping -c1 -W5 10.0.0.99'))
print('ports', net['s1'].cmd('ovs-vsctl list-ports s1').split(), net['s1'].ports[intf])
net.stop()
""")
    assert said.startswith("ping True\nports ['s1-eth1', 's1-eth2', 'hw0'] 3\n") and "hw0" in said.splitlines()[-1]
    assert "the machine's interface hw0 is a port of it" in warned


@needs_lab
def test_hosts_and_links_come_after_the_start_and_go(tmp_path):
    said = run_script(tmp_path, """
from mininet.net import Mininet
from mininet.topo import SingleSwitchTopo
net = Mininet(SingleSwitchTopo(2))
net.start()
net['h1'].cmd('ip addr add 10.7.0.1/24 dev h1-eth0')
h3 = net.addHost('h3')
link = net.addLink(h3, net['s1'])
h3.configDefault()
print('lost', net.pingAll())
s2 = net.addSwitch('s2')
s2.start(net.controllers)
net.addLink(net['h1'], s2)
h4 = net.addHost('h4', ip='10.9.0.4/24')
net.addLink(h4, s2)
h4.configDefault()
net['h1'].setIP('10.9.0.1/24', intf='h1-eth1')
print('lost', net.ping([net['h1'], net['h2'], h3]), ' 0% packet loss' in h4.cmd('ping -c1 -W5 10.9.0.1'))
print('kept', net['h1'].cmd('ip -4 -br addr show dev h1-eth0').split())
net.delLink(link)
print('lost', net.ping([net['h1'], h3], timeout=1))
net.stop()
""")
    found = [line for line in said.splitlines() if line.startswith(("lost", "kept"))]
    # In a lab of root's the interface is one end of a veth pair, which ip shows with its other end.
    found = [re.sub("@if[0-9]+', 'UP'", "', 'UNKNOWN'", line) for line in found]
    kept = "kept ['h1-eth0', 'UNKNOWN', '10.0.0.1/8', '10.7.0.1/24']"
    assert found == ["lost 0.0", "lost 0.0 True", kept, "lost 100.0"], said


@needs_lab
def test_a_port_of_a_switch_moves_and_gets_another_name(tmp_path):
    # As in Mininet's example mobility.py.
    said = run_script(tmp_path, """
from mininet.net import Mininet
from mininet.node import OVSSwitch
from mininet.topo import LinearTopo

class MobilitySwitch(OVSSwitch):
    def moveIntf(self, intf, switch, port):
        self.detach(intf)
        self.delIntf(intf)
        switch.addIntf(intf, port=port)
        intf.node = switch
        new = f'{switch.name}-eth{port}'
        intf.ifconfig('down')
        print('renamed', intf.cmd('ip link set', intf, 'name', new) == '', intf.name == new, new in switch.nameToIntf)
        intf.ifconfig('up')
        print('added', switch.cmd('ovs-vsctl add-port', switch, intf, '-- set Interface', intf,
                                  'ofport_request=%s' % port) == '',
              int(switch.cmd('ovs-vsctl get Interface', intf, 'ofport')) == port)

net = Mininet(LinearTopo(3), switch=MobilitySwitch)
net.start()
net.pingAll()
host = net['h1']
for old, new, port in (('s1', 's2', 17), ('s2', 's3', 11), ('s3', 's1', 12)):
    _, intf = host.connectionsTo(net[old])[0]
    net[old].moveIntf(intf, net[new], port)
    for switch in net.switches:
        switch.dpctl('del-flows')
    print('lost', net.pingAll())
net.stop()
""")
    found = [line for line in said.splitlines() if line.startswith(("renamed", "added", "lost"))]
    assert found == ["renamed True True True", "added True True", "lost 0.0"] * 3, said


@needs_lab
@pytest.mark.parametrize(("command", "answer"), [
    ("ovs-vsctl --if-exists get Interface none ofport", ""),
    ("ovs-vsctl --if-exists get Bridge none datapath_id", ""),
    ("ovs-vsctl --if-exists get Interface s1-eth1 ofport", "1"),
    ("ovs-vsctl get Interface none ofport", 'ovs-vsctl: no row "none" in table Interface'),
    ("ovs-vsctl add-port s2 s1-eth1", "ovs-vsctl: cannot create a port named s1-eth1 because a port named s1-eth1 "
                                      "already exists on bridge s1"),
    ("ovs-vsctl --may-exist add-port s2 s1-eth1", 'ovs-vsctl: "--may-exist add-port s2 s1-eth1" but s1-eth1 is '
                                                  "actually attached to bridge s1"),
    ("ip link set s1-eth1 name s2-eth1", "ip: RTNETLINK answers: File exists"),
])
def test_ports_are_named_as_by_open_vswitch(tmp_path, command, answer):
    said = run_script(tmp_path, f"""
from mininet.net import Mininet
from mininet.topo import LinearTopo
net = Mininet(LinearTopo(2))
net.start()
print('said', repr(net['s1'].cmd({command!r}).strip()))
net.stop()
""")
    assert f"said {answer!r}" in said, said
