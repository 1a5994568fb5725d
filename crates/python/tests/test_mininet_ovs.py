"""ovs-ofctl, ovs-vsctl and tools of the machine in scripts of Mininet: what they ask for is done, or ends
the script with its line."""

import pytest
from conftest import needs_lab, run_script as run

NET = """
import os, subprocess
from functools import partial
from mininet.net import Mininet
from mininet.node import Controller, OVSBridge, OVSSwitch, RemoteController
from mininet.topo import SingleSwitchTopo
from mininet.util import errRun, quietRun
MODE = {mode!r}
made = dict(
    taught=dict(),
    standalone=dict(controller=None, switch=partial(OVSSwitch, failMode='standalone')),
    secure=dict(controller=None),
    remote=dict(controller=partial(RemoteController, ip='127.0.0.1', port=1)),
    bridge=dict(switch=OVSBridge),
)[MODE]
net = Mininet(topo=SingleSwitchTopo(2), autoSetMacs=True, autoStaticArp=True, **made)
net.start()
s1, h1, h2 = net.get('s1', 'h1', 'h2')
def loss(name):
    print('LOSS', name, int(net.ping([h1, h2], timeout=1)))
"""
LEARNS = {"taught": True, "standalone": True, "bridge": True, "secure": False, "remote": False}


@needs_lab
@pytest.mark.parametrize("mode", LEARNS)
def test_flows_are_one_table_in_every_mode(tmp_path, mode):
    said = run(tmp_path, NET.format(mode=mode) + """
print('FIRST', s1.cmd('ovs-ofctl dump-flows s1'), 'END')
loss('first')
s1.cmd('ovs-ofctl -O OpenFlow13 add-flow s1 "cookie=0x7,priority=9,in_port=s1-eth1,actions=output:2"')
s1.dpctl('add-flow', 'priority=9,in_port=2,actions=output:1')
loss('forwarded')
print('SECOND', quietRun('ovs-ofctl dump-flows s1 in_port=1'), 'END')
os.system('ovs-ofctl mod-flows s1 cookie=7/-1,actions=drop')
loss('modified')
s1.cmd('ovs-ofctl --strict del-flows s1 priority=9,in_port=1')
s1.cmd('ovs-ofctl --strict del-flows s1 priority=9,in_port=2')
loss('deleted')
print('LAST', s1.cmd('ovs-ofctl dump-flows s1'), 'END')
print('WHOLE', s1.cmd('ovs-ofctl dump-aggregate s1'))
net.stop()
""")
    learns = LEARNS[mode]
    first, second, last = (said.split(word)[1].split("END")[0] for word in ("FIRST", "SECOND", "LAST"))
    assert (first.strip() != "") == learns and first.count("actions=") == int(learns), first
    assert ("priority=0 actions=NORMAL" in first) == learns
    assert "cookie=0x7" in second and "priority=9,in_port=1 actions=output:2" in second and second.count("actions=") == 1
    assert "n_packets=0," not in second, "its packets are counted"
    before = 0 if learns else 100
    for name, wanted in (("first", before), ("forwarded", 0), ("modified", 100), ("deleted", before)):
        assert f"LOSS {name} {wanted}" in said, said
    assert last.count("actions=") == int(learns)
    assert f"flow_count={int(learns)}" in said


