# The database goes and comes back; interfaces go and come back; another program holds the lock.
host a va 10.0.0.1
host b vb 10.0.0.2
vsctl add-br br0 -- add-port br0 va -- add-port br0 vb
soon reaches a 10.0.0.2
kill $server
wait $server || true
soon grep -q 'connecting again' fastpath.log
reaches a 10.0.0.2
# A server that sends half of a message, and one that speaks another protocol.
said_by() {
    rm -f s
    python3 -c '
import socket, sys
with socket.socket(socket.AF_UNIX) as server:
    server.bind(sys.argv[1])
    server.listen()
    print("ready", flush=True)
    peer = server.accept()[0]
    peer.recv(65536)
    peer.sendall(sys.argv[2].encode())
    peer.close()' "$DIRECTORY/s" "$1" > peer.log &
    wait $!
}
said_by '{"id":0,"error":null,"result":[{"uuid":{"Bridge":{'
soon grep -q 'has closed the connection; connecting again' fastpath.log
said_by 'SSH-2.0-server'
soon grep -q 'does not speak JSON-RPC' fastpath.log
said_by '{"id":null,"method":"update","params":[1,2,3]}'
reaches a 10.0.0.2
rm -f s
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
