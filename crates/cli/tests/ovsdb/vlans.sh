# VLANs of ports: access, trunk and native ports, on two bridges that a pair of patch ports joins.
host a va 10.0.0.1
host b vb 10.0.0.2
host c vc 10.0.0.3
vsctl add-br br0 -- add-port br0 va tag=10 -- add-port br0 vb tag=20
vsctl add-br br1 -- add-port br1 vc tag=10
vsctl add-port br0 p0 -- set interface p0 type=patch options:peer=p1 \
    -- add-port br1 p1 -- set interface p1 type=patch options:peer=p0
is '[]' vsctl get interface va error
soon is up vsctl get interface vc link_state
never_reaches a 10.0.0.2
soon reaches a 10.0.0.3
never_reaches b 10.0.0.3
# A trunk of other VLANs.
vsctl set port p0 trunks=20,30
never_reaches a 10.0.0.3
vsctl set port p0 trunks=10,30
soon reaches a 10.0.0.3
# Native: frames of VLAN 10 pass the pair without a tag, and are of another VLAN behind it.
vsctl set port p0 vlan_mode=native-untagged tag=10 -- set port vc tag=50
never_reaches a 10.0.0.3
vsctl set port p1 vlan_mode=native-untagged tag=50
soon reaches a 10.0.0.3
vsctl set port p1 vlan_mode=native-tagged
never_reaches a 10.0.0.3
# Both in one VLAN of one bridge.
vsctl set port vb tag=10
soon reaches a 10.0.0.2
# The local port is a port like others.
vsctl set port br0 tag=10
ip addr add 10.0.0.5/24 dev br0
ip link set br0 up
soon reaches a 10.0.0.5
# A fake bridge is a VLAN, and its interface an internal one.
vsctl add-br br10 br0 10
is 10 vsctl br-to-vlan br10
ip addr add 10.0.0.6/24 dev br10
ip link set br10 up
soon reaches a 10.0.0.6
# Actions that name a port send what they have.
vsctl set port vb tag=77
never_reaches a 10.0.0.2
of=6634
vsctl set-controller br0 ptcp:6634
soon ofctl show
ofctl add-flow in_port=va,actions=output:vb
ofctl add-flow in_port=vb,actions=output:va
soon reaches a 10.0.0.2