@needs_lab
@pytest.mark.parametrize(("command", "named"), [
    ("s1.cmd('ovs-vsctl -- --id=@m create mirror name=m0 -- add bridge s1 mirrors @m')", "create mirror"),
    ("os.system('ovs-vsctl set port s1-eth1 tag=10')", "set port s1-eth1 tag=10"),
    ("s1.vsctl('set port s1-eth1 qos=@q -- --id=@q create qos type=linux-htb')", "set port s1-eth1 qos=@q"),
    ("subprocess.run(['ovs-vsctl', 'add-port', 's1', 's1-eth2', 'tag=10'])", "no setting 'tag=10'"),
    ("quietRun('ovs-vsctl set interface s1-eth1 ingress_policing_rate=1000')", "parameters of TCLink"),
    ("errRun('ovs-vsctl del-port s1 s1-eth1')", "del-port s1 s1-eth1"),
    ("s1.cmd('ovs-vsctl set bridge s1 mcast_snooping_enable=true')", "mcast_snooping_enable"),
    ("s1.cmd('ovs-vsctl set bridge s1 other-config:datapath-id=00000000000000ff')", "dpid='00000000000000ff'"),
    ("s1.cmd('ovs-vsctl set-controller s1 tcp:10.0.0.9:6653')", "RemoteController"),
    ("s1.cmd('ovs-vsctl --db=tcp:1.2.3.4:6640 show')", "--db=tcp:1.2.3.4:6640"),
    ("s1.cmd('ovs-ofctl add-flow s1 in_prt=1,actions=output:2')", "1: unknown field 'in_prt'"),
    ("s1.cmd('ovs-ofctl add-flow s1 ip,actions=outptu:2')", "unknown action 'outptu'"),
    ("s1.cmd('ovs-ofctl add-flow s1 \"nsh_spi=1,actions=drop\"')", "nsh_spi"),
    ("s1.cmd('ovs-ofctl add-flow s1 actions=group:7 >/dev/null 2>&1 &')\nwhile True: pass", "refuses it"),
    ("s1.cmd('ovs-ofctl del-flows s1 in_prt=1')", "in_prt"),
    ("s1.cmd('ovs-ofctl mod-port s1 1 no-flood')", "no-flood"),
    ("s1.cmd('ovs-vsctl clear bridge s1 external_ids')", "external_ids"),
    ("s1.cmd('ovs-ofctl --stirct del-flows s1')", "--stirct"),
    ("s1.cmd('ovs-ofctl add-flwo s1 actions=drop')", "add-flwo"),
    ("h1.cmd('ovs-ofctl monitor s1')", "monitor"),
    ("os.system('sudo -E ovs-vsctl set port s1-eth1 tag=10')", "set port s1-eth1 tag=10"),
    ("subprocess.call(['sudo', 'tc', 'qdisc', 'add', 'dev', 's1-eth1', 'root', 'netem'])", "TCLink"),
    ("s1.cmd('ovs-appctl fdb/show s1')", "ovs-appctl: fdb/show s1"),
    ("s1.cmd('tc qdisc add dev s1-eth1 root netem delay 10ms')", "TCLink"),
    ("s1.cmd('ifconfig s1-eth1 mtu 9000')", "s1-eth1 is a port inside the engine"),
    ("s1.cmd('ip addr add 10.0.0.9/8 dev s1-eth1')", "s1-eth1 is a port inside the engine"),
])
def test_what_is_not_done_ends_the_script_with_its_line(tmp_path, command, named):
    text = NET.format(mode="taught") + f"try:\n    {command.replace(chr(10), chr(10) + '    ')}\nexcept Exception:\n    pass\n"
    line = text[: text.index(command.splitlines()[0])].count("\n") + 1
    said = run(tmp_path, text + "print('NOT REACHED')\nnet.stop()\n", code=1)
    assert "NOT REACHED" not in said and named in said, said
    ends = [found for found in said.splitlines() if found.startswith("script.py:")]
    places = [line, line + command.count("\n")]
    assert ends and any(ends[-1].startswith(f"script.py:{place}: ") for place in places), said
    assert "Traceback" not in said


@needs_lab
def test_what_open_vswitch_refuses_too_is_text_and_a_warning(tmp_path):
    said = run(tmp_path, NET.format(mode="secure") + """
print('A', s1.cmd('ovs-ofctl add-flow s9 actions=drop'))
print('B', errRun('ovs-vsctl get-fail-mode s9')[1:])
print('C', s1.cmd('ovs-ofctl add-flow s1 in_port=1, actions=drop'))
print('D', s1.cmd('ovs-vsctl add-br s1'))
print('E', s1.cmd('ovs-vsctl --may-exist add-br s1'), s1.cmd('ovs-vsctl --if-exists del-br s8'))
print('F', s1.cmd('ovs-vsctl set bridge s1 protocols=OpenFlow10'))
net.stop()
""")
    assert "A ovs-ofctl: no bridge named s9 (have: s1)" in said
    assert "B ('ovs-vsctl: no bridge named s9 (have: s1)\\n', 1)" in said
    assert "C ovs-ofctl: 'add-flow' command takes at most 2 arguments" in said
    assert "D ovs-vsctl: cannot create a bridge named s1 because" in said
    assert "E  \n" in said
    for number in (22, 23, 24, 25, 27):
        assert f"script.py:{number}: warning: ovs-" in said, said
    assert "script.py:27: warning: ovs-vsctl: set bridge s1 protocols=OpenFlow10: s1 speaks OpenFlow 1.3" in said


@needs_lab
def test_controllers_and_fail_modes_of_ovs_vsctl(tmp_path):
    said = run(tmp_path, NET.format(mode="taught") + """
s1.cmd('ovs-ofctl del-flows s1')
loss('taught again')
print('MODE', s1.cmd('ovs-vsctl get-fail-mode s1'), s1.cmd('ovs-vsctl get-controller s1'))
s1.cmd('ovs-vsctl del-controller s1')
print('NONE', repr(s1.cmd('ovs-ofctl dump-flows s1')), repr(s1.cmd('ovs-vsctl get-controller s1')))
loss('secure')
s1.cmd('ovs-vsctl set-fail-mode s1 standalone')
loss('standalone')
s1.cmd('ovs-ofctl del-flows s1')
loss('deleted')
net.stop()
""")
    assert "MODE secure\n tcp:127.0.0.1:6653" in said
    assert "NONE '' '\\n'" in said
    for name, wanted in (("taught again", 0), ("secure", 100), ("standalone", 0), ("deleted", 100)):
        assert f"LOSS {name} {wanted}" in said, said


