import struct

import numpy as np
import pytest

import fastpath as fp

RULES = """
table=0,priority=200,tcp,tp_dst=80,actions=mod_dl_dst:02:00:00:00:00:09,output:2
table=0,priority=100,arp,actions=flood
table=0,priority=0,actions=drop
"""


def tcp(port):
    """An Ethernet frame with a TCP segment to a port."""
    ip = struct.pack(">BBHHHBBH4s4s", 0x45, 0, 40, 0, 0, 64, 6, 0, bytes([10, 0, 0, 1]), bytes([10, 0, 0, 2]))
    segment = struct.pack(">HHIIBBHHH", 1234, port, 0, 0, 0x50, 2, 1000, 0, 0)
    return b"\x02\0\0\0\0\x02\x02\0\0\0\0\x01\x08\x00" + ip + segment


ARP = b"\xff" * 6 + b"\x02\0\0\0\0\x01" + b"\x08\x06" + bytes(46)


def test_frames_are_edited_copied_and_counted():
    switch = fp.Switch(3, RULES)
    out = switch.send(1, [tcp(80), ARP, tcp(22)])
    assert out.packet.tolist() == [0, 1, 1, 2]
    assert out.port.tolist() == [2, 2, 3, 0]
    assert out.end.tolist() == ["sent", "sent", "sent", "no-output"] and out.drops == {"no-output": 1}
    assert out.frames[0][:6].hex() == "020000000009" and out.frames[0][6:] == tcp(80)[6:]
    assert out.frames[1] == ARP and out.frames[3] == b""
    assert [flow["packets"] for flow in switch.flows(0)] == [1, 1, 1]
    assert switch.flows()[0]["bytes"] == len(tcp(80)) and "tp_dst=80" in switch.flows()[0]["match"]
    by_name = {port["name"]: port for port in switch.ports()}
    assert (by_name["p1"]["rx_packets"], by_name["p2"]["tx_packets"], by_name["p3"]["tx_packets"]) == (3, 2, 1)
    assert switch.tables() == [{"table": 0, "flows": 3, "lookups": 3, "matched": 3, "missed": 0}]


def test_arrays_give_what_lists_give():
    frames = [tcp(80), tcp(22), tcp(80)]
    ports = [1, 2, 3]
    one, other = fp.Switch(3, RULES), fp.Switch(3, RULES)
    listed = one.send(np.asarray(ports), frames)
    array = other.send(ports, np.frombuffer(b"".join(frames), np.uint8).reshape(3, -1))
    assert listed.frames == array.frames and listed.port.tolist() == array.port.tolist()
    assert one.flows() == other.flows()


def test_flows_are_deleted_by_match_and_end_by_time():
    switch = fp.Switch(2, RULES)
    assert switch.delete("tcp") == 1 and switch.delete("table=7") == 0
    assert switch.delete("priority=100,arp", strict=True) == 1
    assert switch.delete() == 1 and switch.flows() == []
    switch.add("in_port=p1,hard_timeout=2,actions=output:2")
    assert switch.send("p1", tcp(80), [10**12]).port.tolist() == [2]
    assert switch.send("p1", tcp(80), [3 * 10**12]).drops == {"table-miss": 1}


def test_a_group_follows_the_state_of_links():
    switch = fp.Switch(3, [
        "group_id=1,type=ff,bucket=watch_port:2,actions=output:2,bucket=watch_port:3,actions=output:3",
        "actions=group:1",
    ])
    assert switch.send(1, tcp(80)).port.tolist() == [2]
    switch.set_link(2, "down")
    assert switch.send(1, tcp(80)).port.tolist() == [3]


def test_a_path_is_explained():
    text = fp.Switch(2, RULES).explain("in_port=1,tcp,tp_dst=80")
    assert "priority=200" in text and "output to port 2" in text
    assert "output to port 2" in fp.Switch(["lan", "wan"], RULES).explain(tcp(80), in_port="lan")


def test_every_mistake_in_rules_has_its_line():
    with pytest.raises(fp.Mistakes) as raised:
        fp.Switch(2, "actions=output:2\nnw_dst=10.0.0.300,ip,actions=drop\nin_port=1")
    places = [mistake.place for mistake in raised.value.mistakes]
    assert places == ["rules:2", "rules:3"] and "10.0.0.300" in str(raised.value)
    switch = fp.Switch(2)
    with pytest.raises(fp.Mistakes, match="rules:1"):
        switch.add("actions=group:7")
    with pytest.raises(fp.Mistakes, match="match:1"):
        switch.delete("nw_dst=ten,ip")


@pytest.mark.parametrize(("call", "said"), [
    (lambda s: s.send("p9", b""), r"no port p9 \(have: p1, p2\)"),
    (lambda s: s.send(0, b""), "0 is not a port"),
    (lambda s: s.send([1, 2], [b""]), "2 ports and 1 frames"),
    (lambda s: s.send([1.5], [b""]), "write a number, a name"),
    (lambda s: s.send([0], [b""]), r"ports\[0\] = 0 is not a port"),
    (lambda s: s.send(1, ["text"]), r"frames\[0\] is str; write bytes"),
    (lambda s: s.send(1, 7), "frames are int; write a list of bytes"),
    (lambda s: s.send(1, "text"), "frames are str"),
    (lambda s: s.send(1, np.zeros((1, 60))), "float64"),
    (lambda s: s.send(1, [b"", b""], [5, 3]), r"times_ps\[1\] = 3 ps is before 5 ps"),
    (lambda s: s.send(1, [b""], [np.nan]), r"times\[0\] is nan"),
    (lambda s: s.send(1, [b""], [0, 1]), "2 times and 1 frames"),
    (lambda s: s.set_link(7, "up"), r"no port 7 \(have: 1 p1, 2 p2\)"),
    (lambda s: s.set_link(1, "sideways"), "write 'up' or 'down'"),
    (lambda s: s.explain("nonsense=1"), "nonsense"),
    (lambda s: fp.Switch(-1), "write 0 to"),
    (lambda s: fp.Switch(2, tables=255), "write 1 to 254"),
    (lambda s: fp.Switch(["a", "a"]), "port 'a'"),
])
def test_bad_arguments_are_refused_with_what_to_write(call, said):
    with pytest.raises(fp.Error, match=said):
        call(fp.Switch(2))


def test_times_go_on_from_call_to_call():
    switch = fp.Switch(1)
    switch.send(1, b"", [7])
    with pytest.raises(fp.Error, match=r"times_ps\[0\] = 6 ps is before 7 ps"):
        switch.send(1, b"", [6])
