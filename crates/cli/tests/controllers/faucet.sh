# Hosts 1 and 2 in VLAN 100, host 3 in VLAN 200, host 4 in VLAN 100 behind a trunk, and an access list, all by Faucet.
set -e
mount -t tmpfs none /run/netns
ip link set lo up
for i in 1 2 3 4; do
    ip netns add h$i
    ip link add s$i type veth peer name eth0 netns h$i
    ip link set s$i up
    ip -n h$i addr add 10.0.0.$i/24 dev eth0
    ip -n h$i link set eth0 up
done
ip -n h2 addr add 10.0.0.22/24 dev eth0
# The other end of the trunk is a switch of its own: what leaves host 4 is tagged there.
ip link add s5 type veth peer name trunk
ip link set s5 up
ip link set trunk up
cat >"$DIRECTORY/tagging" <<RULES
in_port=s4,actions=push_vlan:0x8100,set_field:4196->vlan_vid,output:trunk
in_port=trunk,dl_vlan=100,actions=pop_vlan,output:s4
RULES
"$FASTPATH" switch --rules "$DIRECTORY/tagging" --port s4 --port trunk & tagging=$!
"$FASTPATH" switch --connect tcp:127.0.0.1:6653 --listen ptcp:6634:127.0.0.1 --max-backoff 1 \
    --port s1 --port s2 --port s3 --port s5 2>"$DIRECTORY/said" & switch=$!
PATH="$VENV/bin:$PATH" FAUCET_CONFIG="$CONFIG" FAUCET_LOG="$DIRECTORY/faucet.log" \
    FAUCET_EXCEPTION_LOG="$DIRECTORY/exceptions.log" faucet --ryu-ofp-tcp-listen-port=6653 >/dev/null & controller=$!
trap 'kill $tagging $switch $controller; wait' EXIT
wait_for_controller
from() { host=h$1; shift; ip netns exec "$host" ping -i 0.2 "$@"; }
from 1 -c 1 -w 60 10.0.0.2
from 4 -c 3 -w 30 10.0.0.1
if from 1 -c 1 -w 1 10.0.0.22; then echo "the access list lets pings through"; exit 1; fi
if from 3 -c 1 -w 1 10.0.0.2; then echo "the VLANs are one"; exit 1; fi
flows=$(ovs-ofctl -O OpenFlow13 dump-flows tcp:127.0.0.1:6634 table=0,icmp,in_port=1,nw_dst=10.0.0.22)
echo "$flows"
case $flows in *n_packets=0,*) echo "the access list dropped nothing"; exit 1 ;; *actions=drop*) ;; *) exit 1 ;; esac