@needs_lab
def test_groups_meters_and_files_of_flows(tmp_path):
    (tmp_path / "flows.txt").write_text("# both ways\nin_port=1,actions=group:1\nin_port=2,actions=output:s1-eth1\n")
    said = run(tmp_path, NET.format(mode="secure") + """
s1.cmd('ovs-ofctl -O OpenFlow13 add-group s1 group_id=1,type=indirect,bucket=output:2')
s1.cmd('ovs-ofctl -OOpenFlow13 add-meter s1 meter=1,kbps,bands=type=drop,rate=1000')
s1.cmd('ovs-ofctl --bundle add-flows s1 flows.txt')
loss('groups')
print('GROUPS', s1.cmd('ovs-ofctl dump-groups s1'), s1.cmd('ovs-ofctl dump-meters s1'))
print('PORTS', s1.cmd('ovs-ofctl dump-ports s1 1'))
s1.cmd('echo priority=3,actions=NORMAL | ovs-ofctl replace-flows s1 -')
print('FLOWS', s1.cmd('ovs-ofctl dump-flows s1'))
print('HOST', h1.cmd('ovs-ofctl dump-flows s1').count('NORMAL'))
s1.cmd('ovs-ofctl del-groups s1 group_id=1')
print('GONE', repr(s1.cmd('ovs-ofctl dump-groups s1')))
s1.cmd('ip link set dev s1-eth1 down')
loss('down')
os.system('ifconfig s1-eth1 up')
loss('up')
s1.cmd('ovs-ofctl mod-port s1 2 down')
loss('port down')
s1.cmd('ovs-ofctl mod-port s1 s1-eth2 up')
loss('port up')
print('CLEARED', repr(s1.cmd('ovs-vsctl -- --all destroy qos -- --all destroy queue -- clear port s1-eth1 qos')))
net.stop()
""")
    assert "LOSS groups 0" in said
    assert "group_id=1,type=indirect,bucket=actions=output:2" in said and "meter=1 kbps" in said
    assert "rx pkts=" in said and "rx pkts=0" not in said
    assert "priority=3 actions=NORMAL" in said and "HOST 1" in said
    assert "LOSS port down 100" in said and "LOSS port up 0" in said and "CLEARED ''" in said
    assert "GONE ''" in said and "LOSS down 100" in said and "LOSS up 0" in said


RING = """
from functools import partial
from mininet.net import Mininet
from mininet.node import OVSSwitch
net = Mininet({how})
if not {how!r}:
    net.addController('c0')
s = [net.addSwitch('s%d' % n) for n in (1, 2, 3)]
h = [net.addHost('h%d' % n) for n in (1, 2)]
for a, b in ((s[0], s[1]), (s[1], s[2]), (s[2], s[0]), (h[0], s[0]), (h[1], s[1])):
    net.addLink(a, b)
net.start()
print('LOSS', int(net.pingAll(timeout=1)))
s[0].cmd('{command}')
print('REACHED')
net.stop()
"""


@needs_lab
def test_a_ring_of_learning_switches_is_cut_and_takes_no_flows(tmp_path):
    flow = "ovs-ofctl add-flow s1 priority=5,actions=drop"
    said = run(tmp_path, RING.format(how="", command=flow), code=1)
    assert "LOSS 0" in said and "REACHED" not in said
    assert "s1 is part of a ring of switches" in said
    stp = "ovs-vsctl set bridge s1 stp_enable=true"
    assert "REACHED" in run(tmp_path, RING.format(how="", command=stp))
    made = "controller=None, switch=lambda name, **given: OVSSwitch(name, stp=True, **given)"
    said = run(tmp_path, RING.format(how=made, command=stp), code=1)
    assert ": stp=True: loops of switches with flow tables are not cut" in said
    said = run(tmp_path, RING.format(how="controller=None", command=stp), code=1)
    assert "loops of switches with flow tables are not cut" in said


@needs_lab
def test_a_script_that_speaks_of_no_flows_says_how_to_take_them(tmp_path):
    text = NET.format(mode="taught") + """
s1.cmd(''.join(['ovs-of', 'ctl add-flow s1 priority=5,actions=drop']))
print('REACHED')
"""
    said = run(tmp_path, text, code=1)
    assert "--openflow SCRIPT" in said and "REACHED" not in said
    assert "REACHED" in run(tmp_path, text, options=["--openflow"])


