//! OpenFlow 1.4 and 1.5: `ovs-ofctl` of Open vSwitch, and what controllers of different versions
//! see of each other.

use crate::common::{Harness, Peer};
use crate::v10::ofctl::{Ofctl, with_ofctl_of};
use crate::{frame, wire};
use fastpath_openflow::agent::Versions;
use fastpath_openflow::message::flow_update::monitor_flags;
use fastpath_openflow::message::{
    AsyncMask, Codec, FlowUpdate, Hello, Message, MonitorRequest, NO_BUFFER, PacketOut, Reply, Request, Role,
    RoleMessage, RoleStatus, TableMod, Vacancy, table_config,
};
use fastpath_switch::flow::flags;
use fastpath_switch::{
    Action, Field, FieldMatch, FlowCommand, FlowFilter, FlowMod, Instructions, Limits, Match, MeterCommand,
    MeterMod, Version, port,
};

/// The options of `ovs-ofctl` with which each test runs.
const OPTIONS: [&[&str]; 2] = [&["-O", "OpenFlow14"], &["-O", "OpenFlow15"]];

fn all_versions() -> Versions {
    "1.0,1.3,1.4,1.5".parse().unwrap()
}

/// A switch with all versions, and tables of this many flows.
fn harness_of(flows: usize) -> Harness {
    Harness::of_versions_holding(all_versions(), Limits { flows, ..Limits::default() })
}

pub(crate) fn harness() -> Harness {
    harness_of(Limits::default().flows)
}

