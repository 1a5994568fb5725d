//! Tests of descriptions, over replicas made by hand.

use super::*;
use crate::value::Datum;

/// A replica with one Open_vSwitch row. HandMade are numbered.
struct HandMade(Replica);

fn id(number: u32) -> Uuid {
    Uuid::from_u128(number.into())
}

fn ids(numbers: &[u32]) -> Datum {
    Datum::set(numbers.iter().map(|number| id(*number)))
}

impl HandMade {
    fn new(bridges: &[u32]) -> HandMade {
        let mut rows = HandMade(Replica::default());
        rows.add("Open_vSwitch", 0, [("bridges", ids(bridges)), ("next_cfg", Datum::one(5))]);
        rows
    }

    fn add<const N: usize>(
        &mut self,
        table: &str,
        number: u32,
        columns: [(&str, Datum); N],
    ) -> &mut HandMade {
        self.0.insert(table, id(number), DbRow::new(columns));
        self
    }

    /// A bridge 1 with a port 2 whose interface is 3.
    fn one_port<const N: usize, const M: usize>(
        port: [(&str, Datum); N],
        interface: [(&str, Datum); M],
    ) -> HandMade {
        let mut rows = HandMade::new(&[1]);
        rows.add("Bridge", 1, [("name", Datum::one("br0")), ("ports", ids(&[2]))]);
        let port = [vec![("name", Datum::one("p")), ("interfaces", ids(&[3]))], port.into()].concat();
        let interface = [vec![("name", Datum::one("p"))], interface.into()].concat();
        rows.0.insert("Port", id(2), DbRow::new(port));
        rows.0.insert("Interface", id(3), DbRow::new(interface));
        rows
    }

    fn describe(&self) -> Configuration {
        describe(&self.0).unwrap()
    }

    fn bridge(&self) -> BridgeSpec {
        self.describe().bridges.remove(0)
    }

    fn port(&self) -> PortSpec {
        self.bridge().ports.remove(0)
    }

    fn interface(&self) -> InterfaceSpec {
        self.port().interfaces.remove(0)
    }
}

#[test]
fn bridges_and_ports_come_in_the_order_of_their_names() {
    assert_eq!(describe(&Replica::default()), None);
    let mut rows = HandMade::new(&[1, 2]);
    rows.add("Bridge", 1, [("name", Datum::one("b")), ("ports", ids(&[10, 11]))]);
    rows.add("Bridge", 2, [("name", Datum::one("a"))]);
    rows.add("Port", 10, [("name", Datum::one("z")), ("interfaces", ids(&[20]))]);
    rows.add("Port", 11, [("name", Datum::one("b")), ("interfaces", ids(&[21]))]);
    rows.add("Interface", 20, [("name", Datum::one("z")), ("type", Datum::one(""))]);
    rows.add("Interface", 21, [("name", Datum::one("b")), ("type", Datum::one(""))]);
    let all = rows.describe();
    assert_eq!((all.next_cfg, all.statistics_every), (5, STATISTICS_EVERY));
    assert_eq!(all.bridges.iter().map(|one| &*one.name).collect::<Vec<_>>(), ["a", "b"]);
    let [local, other] = &all.bridges[1].ports[..] else { unreachable!("two ports") };
    assert_eq!((&*local.name, &*other.name), ("b", "z"));
    assert_eq!(local.interfaces[0].kind, Ok(InterfaceKind::Internal), "the port of the bridge's name");
    assert!(local.interfaces[0].is_local && !other.interfaces[0].is_local);
    assert_eq!(other.interfaces[0].kind, Ok(InterfaceKind::System));
    assert!(all.bridges.iter().all(|one| one.error.is_none() && one.notes.is_empty()));
}

