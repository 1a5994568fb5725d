# The database goes and comes back; interfaces go and come back; another program holds the lock.
host a va 10.0.0.1
host b vb 10.0.0.2
vsctl add-br br0 -- add-port br0 va -- add-port br0 vb
soon reaches a 10.0.0.2
kill $server
wait $server || true
soon grep -q 'connecting again' fastpath.log
reaches a 10.0.0.2
serve
soon vsctl show
vsctl add-port br0 more -- set interface more type=internal
soon ip link show more
reaches a 10.0.0.2

# An interface that goes has an error, and one that comes back is a port again.
ip link del vb
ip netns del b
soon has 'no interface' vsctl get interface vb error
is -1 vsctl get interface vb ofport
host b vb 10.0.0.2
soon is '[]' vsctl get interface vb error
# The host has another address than before, which a remembers for up to 45 s.
ip -n a neigh flush dev eth0
soon reaches a 10.0.0.2

# A second switch waits for the first.
"$FASTPATH" switch --ovsdb unix:"$DIRECTORY/s" > second.log 2>&1 &
second=$!
soon grep -q 'another program' second.log
vsctl add-port br0 late -- set interface late type=internal
kill -INT $fastpath
wait $fastpath
fastpath=$second
cp second.log fastpath.log
soon is up vsctl get interface va link_state
soon reaches a 10.0.0.2
vsctl add-port br0 last -- set interface last type=internal
ip link show last > last.log
