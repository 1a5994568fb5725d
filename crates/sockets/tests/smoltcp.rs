//! Two stacks of smoltcp over an emulated link.
#![cfg(feature = "smoltcp")]

use fastpath_sockets::{SmoltcpDevice, VirtualNetwork, smoltcp_now, time_of};
use fastpath_units::{Duration, Time};
use smoltcp::iface::{Config, Interface, SocketHandle, SocketSet};
use smoltcp::socket::tcp;
use smoltcp::wire::{EthernetAddress, HardwareAddress, IpAddress, IpCidr};
use std::cell::RefCell;
use std::rc::Rc;

struct Stack {
    device: SmoltcpDevice,
    interface: Interface,
    sockets: SocketSet<'static>,
    tcp: SocketHandle,
}

/// A stack on the only interface of a host, with a seed of its own.
fn stack(network: &Rc<RefCell<VirtualNetwork>>, host: &str, seed: u64) -> (Stack, IpAddress) {
    let mut device = SmoltcpDevice::open(network, host, "eth0").unwrap();
    let (mac, address) = {
        let borrowed = network.borrow();
        let topology = borrowed.network().topology();
        let interface = &topology.node(topology.node_named(host).unwrap()).interfaces[0];
        (interface.mac.unwrap(), interface.addresses.iter().find(|net| net.addr().is_ipv4()).unwrap().addr())
    };
    let mut config = Config::new(HardwareAddress::Ethernet(EthernetAddress(mac.0)));
    config.random_seed = seed;
    let mut interface = Interface::new(config, &mut device, smoltcp_now(&network.borrow()));
    let std::net::IpAddr::V4(address) = address else { unreachable!("an IPv4 address was chosen") };
    let address = IpAddress::from(address);
    interface.update_ip_addrs(|own| own.push(IpCidr::new(address, 24)).unwrap());
    let buffer = || tcp::SocketBuffer::new(vec![0; 64 << 10]);
    let mut sockets = SocketSet::new(Vec::new());
    let tcp = sockets.add(tcp::Socket::new(buffer(), buffer()));
    (Stack { device, interface, sockets, tcp }, address)
}

/// Sends `len` bytes from one stack to the other. Returns when the last byte arrived.
fn transfer(link: &str, len: usize) -> (Time, u64) {
    let spec = format!("[host.a]\n[host.b]\n[[link]]\nbetween = ['a', 'b']\n{link}");
    let network = Rc::new(RefCell::new(VirtualNetwork::from_spec(&spec, 3).unwrap()));
    let ((mut a, _), (mut b, to)) = (stack(&network, "a", 1), stack(&network, "b", 2));
    b.sockets.get_mut::<tcp::Socket<'_>>(b.tcp).listen(80).unwrap();
    let socket = a.sockets.get_mut::<tcp::Socket<'_>>(a.tcp);
    socket.connect(a.interface.context(), (to, 80), 50_000).unwrap();
    let (mut sent, mut received, mut steps) = (0, 0, 0);
    loop {
        let now = smoltcp_now(&network.borrow());
        let mut wake: Option<Time> = None;
        for stack in [&mut a, &mut b] {
            stack.interface.poll(now, &mut stack.device, &mut stack.sockets);
            let at = stack.interface.poll_at(now, &stack.sockets).map(time_of);
            wake = [wake, at].into_iter().flatten().min();
        }
        let socket = a.sockets.get_mut::<tcp::Socket<'_>>(a.tcp);
        let before = (sent, received);
        while socket.can_send() && sent < len {
            sent += socket.send_slice(&vec![9; (len - sent).min(4096)]).unwrap();
        }
        let socket = b.sockets.get_mut::<tcp::Socket<'_>>(b.tcp);
        while socket.can_recv() {
            received += socket.recv(|bytes| (bytes.len(), bytes.len())).unwrap();
        }
        let mut network = network.borrow_mut();
        if received == len {
            return (network.now(), steps);
        }
        if (sent, received) != before {
            continue;
        }
        steps += 1;
        assert!(steps < 100_000, "{sent} sent, {received} received at {}", network.now());
        let next = [wake, network.next_at()].into_iter().flatten().min().expect("something happens");
        let next = next.max(network.now());
        network.advance(next).unwrap();
    }
}

#[test]
fn a_transfer_takes_the_time_of_its_bytes_and_is_the_same_each_time() {
    let link = "rate = '10Mbit'\ndelay = '5ms'\nqueue = '100p'";
    let (at, steps) = transfer(link, 1_000_000);
    // 1 MB at 10 Mbit/s with headers: 0.83 s; the window of 64 KiB covers the round trip of 10 ms.
    let took = at.since(Time::ZERO);
    assert!(took > Duration::from_ms(820) && took < Duration::from_ms(1200), "{at}");
    assert_eq!(transfer(link, 1_000_000), (at, steps));
}

#[test]
fn the_time_of_smoltcp_is_whole_microseconds_rounded_down() {
    let mut network =
        VirtualNetwork::from_spec("[host.a]\n[host.b]\n[[link]]\nbetween = ['a', 'b']", 1).unwrap();
    network.advance(Time::from_ps(7_999_999)).unwrap();
    assert_eq!(smoltcp_now(&network).total_micros(), 7);
    assert_eq!(time_of(smoltcp_now(&network)), Time::from_ps(7_000_000));
}
