# Datagrams through a queue of the guest's kernel: sh queue.sh busy|idle TC[;TC…]
# in.pcap has them as they arrive at the queue, out.pcap as they leave it.
set -eu
pattern=$1 queues=$2
mkdir -p /run/netns
for n in a r b; do
    ip netns add $n
    ip netns exec $n sysctl -qw net.ipv6.conf.all.disable_ipv6=1 net.ipv6.conf.default.disable_ipv6=1
done
ip link add a0 netns a address 02:00:00:00:00:01 type veth peer name r0 netns r address 02:00:00:00:00:02
ip link add r1 netns r address 02:00:00:00:00:03 type veth peer name b0 netns b address 02:00:00:00:00:04
ip -n a address add 10.0.1.1/24 dev a0
ip -n r address add 10.0.1.2/24 dev r0
ip -n r address add 10.0.2.2/24 dev r1
ip -n b address add 10.0.2.1/24 dev b0
ip -n a link set a0 up
ip -n r link set r0 up
ip -n r link set r1 up
ip -n b link set b0 up
ip -n a route add default via 10.0.1.2
ip -n b route add default via 10.0.2.2
# Nothing but the datagrams passes the queue.
ip -n a neighbor replace 10.0.1.2 lladdr 02:00:00:00:00:02 dev a0
ip -n r neighbor replace 10.0.2.1 lladdr 02:00:00:00:00:04 dev r1
ip -n b neighbor replace 10.0.2.2 lladdr 02:00:00:00:00:03 dev b0
ip netns exec r sysctl -qw net.ipv4.ip_forward=1
echo "$queues" | tr ';' '\n' | while read -r words; do
    ip netns exec r tc $words
done
capture="tcpdump -Z root -q -U --time-stamp-precision nano"
ip netns exec r $capture -i r0 -Q in -w in.pcap udp 2>/dev/null &
in=$!
ip netns exec b $capture -i b0 -Q in -w out.pcap udp 2>/dev/null &
out=$!
sleep 1
ip netns exec a python3 send.py "$pattern"
sleep 30
kill -INT $in $out
wait
