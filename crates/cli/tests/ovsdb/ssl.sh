# TLS: the database, a bridge that listens, a controller that is dialled. The certificates are made here.
authority() {
    openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj "/CN=$1" -keyout "$1.key" -out "$1.crt" 2> /dev/null
}
certificate() {
    openssl req -newkey rsa:2048 -nodes -subj "/CN=$2" -keyout "$2.key" -out "$2.csr" 2> /dev/null
    openssl x509 -req -in "$2.csr" -CA "$1.crt" -CAkey "$1.key" -CAcreateserial -days 2 -out "$2.crt" \
        -extfile subject 2> /dev/null
}
echo subjectAltName=IP:127.0.0.1,DNS:localhost > subject
authority ca
authority other
certificate ca switch
certificate ca server
certificate other stranger
host a va 10.0.0.1
host b vb 10.0.0.2
vsctl add-br br0 -- add-port br0 va -- add-port br0 vb
soon reaches a 10.0.0.2
keys() { echo "--private-key=$DIRECTORY/$1.key --certificate=$DIRECTORY/$1.crt --ca-cert=$DIRECTORY/ca.crt"; }

# ovs-vsctl reaches the database by TLS, with the keys of table SSL on the other side.
vsctl set-ssl "$DIRECTORY/server.key" "$DIRECTORY/server.crt" "$DIRECTORY/ca.crt" -- set-manager pssl:6640:127.0.0.1
by_tls() { "$OVS/bin/ovs-vsctl" --timeout=20 $(keys switch) --db=ssl:127.0.0.1:6640 "$@"; }
soon by_tls show
is br0 by_tls list-br

# The switches reach it so too, and with a certificate of another authority they do not.
kill -INT $fastpath
wait $fastpath
"$FASTPATH" switch --ovsdb ssl:127.0.0.1:6640 $(keys stranger) > stranger.log 2>&1 &
fastpath=$!
soon grep -q 'connecting again' stranger.log
grep -qi 'tls\|certificate\|alert\|reset' stranger.log || { cat stranger.log; exit 1; }
kill -INT $fastpath
wait $fastpath
export OVS_RUNDIR="$DIRECTORY"
"$FASTPATH" switch --ovsdb ssl:127.0.0.1:6640 $(keys switch) > fastpath.log 2>&1 &
fastpath=$!
vsctl add-port br0 more -- set interface more type=internal
ip link show more > more.log
soon reaches a 10.0.0.2

# A controller connects to the bridge.
vsctl set-controller br0 pssl:6633:127.0.0.1
soon ovs-ofctl $(keys switch) add-flow ssl:127.0.0.1:6633 priority=7,icmp,actions=drop
never_reaches a 10.0.0.2
! ovs-ofctl $(keys stranger) del-flows ssl:127.0.0.1:6633 2> refused.log
ovs-ofctl $(keys switch) del-flows ssl:127.0.0.1:6633
ovs-ofctl $(keys switch) add-flow ssl:127.0.0.1:6633 actions=normal
soon reaches a 10.0.0.2

# The bridge connects to a controller, which sees its certificate.
python3 -c '
import socket, ssl
context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain("server.crt", "server.key")
context.load_verify_locations("ca.crt")
context.verify_mode = ssl.CERT_REQUIRED
with socket.create_server(("127.0.0.1", 6653)) as server:
    print("ready", flush=True)
    peer = context.wrap_socket(server.accept()[0], server_side=True)
    # The bridge begins with the hello of OpenFlow 1.3.
    print(peer.getpeercert()["subject"], peer.recv(8)[:2].hex(), flush=True)' > controller.log 2>&1 &
controller=$!
soon grep -q ready controller.log
vsctl set-controller br0 ssl:127.0.0.1:6653
# The keys are those of table SSL.
soon grep -q "'server'),),) 0400" controller.log
wait $controller
# One whose certificate is of another authority is refused by name.
openssl s_server -rev -accept 6654 -key stranger.key -cert stranger.crt > controller.log 2>&1 &
controller=$!
vsctl set-controller br0 ssl:127.0.0.1:6654
soon has 'certificate' vsctl --columns=status list controller
kill $controller
vsctl del-controller br0

# What is missing is named.
! "$FASTPATH" switch --ovsdb ssl:127.0.0.1:6640 > missing.log 2>&1
grep -q 'give --private-key, --certificate and --ca-cert' missing.log
! "$FASTPATH" switch --ovsdb unix:"$DIRECTORY/s" $(keys switch) > missing.log 2>&1
grep -q 'ovs-vsctl set-ssl' missing.log