#[test]
fn a_bridge_has_the_identity_and_the_mode_that_are_written() {
    let mut rows = HandMade::new(&[1]);
    let config =
        [("datapath-id", "00000000000000aB"), ("hwaddr", "02:00:00:00:00:0A"), ("disable-in-band", "true")];
    let columns = [
        ("name", Datum::one("br0")),
        ("datapath_type", Datum::one("netdev")),
        ("fail_mode", Datum::one("secure")),
        ("protocols", Datum::set(["OpenFlow13", "OpenFlow10", "OpenFlow14", "OpenFlow15"])),
        ("other_config", Datum::map(config)),
        ("controller", ids(&[7, 6])),
    ];
    rows.add("Bridge", 1, columns);
    rows.add("Controller", 6, [("target", Datum::one("tcp:b:1")), ("max_backoff", Datum::one(1000))]);
    rows.add("Controller", 7, [("target", Datum::one("tcp:a:1")), ("inactivity_probe", Datum::one(0))]);
    let bridge = rows.bridge();
    assert_eq!((bridge.datapath_id, bridge.hw_addr), (Some(0xab), Some([2, 0, 0, 0, 0, 10])));
    assert_eq!(bridge.fail_mode, FailureMode::Secure);
    assert_eq!(bridge.protocols.len(), 4);
    assert!(bridge.notes.is_empty(), "{:?}", bridge.notes);
    assert_eq!(bridge.controllers[0].inactivity_probe, Some(Duration::ZERO));
    assert_eq!(bridge.controllers[1].max_backoff, Some(Duration::from_secs(1)));
}

#[test]
fn what_a_bridge_and_its_controllers_do_not_do_is_named() {
    let mut rows = HandMade::new(&[1]);
    let config = [("datapath-id", "xyz"), ("hwaddr", "01:00:00:00:00:00"), ("mac-aging-time", "5")];
    let columns = [
        ("name", Datum::one("br0")),
        ("stp_enable", Datum::one(true)),
        ("rstp_enable", Datum::one(false)),
        ("sflow", ids(&[9])),
        ("other_config", Datum::map(config)),
        ("controller", ids(&[6])),
        ("ports", ids(&[40])),
    ];
    rows.add("Bridge", 1, columns);
    let controller = [
        ("target", Datum::one("tcp:a:1")),
        ("connection_mode", Datum::one("in-band")),
        ("enable_async_messages", Datum::one(false)),
        ("local_ip", Datum::one("10.0.0.1")),
    ];
    rows.add("Controller", 6, controller);
    let bridge = rows.bridge();
    let starts: Vec<&str> = bridge.notes.iter().map(|note| note.split(' ').next().unwrap()).collect();
    let names = [
        "stp_enable",
        "sflow",
        "other_config:datapath-id",
        "other_config:hwaddr",
        "other_config:mac-aging-time",
        "ports:",
    ];
    assert_eq!(starts, names);
    assert_eq!((bridge.datapath_id, bridge.hw_addr), (None, None));
    assert_eq!(bridge.controllers[0].notes.len(), 3);
    let names = [
        ("", "name: it is empty"),
        ("a-name-of-16-len", "name: 16 bytes: an interface has at most 15"),
        ("a/b", "name: an interface has no '/', ':' or white space in its name"),
        ("..", "name: '..' cannot be an interface"),
    ];
    for (name, why) in names {
        rows.add("Bridge", 1, [("name", Datum::one(name))]);
        assert_eq!(rows.bridge().error.as_deref(), Some(why));
    }
    rows.add("Bridge", 1, [("name", Datum::one("b")), ("datapath_type", Datum::one("dpdk"))]);
    assert!(rows.bridge().error.unwrap().contains("dpdk"));
}