fn with_ofctl(name: &str, test: impl Fn(&Ofctl<'_>)) {
    with_ofctl_of(name, &OPTIONS, harness, test);
}

fn controller(harness: &Harness, version: Version) -> Peer {
    let mut peer = harness.stranger();
    peer.greet_in(version);
    peer
}

#[test]
fn the_highest_common_version_is_used_and_the_default_has_not_changed() {
    let chosen = |ours: Versions, theirs: Hello| theirs.negotiate(ours).map(Version::name);
    let of = |text: &str| Hello::of(text.parse().unwrap());
    assert_eq!(chosen(all_versions(), of("1.0,1.3,1.4,1.5")), Some("1.5"));
    assert_eq!(chosen(all_versions(), of("1.3,1.4")), Some("1.4"));
    assert_eq!(chosen(all_versions(), Hello { version: 5, bitmap: None }), Some("1.4"));
    assert_eq!(chosen(Versions::default(), of("1.0,1.3,1.4,1.5")), Some("1.3"));
    assert_eq!(chosen(Versions::only(Version::V15), of("1.4")), None);
    assert_eq!(of("1.4,1.5"), Hello { version: 6, bitmap: Some(0x60) });
}

#[test]
fn ovs_ofctl_shows_the_switch_in_later_versions() {
    with_ofctl("ovs_ofctl_shows_the_switch_in_later_versions", |ofctl| {
        let shown = ofctl.run("show", &[]);
        let capabilities = "GROUP_STATS QUEUE_STATS BUNDLES";
        for words in ["dpid:000000000000002a", capabilities, " 1(p1): addr:02:00:00:00:00:01", "LOCAL(local)"]
        {
            assert!(shown.contains(words), "{shown}");
        }
        ofctl.run("add-flow", &["in_port=1,importance=7,actions=2"]);
        ofctl.harness.send(1, &frame(1));
        ofctl.harness.receive(2);
        let ports = ofctl.run("dump-ports", &[]);
        assert!(
            ports.contains("4 ports") && ports.contains("rx pkts=1, bytes=60, drop=0, errs=0"),
            "{ports}"
        );
        assert!(ofctl.run("dump-ports", &["2"]).contains("tx pkts=1, bytes=60"));
        let described = ofctl.run("dump-ports-desc", &[]);
        assert!(described.contains(" 3(p3): addr:02:00:00:00:00:03"), "{described}");
        assert!(described.contains("speed: 10000 Mbps now, 10000 Mbps max"), "{described}");
        let tables = ofctl.run("dump-tables", &[]);
        assert!(tables.contains("active=1, lookup=1, matched=1"), "{tables}");
        let features = ofctl.run("dump-table-features", &[]);
        assert!(features.contains("eviction"), "{features}");
        let sum = ofctl.run("dump-aggregate", &[]);
        assert!(sum.contains("packet_count=1 byte_count=60 flow_count=1"), "{sum}");
        assert!(ofctl.run("dump-desc", &[]).contains("Manufacturer: fastpath"));
        assert!(ofctl.run("queue-stats", &[]).contains("0 queues"));
        ofctl.run("queue-get-config", &["any"]);
        assert!(ofctl.run("get-frags", &[]).contains("normal"));
        ofctl.run("mod-port", &["1", "down"]);
        assert!(ofctl.run("dump-ports-desc", &["1"]).contains("PORT_DOWN"));
        let described = ofctl.run("dump-table-desc", &[]);
        assert!(described.contains("table 0") && described.contains("eviction=off"), "{described}");
        ofctl.run("mod-table", &["0", "evict"]);
        ofctl.run("mod-table", &["0", "vacancy:20,80"]);
        let described = ofctl.run("dump-table-desc", &[]);
        assert!(described.contains("vacancy_down=20") && described.contains("vacancy_up=80"), "{described}");
    });
}

/// Flows as they are added, and as they are shown in OpenFlow 1.4 and 1.5.
const FLOWS: [(&str, &str); 6] = [
    ("importance=5,in_port=1,actions=2", "importance=5, in_port=1 actions=output:2"),
    ("ip,nw_dst=10.0.0.0/8,actions=dec_ttl,group:9", "ip,nw_dst=10.0.0.0/8 actions=dec_ttl,group:9"),
    (
        "reg1=5,actions=move:NXM_OF_ETH_SRC[0..15]->NXM_NX_REG2[16..31],3",
        "reg1=0x5 actions=move:NXM_OF_ETH_SRC[0..15]->NXM_NX_REG2[16..31],output:3",
    ),
    (
        "tcp,tcp_flags=+syn-ack,actions=set_field:0x5->metadata,goto_table:3",
        "tcp,tcp_flags=+syn-ack actions=set_field:0x5->metadata,goto_table:3",
    ),
    (
        "dl_vlan=7,actions=meter:3,pop_vlan,write_actions(output:2)",
        "dl_vlan=7 actions=meter:3,pop_vlan,write_actions(output:2)",
    ),
    ("ipv6,ipv6_dst=fe80::/16,actions=CONTROLLER:100", "ipv6,ipv6_dst=fe80::/16 actions=CONTROLLER:100"),
];

#[test]
fn ovs_ofctl_adds_shows_changes_and_deletes_flows_in_later_versions() {
    with_ofctl("ovs_ofctl_adds_shows_changes_and_deletes_flows_in_later_versions", |ofctl| {
        ofctl.run("add-group", &["group_id=9,type=all,bucket=actions=1"]);
        ofctl.run("add-meter", &["meter=3,kbps,band=type=drop,rate=1000"]);
        let mut wanted = Vec::new();
        for (added, shown) in FLOWS {
            ofctl.run("add-flow", &[added]);
            wanted.push(format!("cookie=0x0, table=0, n_packets=0, n_bytes=0, {shown}"));
        }
        let mut seen = ofctl.dump_flows(&[]);
        seen.sort();
        wanted.sort();
        assert_eq!(seen, wanted);
        // Other versions show them too, without what they cannot say.
        let of_13 = Ofctl { harness: ofctl.harness, options: &["-O", "OpenFlow13"] };
        assert_eq!(of_13.dump_flows(&[]).len(), FLOWS.len());
        ofctl.run("mod-flows", &["in_port=1,actions=3"]);
        assert!(ofctl.dump_flows(&["in_port=1"])[0].ends_with("importance=5, in_port=1 actions=output:3"));
        ofctl.run("del-flows", &["tcp"]);
        assert!(ofctl.run("dump-meters", &[]).contains("meter=3 kbps bands="));
        assert!(ofctl.run("meter-stats", &[]).contains("meter:3"));
        // That of Open vSwitch 3.1 reads the shorter reply of 1.3 in 1.5 too.
        let is_14 = ofctl.options[1] == "OpenFlow14";
        assert!(!is_14 || ofctl.run("meter-features", &[]).contains("max_meter:65536"));
        ofctl.run("del-meters", &[]);
        assert!(!ofctl.dump_flows(&[]).iter().any(|flow| flow.contains("meter")));
    });
}

#[test]
fn ovs_ofctl_changes_groups_bucket_by_bucket_in_15() {
    let name = "ovs_ofctl_changes_groups_bucket_by_bucket_in_15";
    with_ofctl_of(name, &OPTIONS[1..], harness, |ofctl| {
        let buckets =
            "group_id=1,type=select,bucket=bucket_id:7,weight:2,actions=1,bucket=bucket_id:3,actions=2";
        ofctl.run("add-group", &[buckets]);
        let insert = |place: &str, id: u32| {
            let text =
                format!("group_id=1,command_bucket_id={place},bucket=bucket_id:{id},weight:1,actions=3");
            ofctl.try_run("insert-buckets", &[&text])
        };
        assert!(insert("last", 9).0);
        assert!(insert("7", 4).0);
        let (is_done, text) = insert("99", 5);
        assert!(!is_done && text.contains("OFPGMFC_UNKNOWN_BUCKET"), "{text}");
        let (is_done, text) = insert("first", 3);
        assert!(!is_done && text.contains("OFPGMFC_BUCKET_EXISTS"), "{text}");
        let shown = ofctl.run("dump-groups", &["1"]);
        let ids = |shown: &str| -> Vec<String> {
            shown.split("bucket_id:").skip(1).map(|rest| rest.split(',').next().unwrap().to_owned()).collect()
        };
        assert_eq!(ids(&shown), ["7", "4", "3", "9"], "{shown}");
        ofctl.run("remove-buckets", &["group_id=1,command_bucket_id=first"]);
        ofctl.run("remove-buckets", &["group_id=1,command_bucket_id=3"]);
        assert_eq!(ids(&ofctl.run("dump-groups", &[])), ["4", "9"]);
        ofctl.run("remove-buckets", &["group_id=1,command_bucket_id=all"]);
        assert_eq!(ids(&ofctl.run("dump-groups", &[])), [""; 0]);
        assert!(ofctl.run("dump-group-features", &[]).contains("max_groups=0x10000"));
        assert!(ofctl.run("dump-group-stats", &[]).contains("group_id=1"));
    });
}

/// A file that is removed when it is dropped.
struct RuleFile(std::path::PathBuf);

impl RuleFile {
    fn new(name: &str, rules: &str) -> RuleFile {
        let path = std::env::temp_dir().join(format!("fastpath-{}-{name}", std::process::id()));
        std::fs::write(&path, rules).unwrap();
        RuleFile(path)
    }

    fn path(&self) -> &str {
        self.0.to_str().unwrap()
    }
}

impl Drop for RuleFile {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

#[test]
fn ovs_ofctl_changes_flows_in_bundles_in_later_versions() {
    with_ofctl("ovs_ofctl_changes_flows_in_bundles_in_later_versions", |ofctl| {
        let bundled = Ofctl { options: &[ofctl.options, &["--bundle"]].concat(), ..*ofctl };
        let name = ofctl.options[1];
        let two =
            RuleFile::new(&format!("{name}-two"), "in_port=1,actions=2\nin_port=2,importance=3,actions=1\n");
        bundled.run("add-flows", &[two.path()]);
        assert_eq!(ofctl.harness.flow_count(), 2);
        let wrong =
            RuleFile::new(&format!("{name}-wrong"), "in_port=3,actions=1\nin_port=4,actions=group:77\n");
        let (is_done, text) = bundled.try_run("add-flows", &[wrong.path()]);
        assert!(!is_done && text.contains("OFPBAC_BAD_OUT_GROUP"), "{text}");
        assert_eq!(ofctl.harness.flow_count(), 2);
        let other = RuleFile::new(&format!("{name}-other"), "in_port=1,actions=3\n");
        let (_, differences) = ofctl.try_run("diff-flows", &[other.path()]);
        assert_eq!(differences.lines().count(), 3, "{differences}");
        bundled.run("replace-flows", &[other.path()]);
        assert_eq!(ofctl.run("diff-flows", &[other.path()]), "");
        assert_eq!(ofctl.harness.flow_count(), 1);
    });
}

#[test]
fn a_full_table_evicts_and_tells_how_full_it_is() {
    let harness = harness_of(10);
    let mut peer = controller(&harness, Version::V14);
    let eviction = 6;
    let vacancy = Some(Vacancy { down: 30, up: 60, now: 0 });
    let config = table_config::EVICTION | table_config::VACANCY_EVENTS;
    peer.say(&Message::TableMod(TableMod { table_id: 0, config, eviction: Some(eviction), vacancy }));
    let mask = AsyncMask { message: 4, is_of_slaves: false, mask: 0x18 };
    peer.say(&Message::ChangeAsync(vec![mask]));
    peer.barrier();
    let add = |peer: &mut Peer, number: u32, importance: u16| {
        let request = FlowMod { importance, flags: flags::SEND_FLOW_REM, ..wire(number, 1) };
        peer.say(&Message::FlowMod { buffer_id: NO_BUFFER, request });
    };
    (1..=7).for_each(|number| add(&mut peer, number, 5));
    peer.barrier();
    add(&mut peer, 8, 5);
    let Message::TableStatus(status) = peer.hear() else { panic!("no status") };
    assert_eq!((status.reason, status.table.table_id, status.table.config), (3, 0, config));
    assert_eq!(status.table.vacancy, Some(Vacancy { down: 30, up: 60, now: 20 }));
    add(&mut peer, 9, 2);
    add(&mut peer, 10, 5);
    peer.barrier();
    add(&mut peer, 11, 4);
    let Message::FlowRemoved(removed) = peer.hear() else { panic!("no flow removed") };
    assert_eq!((removed.reason, removed.matching.field(Field::InPort).unwrap().value), (5, 9));
    add(&mut peer, 12, 3);
    assert_eq!(peer.refusal(), (5, 1), "all others are more important");
    peer.say(&Message::FlowMod {
        buffer_id: NO_BUFFER,
        request: FlowMod { flags: 0, ..FlowMod::delete_all() },
    });
    let mut statuses = 0;
    for _ in 0..11 {
        match peer.hear() {
            Message::TableStatus(status) => {
                assert_eq!((status.reason, status.table.vacancy.unwrap().now), (4, 100));
                statuses += 1;
            }
            Message::FlowRemoved(removed) => assert_eq!(removed.reason, 2),
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(statuses, 1);
    let of = |config, vacancy| Message::TableMod(TableMod { table_id: 0, config, eviction: None, vacancy });
    peer.say(&of(16, None));
    assert_eq!(peer.refusal(), (8, 1));
    for (config, down) in [(table_config::VACANCY_EVENTS, 50), (0, 30), (table_config::EVICTION, 30)] {
        peer.say(&of(config, Some(Vacancy { down, up: 40, now: 0 })));
        assert_eq!(peer.refusal(), (14, 2), "{config} {down}");
    }
    assert!(harness.stop().balances());
}

#[test]
fn a_master_that_loses_its_role_is_told_and_meters_that_go_have_a_reason() {
    let harness = harness();
    let (mut old, mut new) = (controller(&harness, Version::V15), controller(&harness, Version::V13));
    let master = |generation_id| RoleMessage { role: Role::Master, generation_id };
    let masks = [(3, true, 1), (2, false, 0x3f)];
    let masks = masks.map(|(message, is_of_slaves, mask)| AsyncMask { message, is_of_slaves, mask });
    old.say(&Message::ChangeAsync(masks.to_vec()));
    old.say(&Message::RoleRequest(master(5)));
    assert_eq!(old.hear(), Message::RoleReply(master(5)));
    let meter = |command| Message::MeterMod(MeterMod { command, id: 1, flags: 2, bands: Vec::new() });
    let mut third = controller(&harness, Version::V14);
    third.say(&Message::ChangeAsync(vec![AsyncMask { message: 5, is_of_slaves: false, mask: 2 }]));
    third.barrier();
    old.say(&meter(MeterCommand::Add));
    let Message::RequestForward(bytes) = third.hear() else { panic!("no request") };
    let forwarded = Codec::new(Version::V14).decode(&bytes).unwrap().1;
    assert_eq!(forwarded, meter(MeterCommand::Add));
    let instructions = Instructions { meter: Some(1), ..Instructions::apply([Action::output(2)]) };
    let request = FlowMod { flags: flags::SEND_FLOW_REM, ..FlowMod::add(0, 1, Match::any(), instructions) };
    old.say(&Message::FlowMod { buffer_id: NO_BUFFER, request });
    old.say(&meter(MeterCommand::Delete));
    let Message::FlowRemoved(removed) = old.hear() else { panic!("no flow removed") };
    assert_eq!(removed.reason, 4);
    let Message::FlowRemoved(removed) = new.hear() else { panic!("no flow removed") };
    assert_eq!(removed.reason, 2, "OpenFlow 1.3 has no such reason");
    new.say(&Message::RoleRequest(master(6)));
    assert_eq!(new.hear(), Message::RoleReply(master(6)));
    let role = RoleMessage { role: Role::Slave, generation_id: 6 };
    assert_eq!(old.hear(), Message::RoleStatus(RoleStatus { reason: 0, role }));
}

#[test]
fn a_packet_out_of_15_enters_the_tables_with_its_fields_and_counters_are_told_alone() {
    let harness = harness();
    let mut peer = controller(&harness, Version::V15);
    let tunnel = FieldMatch::exact(Field::TunnelId, 77);
    let matching = Match::new(&[tunnel]).unwrap();
    let request = FlowMod::add(0, 5, matching.clone(), Instructions::apply([Action::output(3)]));
    peer.say(&Message::FlowMod { buffer_id: NO_BUFFER, request });
    let out = |fields| {
        let actions = vec![Action::output(port::TABLE)];
        Message::PacketOut(PacketOut { buffer_id: NO_BUFFER, in_port: 1, fields, actions, data: frame(1) })
    };
    peer.say(&out(Vec::new()));
    peer.say(&out(vec![tunnel]));
    assert_eq!(harness.receive(3), frame(1));
    let filter = FlowFilter::all();
    peer.say(&Message::MultipartRequest { flags: 0, request: Request::FlowStats(filter) });
    let Message::MultipartReply { reply: Reply::FlowStats(flows), .. } = peer.hear() else {
        panic!("no stats")
    };
    assert_eq!((flows.len(), flows[0].counters.packets, &flows[0].matching), (1, 1, &matching));
    // What is left out is refused.
    let refused = [18, 19].map(|kind| {
        peer.write(&[6, 18, 0, 16, 0, 0, 0, 9, 0, kind, 0, 0, 0, 0, 0, 0]);
        peer.refusal()
    });
    assert_eq!(refused, [(1, 2); 2], "controller status, bundle features");
    assert!(harness.stop().balances());
}

fn update(peer: &mut Peer) -> FlowUpdate {
    match peer.hear() {
        Message::MultipartReply { reply: Reply::FlowMonitor(mut updates), .. } if updates.len() == 1 => {
            updates.remove(0)
        }
        other => panic!("{other:?}"),
    }
}

fn full(peer: &mut Peer) -> (u16, u8, u128, usize) {
    let FlowUpdate::Full(update) = update(peer) else { panic!("abbreviated") };
    let port = update.matching.field(Field::InPort).unwrap().value;
    (update.event, update.reason, port, update.instructions.apply.len())
}

#[test]
fn a_controller_is_told_of_the_flows_that_it_monitors() {
    use monitor_flags::{ADD, INITIAL, INSTRUCTIONS, MODIFY, REMOVED};
    let harness = harness();
    let (mut watcher, mut other) = (controller(&harness, Version::V14), controller(&harness, Version::V13));
    let change = |request: FlowMod| Message::FlowMod { buffer_id: NO_BUFFER, request };
    other.say(&change(wire(1, 2)));
    other.say(&change(wire(2, 9)));
    other.barrier();
    let filter = FlowFilter { out_port: 2, ..FlowFilter::all() };
    let flags = INITIAL | ADD | REMOVED | MODIFY | INSTRUCTIONS;
    let request = |id, command, flags| {
        let one = MonitorRequest { id, command, flags, filter: filter.clone() };
        Message::MultipartRequest { flags: 0, request: Request::FlowMonitor(vec![one]) }
    };
    watcher.say(&request(5, 0, flags));
    assert_eq!(full(&mut watcher), (0, 0, 1, 1));
    watcher.barrier();
    other.say(&change(wire(3, 2)));
    other.say(&change(wire(4, 9)));
    let instructions = Instructions::apply([Action::output(3), Action::output(2)]);
    let modify = FlowMod { command: FlowCommand::Modify, instructions, ..wire(3, 2) };
    other.say(&change(modify.clone()));
    other.say(&change(modify));
    other.say(&change(FlowMod { command: FlowCommand::DeleteStrict, ..wire(1, 2) }));
    other.say(&change(FlowMod::delete_all()));
    assert_eq!(full(&mut watcher), (1, 0, 3, 1));
    assert_eq!(full(&mut watcher), (3, 0, 3, 2));
    assert_eq!(full(&mut watcher), (2, 2, 1, 1));
    assert_eq!(full(&mut watcher), (2, 2, 3, 2));
    watcher.say(&change(wire(1, 2)));
    assert!(matches!(update(&mut watcher), FlowUpdate::Abbreviated(_)));
    for (wrong, number) in [
        (request(5, 0, flags), 1),
        (request(6, 1, flags), 3),
        (request(5, 9, flags), 4),
        (request(7, 0, 0x80), 5),
    ] {
        watcher.say(&wrong);
        assert_eq!(watcher.refusal(), (16, number));
    }
    watcher.say(&request(5, 2, 0));
    let end = Message::MultipartReply { flags: 0, reply: Reply::FlowMonitor(Vec::new()) };
    assert_eq!(watcher.hear(), end);
    other.say(&change(wire(1, 2)));
    other.barrier();
    watcher.barrier();
}