@needs_lab
def test_commands_typed_at_the_prompt_change_flows(tmp_path):
    text = NET.format(mode="taught") + "from mininet.cli import CLI\nCLI(net)\nnet.stop()\n"
    typed = "dpctl add-flow priority=7,icmp,actions=drop\nsh ovs-ofctl dump-flows s1\nh1 ping -c1 -W1 h2\nexit\n"
    said = run(tmp_path, text, given=typed)
    assert "priority=7,icmp actions=drop" in said and "100% packet loss" in said
    said = run(tmp_path, text, given="sh ovs-vsctl set port s1-eth1 tag=3\nh1 echo after\n", code=1)
    assert "set port s1-eth1 tag=3" in said and "after" not in said


@needs_lab
def test_a_command_before_the_network_says_so(tmp_path):
    said = run(tmp_path, """
from mininet.net import Mininet
net = Mininet(controller=None)
s1, h1 = net.addSwitch('s1'), net.addHost('h1')
net.addLink(h1, s1)
print('EARLY', s1.cmd('ovs-ofctl add-flow s1 actions=drop'))
""")
    assert "EARLY ovs-ofctl: s1 is not a bridge or a socket: the network has not started" in said


@needs_lab
@pytest.mark.parametrize("made", [
    "partial(Controller, command=sys.executable, cargs='-m fastpath.mininet.programs / controller ptcp:%d')",
    "Own",
])
def test_a_controller_of_the_script_is_started_and_connected_to(tmp_path, made):
    said = run(tmp_path, f"""
import sys, time
from functools import partial
from mininet.net import Mininet
from mininet.node import Controller
from mininet.topo import SingleSwitchTopo
class Own(Controller):
    def start(self):
        self.cmd(sys.executable, '-m fastpath.mininet.programs / controller ptcp:%d &' % self.port)
net = Mininet(topo=SingleSwitchTopo(2), controller=partial({made}, port=26655))
net.start()
s1 = net['s1']
while 'NORMAL' not in s1.cmd('ovs-ofctl dump-flows s1'):
    time.sleep(0.1)
print('LOSS', int(net.pingAll()))
print('REMOTE', s1.cmd('ovs-vsctl show').count('is_connected: true'))
net.stop()
""")
    assert "LOSS 0" in said and "REMOTE 1" in said


@needs_lab
@pytest.mark.parametrize(("words", "named"), [
    ("net.addLink(h1, s1, bw=10)", "bw: Intf has no such values; write link=TCLink"),
    ("net.addLink(h1, s1, cls=TCLink, bandwidth=10)", "bandwidth has no effect"),
    ("net.addLink(h1, s1, cls=TCLink, bw=10, dealy='5ms')", "dealy has no effect; write delay"),
    ("net.addLink(h1, s1, cls=TCLink, jitter='5ms')", "jitter has no effect without delay"),
    ("net.addLink(h1, s1, cls=TCLink, delay='5ms', max_queue_size=7)", "max_queue_size has no effect without bw"),
    ("net.addLink(h1, s1); net.addHost('h3', ipp='10.0.0.9/8').config(**net['h3'].params)", "ipp has no effect; write ip"),
    ("net.addLink(h1, s1); net.addSwitch('s2', dpidd='2')", "dpidd has no effect; write dpid"),
])
def test_parameters_without_an_effect_are_named_with_their_line(tmp_path, words, named):
    said = run(tmp_path, f"""
from mininet.net import Mininet
from mininet.link import TCLink
net = Mininet()
h1, s1 = net.addHost('h1'), net.addSwitch('s1')
{words}
""")
    assert "script.py:6: warning: " in said and named in said, said


def test_the_defaults_of_mininet_and_parameters_of_a_class_of_the_script_are_quiet(tmp_path):
    said = run(tmp_path, """
from mininet.net import Mininet
from mininet.link import TCLink
from mininet.node import CPULimitedHost, Node
class Own(Node):
    def config(self, mine=None, **params):
        print('MINE', mine)
        super().config(**params)
net = Mininet(link=TCLink, autoSetMacs=True, autoPinCpus=True)
h1, s1 = net.addHost('h1', ip='10.0.0.7/8'), net.addSwitch('s1', protocols='OpenFlow13', failMode='secure')
own = net.addHost('own', cls=Own, mine=7, other=8)
net.addLink(h1, s1, bw=10, delay='1ms', jitter='1ms', loss=1, max_queue_size=9, use_htb=True)
net.addLink(own, s1, 0, 5, params1={'ip': '10.0.0.8/8'}, intfName2='s1-own')
net.build()
""")
    assert "MINE 7" in said and "warning" not in said