#[test]
fn ports_carry_the_vlans_that_open_vswitch_gives_them() {
    let vlans = |columns: &[(&'static str, Datum)]| {
        let mut rows = HandMade::one_port([], []);
        let row = [columns, &[("name", Datum::one("p"))]].concat();
        rows.0.insert("Port", id(2), DbRow::new(row));
        let PortVlans { mode, tag, trunks } = rows.port().vlans;
        (mode, tag, trunks.into_iter().collect::<Vec<_>>())
    };
    let (tag, mode) = (|tag: i64| ("tag", Datum::one(tag)), |mode: &str| ("vlan_mode", Datum::one(mode)));
    let trunks = ("trunks", Datum::set([7, 9]));
    assert_eq!(vlans(&[]), (VlanMode::Trunk, 0, vec![]));
    assert_eq!(vlans(&[tag(7)]), (VlanMode::Access, 7, vec![]));
    assert_eq!(vlans(std::slice::from_ref(&trunks)), (VlanMode::Trunk, 0, vec![7, 9]));
    assert_eq!(vlans(&[tag(7), mode("trunk")]), (VlanMode::Trunk, 0, vec![]));
    assert_eq!(vlans(&[mode("access")]), (VlanMode::Access, 0, vec![]));
    let native = vlans(&[tag(7), trunks.clone(), mode("native-untagged")]);
    assert_eq!(native, (VlanMode::NativeUntagged, 7, vec![7, 9]));
    assert_eq!(vlans(&[tag(7), mode("native-tagged")]), (VlanMode::NativeTagged, 7, vec![]));
    assert_eq!(vlans(&[tag(5000)]), (VlanMode::Trunk, 0, vec![]));
}

#[test]
fn interfaces_of_every_type_are_had_or_refused_by_name() {
    let with = |kind: &str, options: &[(&str, &str)]| {
        let options = Datum::map(options.iter().copied());
        HandMade::one_port([], [("type", Datum::one(kind)), ("options", options)]).interface()
    };
    let kind = |kind: &str, options: &[(&str, &str)]| with(kind, options).kind;
    assert_eq!(kind("", &[]), Ok(InterfaceKind::System));
    assert_eq!(kind("system", &[]), Ok(InterfaceKind::System));
    assert_eq!(kind("internal", &[]), Ok(InterfaceKind::Internal));
    assert_eq!(kind("tap", &[]), Ok(InterfaceKind::Internal));
    let patch = with("patch", &[("peer", "q"), ("key", "1")]);
    assert_eq!(patch.kind, Ok(InterfaceKind::Patch { peer: "q".to_owned() }));
    assert_eq!(patch.notes, ["options:key is not supported"]);
    assert_eq!(with("", &[("n_rxq", "2")]).notes, ["options:n_rxq is not supported"]);
    assert!(kind("patch", &[]).unwrap_err().starts_with("options:peer"));
    assert!(kind("patch", &[("peer", "p")]).unwrap_err().contains("own peer"));
    assert!(
        kind("vxlan", &[("remote_ip", "10.0.0.1")]).unwrap_err().starts_with("type vxlan is not supported")
    );
}

#[test]
fn numbers_addresses_and_what_is_not_done_of_an_interface_are_read() {
    let columns = [
        ("type", Datum::one("internal")),
        ("ofport_request", Datum::one(7)),
        ("ofport", Datum::one(-1)),
        ("mac", Datum::one("02:00:00:00:00:07")),
        ("mtu_request", Datum::one(1400)),
        ("ingress_policing_rate", Datum::one(1000)),
        ("ingress_policing_burst", Datum::one(0)),
        ("ingress_policing_kpkts_rate", Datum::one(3)),
        ("bfd", Datum::map([("enable", "true")])),
    ];
    let interface = HandMade::one_port([], columns).interface();
    assert_eq!((interface.ofport_request, interface.ofport, interface.mtu), (Some(7), None, Some(1400)));
    assert_eq!(interface.hw_addr, Some([2, 0, 0, 0, 0, 7]));
    assert_eq!(interface.policing, Some((1000, 8000)));
    assert_eq!(interface.notes, ["ingress_policing_kpkts_rate is not supported", "bfd is not supported"]);
    let mac = |mac: &str| HandMade::one_port([], [("mac", Datum::one(mac))]).interface().notes;
    assert!(mac("02:00:00:00:00:07")[0].starts_with("mac: only an internal"));
    assert!(mac("nonsense")[0].starts_with("mac nonsense"));
}

#[test]
fn ports_that_would_connect_what_has_to_be_apart_are_refused() {
    let why = |column: &'static str, datum: Datum| {
        HandMade::one_port([(column, datum)], []).interface().kind.unwrap_err()
    };
    assert_eq!(why("lacp", Datum::one("active")), "port p: lacp is not supported");
    assert_eq!(why("protected", Datum::one(true)), "port p: protected is not supported");
    assert!(why("vlan_mode", Datum::one("dot1q-tunnel")).contains("dot1q-tunnel"));
    assert!(HandMade::one_port([("lacp", Datum::one("off"))], []).interface().kind.is_ok());
    let bond = HandMade::one_port([("interfaces", ids(&[3, 4]))], []);
    assert!(bond.interface().kind.unwrap_err().contains("bonds"), "also while its rows are incomplete");
    let mut bond = bond;
    bond.add("Interface", 4, [("name", Datum::one("q"))]);
    assert!(bond.port().interfaces.iter().all(|one| one.kind.is_err()));
}

