# A host of a lab whose interfaces are ports of a bridge, with a database of its own. It ends with the lab.
export PATH="$OVS/bin:$PATH" SCHEMA="$OVS/share/openvswitch/vswitch.ovsschema" FASTPATH
cat > lab.toml <<'SPEC'
[host.h1]
assign = false
exec   = "ip addr add 10.0.0.1/24 dev eth0"
[host.h2]
assign = false
exec   = "ip addr add 10.0.0.2/24 dev eth0"
[host.s1]
assign  = false
private = "/mnt"
env     = { OVS_RUNDIR = "/mnt" }
exec    = '''
ovsdb-tool create /mnt/db $SCHEMA
ovsdb-server --remote=punix:/mnt/db.sock --unixctl=/mnt/ctl --no-chdir --log-file=/dev/null /mnt/db > /dev/null 2>&1 &
$FASTPATH switch --ovsdb unix:/mnt/db.sock > /dev/null 2>&1 &
ovs-vsctl --retry --timeout=20 add-br br0 -- add-port br0 eth0 -- add-port br0 eth1
'''
[[link]]
between = ["h1", "s1"]
delay   = "5ms"
[[link]]
between = ["h2", "s1"]
SPEC
lab="ovsdb-$$"
"$FASTPATH" lab up lab.toml --name "$lab" > lab.log 2>&1 &
up=$!
soon grep -q 'is up' lab.log
on() { "$FASTPATH" lab exec "$lab" "$@"; }
pings() { on h1 -- ping -c 1 -W 1 10.0.0.2; }
soon pings
on s1 -- ovs-vsctl set port eth0 tag=5
! pings > ping.log
on s1 -- ovs-vsctl set port eth1 tag=5
soon pings
on s1 -- ovs-ofctl add-flow br0 priority=9,icmp,actions=drop
! pings > ping.log
processes() { ps -C ovsdb-server -o args | grep -c '[p]unix:/mnt/db.sock'; }
[ "$(processes)" -ge 1 ]
"$FASTPATH" lab down "$lab"
wait $up || true
none() { [ "$(processes)" = 0 ]; }
soon none
