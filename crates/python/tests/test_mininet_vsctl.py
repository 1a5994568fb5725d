"""Lines of ovs-vsctl as scripts, tutorials and courses have them: each has its effect, or is refused."""

import json

import pytest
from fastpath.mininet import programs
from fastpath.mininet.network import Refused, Wrong

SWITCHES = {
    "s1": {
        "dpid": "0000000000000001", "ports": {"s1-eth1": 1, "s1-eth2": 2}, "listen": 6654,
        "controllers": ["tcp:127.0.0.1:6653"], "fail_mode": "secure", "in_ring": False,
    },
    "s2": {"dpid": "0000000000000002", "ports": {"s2-eth1": 1}, "listen": None, "controllers": []},
}

DONE, WARNED, REFUSED, WRONG = "done", "warned", "refused", "wrong"

# What a line does, and the word that its message names.
LINES = [
    # Bridges and ports.
    ("show", DONE, ""),
    ("list-br", DONE, ""),
    ("list-ports s1", DONE, ""),
    ("list-ifaces s1", DONE, ""),
    ("add-br br0", DONE, ""),
    ("--may-exist add-br s1", DONE, ""),
    ("add-br s1", WRONG, "s1"),
    ("add-br br0 -- add-port br0 h1-eth1 -- add-port br0 h1-eth2", DONE, ""),
    ("add-br br10 s1 10", REFUSED, "br10"),
    ("del-br s1", REFUSED, "del-br s1"),
    ("--if-exists del-br br9", DONE, ""),
    ("del-br br9", WRONG, "br9"),
    ("add-port s1 eth1", REFUSED, "link"),
    ("add-port s1 s1-eth1", DONE, ""),
    ("--may-exist add-port s1 s1-eth1", DONE, ""),
    ("add-port s9 eth1", WRONG, "s9"),
    ("add-port s1 s1-eth1 tag=10", REFUSED, "tag=10"),
    ("add-port s1 eth1 trunks=10,20", REFUSED, "trunks=10,20"),
    ("del-port s1 s1-eth1", REFUSED, "del-port"),
    ("del-port s1-eth2", REFUSED, "del-port"),
    ("--if-exists del-port s1 eth9", DONE, ""),
    ("add-bond s1 bond0 eth1 eth2 lacp=active", REFUSED, "add-bond"),
    # Tunnels and patch ports.
    ("add-port s1 vxlan1 -- set interface vxlan1 type=vxlan options:remote_ip=10.0.0.2", REFUSED, "vxlan1"),
    ("add-port s1 gre0 -- set interface gre0 type=gre options:remote_ip=192.168.1.2", REFUSED, "gre0"),
    ("add-port s1 patch0 -- set interface patch0 type=patch options:peer=patch1", REFUSED, "patch0"),
    ("set interface s1-eth1 type=patch options:peer=p0", REFUSED, "type=patch"),
    ("add-port s1 vi1 -- set interface vi1 type=internal", REFUSED, "vi1"),
    # VLANs.
    ("set port s1-eth1 tag=10", REFUSED, "tag=10"),
    ("set Port s1-eth1 trunks=10,20", REFUSED, "trunks=10,20"),
    ("set port s1-eth1 vlan_mode=native-untagged tag=1", REFUSED, "vlan_mode"),
    ("clear port s1-eth1 tag", DONE, ""),
    ("remove port s1-eth1 tag 10", REFUSED, "remove"),
    # Mirrors.
    ("-- --id=@p get port s1-eth1 -- --id=@m create mirror name=m0 select-all=true output-port=@p"
     " -- set bridge s1 mirrors=@m", REFUSED, "get port"),
    ("-- set bridge s1 mirrors=@m -- --id=@m create mirror name=m0 select-all=true", REFUSED, "mirrors=@m"),
    ("clear bridge s1 mirrors", DONE, ""),
    ("list mirror", REFUSED, "list mirror"),
    # Queues.
    ("set port s1-eth1 qos=@newqos -- --id=@newqos create qos type=linux-htb other-config:max-rate=10000000"
     " queues=0=@q0 -- --id=@q0 create queue other-config:max-rate=1000000", REFUSED, "qos=@newqos"),
    ("--id=@q create queue other-config:min-rate=1000000", REFUSED, "create queue"),
    ("--all destroy qos -- --all destroy queue", DONE, ""),
    ("destroy qos 1b2c", REFUSED, "destroy qos"),
    ("clear port s1-eth1 qos", DONE, ""),
    ("list qos", REFUSED, "list qos"),
    ("list queue", REFUSED, "list queue"),
    ("set interface s1-eth1 ingress_policing_rate=1000", REFUSED, "ingress_policing_rate"),
    ("set interface s1-eth1 ingress_policing_burst=100", REFUSED, "ingress_policing_burst"),
    # Controllers, modes, versions.
    ("set-controller s1 tcp:127.0.0.1:6653", DONE, ""),
    ("set-controller s1 tcp:127.0.0.1", DONE, ""),
    ("set-controller s1 tcp:10.0.0.9:6633", REFUSED, "RemoteController"),
    ("set-controller s1 ssl:10.0.0.9:6633", REFUSED, "RemoteController"),
    ("set-controller s1 ptcp:6634", REFUSED, "RemoteController"),
    ("get-controller s1", DONE, ""),
    ("set-fail-mode s1 secure", DONE, ""),
    ("set-fail-mode s1 open", WRONG, "open"),
    ("get-fail-mode s1", DONE, ""),
    ("set bridge s1 fail-mode=secure", DONE, ""),
    ("set bridge s1 protocols=OpenFlow13", DONE, ""),
    ("set bridge s1 protocols=OpenFlow10", WARNED, "OpenFlow10"),
    ("set Bridge s1 protocols=OpenFlow10,OpenFlow12,OpenFlow13", DONE, ""),
    ("set bridge s1 protocols=OpenFlow99", WRONG, "OpenFlow99"),
    ("set bridge s1 datapath_type=netdev", WARNED, "datapath_type"),
    ("set bridge s1 other-config:datapath-id=0000000000000001", DONE, ""),
    ("set bridge s1 other-config:datapath-id=00000000000000ff", REFUSED, "dpid"),
    ("set bridge s1 other_config:disable-in-band=true", WARNED, "disable-in-band"),
    ("set bridge s1 other-config:hwaddr=00:00:00:00:00:01", REFUSED, "hwaddr"),
    ("set bridge s1 stp_enable=true", DONE, ""),
    ("set bridge s1 mcast_snooping_enable=true", REFUSED, "mcast_snooping_enable"),
    ("set controller s1 connection-mode=out-of-band", WARNED, "connection-mode"),
    ("set-manager ptcp:6640", REFUSED, "set-manager"),
    ("set-ssl key cert ca", REFUSED, "set-ssl"),
    # Monitoring.
    ("-- --id=@s create sflow agent=eth0 target=\\\"10.0.0.1:6343\\\" -- set bridge s1 sflow=@s", REFUSED, "create sflow"),
    ("-- set bridge s1 netflow=@n -- --id=@n create netflow targets=\\\"10.0.0.1:2055\\\"", REFUSED, "netflow=@n"),
    # Questions.
    ("get interface s1-eth1 ofport", DONE, ""),
    ("get Interface s1-eth1 statistics", REFUSED, "statistics"),
    ("get bridge s1 datapath_id", DONE, ""),
    ("list interface s1-eth1", REFUSED, "list interface"),
    ("--columns=name,ofport list interface", REFUSED, "--columns"),
    ("--format=json list bridge", REFUSED, "--format"),
    ("find interface type=patch", REFUSED, "find interface"),
    ("set interface s1-eth1 ofport_request=1", DONE, ""),
    ("set interface s1-eth1 ofport_request=9", REFUSED, "ofport_request=9"),
    ("set interface s1-eth1 mtu_request=9000", REFUSED, "mtu_request"),
    ("emer-reset", REFUSED, "emer-reset"),
    ("add-prot s1 eth1", REFUSED, "add-prot"),
]


@pytest.fixture
def network(tmp_path):
    (tmp_path / "switches.json").write_text(json.dumps(SWITCHES))
    return tmp_path


def run(directory, line):
    """Return what a line does, and its messages."""
    import shlex

    from fastpath.mininet import remarks

    said = []
    written = remarks.write
    remarks.write = lambda _directory, _kind, text: said.append(text)
    try:
        programs._run(str(directory), "ovs-vsctl", shlex.split(line))
    except Refused as refused:
        return REFUSED, str(refused)
    except Wrong as wrong:
        return WRONG, str(wrong)
    finally:
        remarks.write = written
    return (WARNED if said else DONE), " ".join(said)


@pytest.mark.parametrize(("line", "does", "names"), LINES)
def test_a_line_has_its_effect_or_is_refused_by_name(network, line, does, names):
    found, text = run(network, line)
    assert found == does, text
    assert names in text


def test_half_of_a_line_is_nothing(network):
    assert run(network, "add-br br0 -- add-port br9 eth1")[0] == WRONG
    assert run(network, "del-br br0")[0] == WRONG, "it was not added"
    assert run(network, "add-br br0 -- add-port br0 eth1")[0] == DONE
    assert run(network, "del-br br0")[0] == DONE
