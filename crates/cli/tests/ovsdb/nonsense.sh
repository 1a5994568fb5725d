# What cannot be had is refused where the database has a place for it, and the rest goes on.
host a va 10.0.0.1
host b vb 10.0.0.2
vsctl add-br br0 -- add-port br0 va -- add-port br0 vb
soon reaches a 10.0.0.2
# Without an error of ovs-vsctl: it warns.
vsctl add-port br0 none
has 'no interface of this name' vsctl get interface none error
is -1 vsctl get interface none ofport
vsctl add-port br0 tunnel -- set interface tunnel type=vxlan options:remote_ip=10.1.1.1
has 'type vxlan is not supported' vsctl get interface tunnel error
has 'type vxlan is not supported' vsctl show
vsctl add-bond br0 bond x1 x2
has 'bonds are not supported' vsctl get interface x1 error
vsctl add-port br0 a-name-that-is-too-long -- set interface a-name-that-is-too-long type=internal
has 'at most 15' vsctl get interface a-name-that-is-too-long error
vsctl add-br a-bridge-that-is-too-long
has 'at most 15' vsctl get bridge a-bridge-that-is-too-long status
vsctl del-br a-bridge-that-is-too-long
vsctl set bridge br0 stp_enable=true other_config:mac-aging-time=60
has 'stp_enable is not supported' vsctl get bridge br0 status
has 'mac-aging-time' vsctl get bridge br0 status
vsctl set interface va ingress_policing_kpkts_rate=1000
has 'ingress_policing_kpkts_rate is not supported' vsctl get interface va status
vsctl set port va vlan_mode=dot1q-tunnel
has 'dot1q-tunnel is not supported' vsctl get interface va error
never_reaches a 10.0.0.2
vsctl clear port va vlan_mode
soon reaches a 10.0.0.2
vsctl set-controller br0 nonsense:1
has 'target' vsctl --columns=status list controller
vsctl set-controller br0 ssl:127.0.0.1:6653
has 'table SSL' vsctl --columns=status list controller
vsctl del-controller br0
# One port in two bridges: it stays in the first.
vsctl add-br br1
vsctl add bridge br1 ports "$(vsctl get port va _uuid)"
has 'port va is in bridge br0' vsctl get bridge br1 status
soon reaches a 10.0.0.2
vsctl del-br br1
soon reaches a 10.0.0.2
grep -q 'interface tunnel: type vxlan is not supported' fastpath.log
# A socket that cannot be made is tried again.
mkdir br9.mgmt
vsctl add-br br9
soon has br9.mgmt vsctl get bridge br9 status
grep -q 'br9.mgmt.*trying again' fastpath.log
rmdir br9.mgmt
soon test -S br9.mgmt
soon is '{}' vsctl get bridge br9 status
OVS_RUNDIR="$DIRECTORY" ovs-ofctl dump-flows br9 > flows.log
grep -q NORMAL flows.log
# Half of a line is nothing.
! vsctl add-port br0 half -- set interface half type=internal -- add-port br8 other 2> half.log
grep -q 'no bridge named br8' half.log
! vsctl get port half name 2> half.log
! vsctl set port va tag=7 -- set interface va mtu_request=no 2> half.log
is '[]' vsctl get port va tag
reaches a 10.0.0.2
