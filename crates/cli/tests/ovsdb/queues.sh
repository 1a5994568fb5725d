# Queues of ports, as scripts make them; `set_queue` and `enqueue` change the rate that is measured.
host a va 10.0.0.1
host b vb 10.0.0.2
vsctl add-br br0 -- add-port br0 va -- add-port br0 vb
soon reaches a 10.0.0.2
export OVS_RUNDIR="$DIRECTORY"
# The bridge by its name, as scripts write it.
ovs-ofctl dump-flows br0 > flows.log
grep -q NORMAL flows.log
bytes() { ip -n b -s -j link show eth0 | sed 's/.*"rx":{"bytes":\([0-9]*\).*/\1/'; }
# rate LEAST MOST PORT...: the kbit/s that b receives while a sends more to these UDP ports.
rate() {
    least=$1 most=$2
    shift 2
    ip netns exec a python3 -c '
import socket, sys, time
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
end, ports = time.monotonic() + 3, [int(port) for port in sys.argv[1:]]
while time.monotonic() < end:
    for port in ports:
        s.sendto(bytes(1000), ("10.0.0.2", port))
    time.sleep(0.0004)' "$@" &
    sender=$!
    sleep 1
    before=$(bytes) from=$(date +%s%N)
    sleep 1.5
    after=$(bytes) to=$(date +%s%N)
    wait $sender
    kbit=$(((after - before) * 8000000 / (to - from)))
    [ $kbit -ge "$least" ] && [ $kbit -le "$most" ] || { echo "$kbit kbit/s, not $least to $most"; return 1; }
}
rate 9000 100000 5000
vsctl -- set port vb qos=@newqos \
    -- --id=@newqos create qos type=linux-htb other-config:max-rate=4000000 queues=0=@q0,1=@q1 \
    -- --id=@q0 create queue other-config:min-rate=1000000 other-config:max-rate=2000000 \
    -- --id=@q1 create queue other-config:min-rate=3000000 other-config:max-rate=1000000000
is '{}' vsctl get port vb status
rate 1800 2200 5000
ovs-ofctl add-flow br0 udp,tp_dst=5001,actions=set_queue:1,normal
rate 3600 4400 5001
ovs-ofctl add-flow br0 udp,tp_dst=5002,actions=enqueue:2:1
rate 3600 4400 5002
# Both: the rate of the port.
rate 3600 4400 5000 5001
ovs-ofctl queue-stats br0 vb > stats.log
grep -q 'queue 1: bytes=[1-9]' stats.log || { cat stats.log; exit 1; }
ovs-ofctl -O OpenFlow13 queue-get-config br0 vb > config.log 2>&1
grep -q 'queue 1' config.log || { cat config.log; exit 1; }
# Another rate; then none.
vsctl set qos "$(vsctl get port vb qos)" other-config:max-rate=1000000
rate 850 1150 5001
vsctl clear port vb qos -- --all destroy qos -- --all destroy queue
rate 9000 100000 5001
# A policer.
vsctl set interface va ingress_policing_rate=2000 ingress_policing_burst=200
rate 1700 2300 5000
vsctl set interface va ingress_policing_rate=0
rate 9000 100000 5000
# What is not done is named.
vsctl set port vb qos=@n -- --id=@n create qos type=linux-sfq
has 'qos: type linux-sfq is not supported' vsctl get port vb status
vsctl clear port vb qos
# Many queues share the memory for frames, and the status says how much each has.
many=$(seq -f '%g=@q' -s , 1 20)
vsctl set port vb qos=@n -- --id=@n create qos type=linux-htb queues="$many" \
    -- --id=@q create queue other-config:max-rate=1000000
has 'queue_bytes_max="798915"' vsctl get port vb status
vsctl clear port vb qos
is '{}' vsctl get port vb status
# A second program finds the sockets of the bridge, which go with it.
test -S br0.mgmt && test -S br0.snoop
# A manager is the server's own.
vsctl set-manager ptcp:6640:127.0.0.1
soon reaches a 10.0.0.2
! grep -qi manager fastpath.log
vsctl del-manager
vsctl del-br br0
! test -e br0.mgmt && ! test -e br0.snoop