#[test]
fn half_a_port_and_a_port_of_two_bridges_are_noted() {
    let mut rows = HandMade::new(&[1, 2, 99]);
    rows.add("Bridge", 1, [("name", Datum::one("a")), ("ports", ids(&[10, 11, 12]))]);
    rows.add("Bridge", 2, [("name", Datum::one("b")), ("ports", ids(&[10]))]);
    rows.add("Port", 10, [("name", Datum::one("p")), ("interfaces", ids(&[20]))]);
    rows.add("Port", 11, [("name", Datum::one("q")), ("interfaces", ids(&[20]))]);
    rows.add("Port", 12, [("name", Datum::one("r")), ("interfaces", ids(&[21]))]);
    rows.add("Interface", 20, [("name", Datum::one("p"))]);
    let all = rows.describe();
    assert_eq!(all.bridges.len(), 2);
    assert_eq!(all.bridges[1].notes, ["ports: port p is in bridge a"]);
    let [p, q, r] = &all.bridges[0].ports[..] else { unreachable!("three ports") };
    assert_eq!((p.interfaces.len(), q.interfaces.len(), r.interfaces.len()), (1, 0, 0));
    assert!(q.notes.contains(&"interfaces: interface p is in port p".to_owned()));
    assert_eq!(r.notes, ["interfaces: there is none"]);
}

#[test]
fn mirrors_name_ports_of_their_bridge() {
    let mut rows = HandMade::one_port([], []);
    let bridge = [("name", Datum::one("br0")), ("ports", ids(&[2])), ("mirrors", ids(&[30, 31, 32]))];
    rows.add("Bridge", 1, bridge);
    let output = ("output_port", ids(&[2]));
    let selected = ("select_src_port", ids(&[2, 77]));
    rows.add("Mirror", 30, [("name", Datum::one("m")), selected, output.clone()]);
    rows.add("Mirror", 31, [("name", Datum::one("n")), ("select_all", Datum::one(true))]);
    rows.add(
        "Mirror",
        32,
        [("name", Datum::one("o")), output, ("select_vlan", Datum::one(4)), ("snaplen", Datum::one(100))],
    );
    let bridge = rows.bridge();
    let [m, n, o] = &bridge.mirrors[..] else { unreachable!("three mirrors") };
    assert_eq!((&m.output, m.select_all), (&Ok(MirrorDestination::Port("p".to_owned())), false));
    assert!(m.from.iter().eq(["p"]) && m.to.is_empty());
    assert!(n.select_all && n.output.as_ref().unwrap_err().contains("output_port"));
    assert!(o.vlans.iter().eq(&[4]) && o.snap_len == Some(100));
    assert_eq!(bridge.notes, ["mirror n: write output_port or output_vlan"]);
    let output = |columns: Vec<(&'static str, Datum)>| {
        let mut rows = HandMade::one_port([], []);
        let bridge = [("name", Datum::one("br0")), ("ports", ids(&[2])), ("mirrors", ids(&[30]))];
        rows.add("Bridge", 1, bridge);
        rows.0.insert("Mirror", id(30), DbRow::new(columns));
        rows.bridge().mirrors.remove(0).output
    };
    let (port, vlan) = (("output_port", ids(&[2])), ("output_vlan", Datum::one(9)));
    assert_eq!(output(vec![vlan.clone()]), Ok(MirrorDestination::Vlan(9)));
    assert!(output(vec![port.clone(), vlan]).unwrap_err().contains("one of them"));
    assert!(output(vec![port, ("filter", Datum::one("icmp"))]).unwrap_err().contains("filter"));
    assert!(output(vec![("output_port", ids(&[77]))]).unwrap_err().contains("of this bridge"));
}

