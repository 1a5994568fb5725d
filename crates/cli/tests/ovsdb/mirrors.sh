# Mirrors, as scripts make, read and remove them.
host a va 10.0.0.1
host b vb 10.0.0.2
host c vc 10.0.0.3
vsctl add-br br0 -- add-port br0 va -- add-port br0 vb -- add-port br0 vc
soon reaches a 10.0.0.2
soon reaches a 10.0.0.3
# received NAME: frames that a host has received.
received() { ip -n "$1" -s -j link show eth0 | sed 's/.*"rx":{"bytes":[0-9]*,"packets":\([0-9]*\).*/\1/'; }
ping_b() { ip netns exec a ping -q -f -c 200 -W 1 10.0.0.2 > ping.log 2>&1; }
# copied LEAST MOST: the frames that c receives while a pings b two hundred times.
copied() {
    before=$(received c)
    ping_b
    sleep 0.3
    count=$(($(received c) - before))
    [ "$count" -ge "$1" ] && [ "$count" -le "$2" ] || { echo "c has received $count frames"; return 1; }
}
copied 0 20
vsctl -- --id=@c get port vc -- --id=@m create mirror name=m0 select-all=true output-port=@c \
    -- set bridge br0 mirrors=@m
# A request and an answer, each once, though both are received and sent.
copied 400 420
# c is for the copies alone.
never_reaches a 10.0.0.3
vsctl set mirror m0 select_all=false -- --id=@a get port va -- set mirror m0 select_src_port=@a
copied 200 210
vsctl --id=@a get port va -- set mirror m0 select_dst_port=@a -- clear mirror m0 select_src_port
copied 200 210
vsctl set mirror m0 select_vlan=5
copied 0 5
vsctl clear mirror m0 select_vlan
copied 200 210
mirrored() { vsctl get mirror m0 statistics:tx_packets; }
thousand() { [ "$(mirrored)" -ge 1000 ]; }
soon thousand
vsctl set mirror m0 filter='"icmp"' > filter.log 2>&1 || grep -q 'filter' filter.log
vsctl clear bridge br0 mirrors
copied 0 20
soon reaches a 10.0.0.3
vsctl -- --id=@m create mirror name=m1 select-all=true -- set bridge br0 mirrors=@m
has 'mirror m1: write output_port or output_vlan' vsctl get bridge br0 status
soon reaches a 10.0.0.2
vsctl clear bridge br0 mirrors
# Ports of other bridges are named.
vsctl add-br br1
vsctl -- --id=@o get port br1 -- --id=@a get port va -- --id=@c get port vc \
    -- --id=@m create mirror name=m2 select_src_port=@o,@a select_dst_port=@o output_port=@c -- set bridge br0 mirrors=@m
has 'mirror m2: select_src_port: port br1 is not in this bridge' vsctl get bridge br0 status
has 'mirror m2: select_dst_port: port br1 is not in this bridge' vsctl get bridge br0 status
copied 200 210
