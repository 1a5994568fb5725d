# Bridges, ports, patches and controllers, as users of ovs-vsctl make and remove them.
host a va 10.0.0.1
host b vb 10.0.0.2
vsctl add-br br0
is br0 vsctl list-br
is internal vsctl get interface br0 type
is 65534 vsctl get interface br0 ofport
vsctl br-exists br0
is '[netdev, system]' vsctl get open_vswitch . datapath_types
vsctl add-port br0 va -- add-port br0 vb -- set interface vb ofport_request=7
is 1 vsctl get interface va ofport
is 7 vsctl get interface vb ofport
is '[]' vsctl get interface va error
soon is up vsctl get interface va link_state
is "\"$(ip -br link show va | awk '{ print $3 }')\"" vsctl get interface va mac_in_use
is 1500 vsctl get interface va mtu
soon reaches a 10.0.0.2

# The local port is an interface of this machine, down until the user sets it up.
is down vsctl get interface br0 admin_state
ip addr add 10.0.0.3/24 dev br0
ip link set br0 up
soon is up vsctl get interface br0 admin_state
soon reaches a 10.0.0.3

# Another number, another name of the bridge's identity.
vsctl set interface vb ofport_request=9
is 9 vsctl get interface vb ofport
soon reaches a 10.0.0.2
vsctl set bridge br0 other_config:datapath-id=00000000000000ab
is '"00000000000000ab"' vsctl get bridge br0 datapath_id

# A controller that the bridge listens for, and one that it dials.
of=6634
vsctl set-controller br0 ptcp:6634 tcp:127.0.0.1:6635
soon has 'dpid:00000000000000ab' ofctl show
has ' 1(va)' ofctl show
has ' LOCAL(br0)' ofctl show
vsctl set-fail-mode br0 secure
soon never_reaches a 10.0.0.2
soon has BACKOFF vsctl --columns=status find controller target='"tcp:127.0.0.1:6635"'
has refused vsctl --columns=status find controller target='"tcp:127.0.0.1:6635"'
ofctl add-flow actions=normal
soon reaches a 10.0.0.2
ofctl dump-flows | grep -q 'actions=NORMAL'
vsctl del-controller br0
vsctl del-fail-mode br0
soon reaches a 10.0.0.2

# Two bridges and a pair of patch ports; the interface moves from one to the other.
vsctl add-br br1 -- add-port br1 p1 -- set interface p1 type=patch options:peer=p0
has 'no patch port p0' vsctl get interface p1 error
vsctl add-port br0 p0 -- set interface p0 type=patch options:peer=p1
is '[]' vsctl get interface p1 error
vsctl del-port br0 vb -- add-port br1 vb
soon reaches a 10.0.0.2
is br1 vsctl port-to-br vb
vsctl set interface p1 options:peer=other
never_reaches a 10.0.0.2
vsctl set interface p1 options:peer=p0
soon reaches a 10.0.0.2

# Statistics come every five seconds.
soon has 'rx_packets=' vsctl get interface va statistics
received() { vsctl get interface va statistics:rx_packets; }
more() { [ "$(received)" -gt 3 ]; }
soon more

# A further internal interface, moved to a host.
ip netns add c
vsctl add-port br1 ic -- set interface ic type=internal mac='"02:00:00:00:00:0c"' mtu_request=1400
is '"02:00:00:00:00:0c"' vsctl get interface ic mac_in_use
is 1400 vsctl get interface ic mtu
ip link set ic netns c
ip -n c addr add 10.0.0.4/24 dev ic
ip -n c link set ic up
soon reaches a 10.0.0.4
soon is up vsctl get interface ic link_state

# A port is removed, and a bridge with its interfaces.
vsctl del-port br1 ic
! ip -n c link show ic > gone.log 2>&1
vsctl del-br br1
! ip link show br1 > gone.log 2>&1
ip link show vb > still.log
never_reaches a 10.0.0.2
vsctl add-port br0 vb
soon reaches a 10.0.0.2
vsctl del-br br0
is '' vsctl list-br
grep -q 'bridge br0: removed' fastpath.log
