# Two subnets joined by a switch that os-ken's router drives, told its addresses over REST.
set -e
mount -t tmpfs none /run/netns
ip link set lo up
for i in 1 2; do
    ip netns add h$i
    ip link add s$i type veth peer name eth0 netns h$i
    ip link set s$i up
    ip -n h$i addr add 10.0.$i.2/24 dev eth0
    ip -n h$i link set eth0 up
    ip -n h$i route add default via 10.0.$i.1
done
mkfifo "$DIRECTORY/said"
"$VENV/bin/python" -c "$WEB" "$VENV/apps/rest_router.py" >"$DIRECTORY/said" 2>&1 & controller=$!
"$FASTPATH" switch --connect tcp:127.0.0.1:6653 --max-backoff 1 --port s1 --port s2 & switch=$!
trap 'kill $switch $controller; wait' EXIT
exec 3<"$DIRECTORY/said"
while read -r line <&3; do
    echo "$line"
    case $line in *"Join as router"*) break ;; esac
done
cat <&3 >/dev/null &
for i in 1 2; do
    curl -sS -X POST -d "{\"address\": \"10.0.$i.1/24\"}" http://127.0.0.1:8080/router/0000000000000001
done
ip netns exec h1 ping -c 1 -w 30 10.0.1.1
ip netns exec h1 ping -c 3 -i 0.2 -w 30 10.0.2.2