#[test]
fn queues_have_the_rates_that_are_written() {
    let mut rows = HandMade::one_port([("qos", ids(&[5]))], []);
    assert_eq!(rows.port().qos, None, "its row is missing");
    let queues = Datum::map([(0, id(50)), (3, id(51)), (4, id(52))]);
    let qos = |kind: &str| {
        let config = Datum::map([("max-rate", "1000000"), ("burst", "5")]);
        [("type", Datum::one(kind)), ("queues", queues.clone()), ("other_config", config)]
    };
    rows.add("QoS", 5, qos("linux-htb"));
    rows.add(
        "Queue",
        50,
        [(
            "other_config",
            Datum::map([("min-rate", "1000"), ("max-rate", "x"), ("burst", "5"), ("priority", "1")]),
        )],
    );
    rows.add("Queue", 51, [("dscp", Datum::one(8))]);
    let found = rows.port().qos.unwrap();
    assert_eq!((&found.error, found.max_rate), (&None, Some(1_000_000)));
    assert_eq!(found.queues[&0], QueueRate { min_rate: Some(1000), max_rate: None, burst: Some(5) });
    assert_eq!(found.queues[&3], QueueRate::default());
    let notes = [
        "other_config:burst is not supported",
        "queue 0: other_config:max-rate x: write a number above 0, of bits or bits per second",
        "queue 0: other_config:priority is not supported",
        "queue 0: burst has no effect without max-rate",
        "queue 3: dscp is not supported",
        "queues: there is no queue 4",
    ];
    assert_eq!(found.notes, notes);
    rows.add("QoS", 5, qos("linux-noop"));
    assert_eq!(rows.port().qos, None);
    rows.add("QoS", 5, qos("linux-hfsc"));
    assert_eq!(rows.port().qos.unwrap().error, None);
    rows.add("QoS", 5, qos("linux-sfq"));
    assert!(rows.port().notes[0].starts_with("qos: type linux-sfq is not supported"));
}

#[test]
fn the_interval_of_statistics_and_the_files_of_tls_are_read() {
    let mut rows = HandMade::new(&[]);
    let config = |millis: &str| Datum::map([("stats-update-interval", millis)]);
    for (text, seconds) in [("1000", 5), ("30000", 30), ("x", 5)] {
        rows.add("Open_vSwitch", 0, [("other_config", config(text)), ("ssl", ids(&[8]))]);
        assert_eq!(rows.describe().statistics_every, Duration::from_secs(seconds));
    }
    let file = |name: &str| Datum::one(name);
    rows.add("SSL", 8, [("private_key", file("k")), ("certificate", file("c")), ("ca_cert", file("a"))]);
    assert_eq!(rows.describe().tls, Some(["k", "c", "a"].map(PathBuf::from)));
    rows.add("SSL", 8, [("private_key", file("k"))]);
    assert_eq!(rows.describe().tls, None);
}
