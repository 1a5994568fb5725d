# Three hosts behind a switch that os-ken's learning switch drives.
set -e
mount -t tmpfs none /run/netns
ip link set lo up
for i in 1 2 3; do
    ip netns add h$i
    ip link add s$i type veth peer name eth0 netns h$i
    ip link set s$i up
    ip -n h$i addr add 10.0.0.$i/24 dev eth0
    ip -n h$i link set eth0 up
done
"$FASTPATH" switch --connect tcp:127.0.0.1:6653 --max-backoff 1 --port s1 --port s2 --port s3 2>"$DIRECTORY/said" & switch=$!
"$VENV/bin/osken-manager" --ofp-tcp-listen-port 6653 --ofp-listen-host 127.0.0.1 "$VENV/apps/simple_switch_13.py" \
    >/dev/null 2>&1 & controller=$!
trap 'kill $switch $controller; wait' EXIT
wait_for_controller
ip netns exec h1 ping -c 1 -w 30 10.0.0.2
ip netns exec h3 ping -c 3 -i 0.2 -w 30 10.0.0.1
