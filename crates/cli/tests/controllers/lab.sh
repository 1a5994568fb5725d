# A lab of two OpenFlow nodes, each with an agent that dials os-ken's learning switch; a third node
# forwards by rules of its own. Hosts reach each other once the controller has set its rules.
set -e
cd "$DIRECTORY"
ip link set lo up
cat > lab.toml <<'SPEC'
[host.a]
[host.b]
[host.c]
[openflow.s1]
controller = "tcp:127.0.0.1:6653"
[openflow.s2]
controller = ["tcp:127.0.0.1:6653"]
dpid = "0x2b"
[openflow.s3]
rules = "actions=flood"
[[link]]
between = ["a", "s1"]
delay = "1ms"
[[link]]
between = ["s1", "s2"]
[[link]]
between = ["s2", "b"]
[[link]]
between = ["s2", "s3"]
[[link]]
between = ["s3", "c"]
SPEC
"$VENV/bin/osken-manager" --ofp-tcp-listen-port 6653 "$VENV/apps/simple_switch_13.py" > osken.log 2>&1 &
controller=$!
trap 'kill $controller; wait $controller || true' EXIT
# The controller takes a second or two to start; the nodes dial it again until then.
"$FASTPATH" lab run lab.toml --name osken-lab --on a -- sh -c '
    for host in b c; do
        reached=
        for try in 1 2 3 4 5 6 7 8 9 10; do
            if ping -c 1 -W 2 $host > /dev/null; then reached=1; break; fi
        done
        [ "$reached" ] || exit 1
        ping -c 5 -i 0.2 -W 2 $host
    done' > lab.log 2>&1 || { cat lab.log osken.log; exit 1; }
grep -q "0% packet loss" lab.log || { cat lab.log; exit 1; }
# The controller saw both nodes, by their datapath ids (1 and 0x2b = 43).
grep -q "packet in 0*1 " osken.log && grep -q "packet in 0*43 " osken.log || { cat osken.log; exit 1; }
