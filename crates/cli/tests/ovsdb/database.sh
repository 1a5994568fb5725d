# A database, its server, and `fastpath switch` as its client. Each command of a test has to succeed.
set -e
mount -t tmpfs none /run/netns
ip link set lo up
cd "$DIRECTORY"
ovsdb-tool create db "$OVS/share/openvswitch/vswitch.ovsschema"
serve() {
    ovsdb-server --remote=punix:"$DIRECTORY/s" --remote=db:Open_vSwitch,Open_vSwitch,manager_options \
        --private-key=db:Open_vSwitch,SSL,private_key --certificate=db:Open_vSwitch,SSL,certificate \
        --ca-cert=db:Open_vSwitch,SSL,ca_cert --unixctl="$DIRECTORY/ctl" --no-chdir --log-file=/dev/null db \
        > server.log 2>&1 &
    server=$!
}
end() {
    code=$?
    [ $code = 0 ] || { echo "line of failure above; log of fastpath:"; cat fastpath.log; vsctl show; }
    kill -INT $fastpath || true
    wait $fastpath || { echo "fastpath failed"; cat fastpath.log; code=1; }
    kill $server || true
    exit $code
}
vsctl() {
    "$OVS/bin/ovs-vsctl" --timeout=20 --db=unix:"$DIRECTORY/s" "$@"
}
ofctl() {
    command=$1
    shift
    ovs-ofctl -O OpenFlow13 "$command" tcp:127.0.0.1:"$of" "$@"
}
# Tries a command until it succeeds, for ten seconds.
soon() {
    for try in $(seq 100); do
        if "$@" > soon.log 2>&1; then return 0; fi
        sleep 0.1
    done
    echo "never: $*"
    cat soon.log
    return 1
}
# is TEXT COMMAND...: whether the output of the command is this text.
is() {
    want=$1
    shift
    have=$("$@")
    [ "$have" = "$want" ] || { echo "$*: '$have' is not '$want'"; return 1; }
}
# has TEXT COMMAND...: whether the output of the command contains this text.
has() {
    want=$1
    shift
    "$@" > has.log 2>&1 || { cat has.log; return 1; }
    grep -qF -- "$want" has.log || { echo "$*: no '$want' in"; cat has.log; return 1; }
}
# host NAME INTERFACE ADDRESS: a namespace whose interface eth0 is joined to this one here.
host() {
    ip netns add "$1"
    ip link add "$2" type veth peer name eth0 netns "$1"
    ip -n "$1" addr add "$3/24" dev eth0
    ip -n "$1" link set eth0 up
}
# reaches NAME ADDRESS
reaches() {
    ip netns exec "$1" ping -c 1 -W 1 "$2" > ping.log 2>&1
}
never_reaches() {
    ! reaches "$1" "$2" || { echo "$1 reaches $2"; return 1; }
}
serve
"$FASTPATH" switch --ovsdb unix:"$DIRECTORY/s" > fastpath.log 2>&1 &
fastpath=$!
trap end EXIT
