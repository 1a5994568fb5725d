//! Traffic over QUIC in virtual time: links that are filled, NATs, losses, marks, MTUs, and times
//! that a formula gives.

mod common;

use common::{only, run, topology};
use fastpath::Replay;

/// Hosts `a` and `b`, joined by one link, and traffic over QUIC from `a` to `b`.
fn pair(link: &str, traffic: &str) -> String {
    format!(
        "[host.a]\n[host.b]\n[[link]]\nbetween = ['a', 'b']\n{link}\n\
         [[traffic]]\nfrom = 'a'\nto = 'b'\nkind = 'quic'\n{traffic}\n"
    )
}

#[test]
fn a_short_transfer_takes_one_round_trip_and_a_half() {
    let summary = run(&pair("delay = '20ms'", "size = '9kB'"), 10);
    let report = only(&summary);
    assert!(report.complete, "{report}");
    assert_eq!((report.received_bytes, report.retransmitted, report.timeouts), (9000, 0, None));
    assert!((report.received_s - 0.06).abs() < 1e-6, "{report}");
    assert!((report.rtt_min_ms.unwrap() - 40.0).abs() < 1e-5, "{report}");
    assert!(summary.accounting.balances());
}

#[test]
fn both_congestion_controls_fill_a_link_over_several_queues() {
    for queue in ["{ kind = 'drop-tail', limit = '40p' }", "'codel'", "'fq-codel'"] {
        for congestion in ["cubic", "reno"] {
            for flows in [1, 4] {
                let link = format!("rate = '10Mbit'\ndelay = '10ms'\nqueue = {queue}");
                let traffic = format!("flows = {flows}\ncongestion = '{congestion}'");
                let summary = run(&pair(&link, &traffic), 20);
                let report = only(&summary);
                let share = report.goodput_bps / 10e6;
                println!("{queue} {congestion} {flows}: {share} {report}");
                assert!((0.85..=0.97).contains(&share), "{queue} {congestion} {flows}: {share}");
                let least = *report.flow_bytes.iter().min().unwrap();
                assert!(
                    least * u64::from(flows * 4_u32) > report.received_bytes,
                    "{queue} {congestion}: {:?}",
                    report.flow_bytes
                );
                assert!(summary.accounting.balances());
            }
        }
    }
}

#[test]
fn marks_take_the_place_of_losses() {
    let link = "rate = '10Mbit'\ndelay = '10ms'\nqueue = { kind = 'codel', ecn = true }";
    let summary = run(&pair(link, "ecn = true\nsize = '10MB'"), 60);
    let report = only(&summary);
    assert!(report.complete && report.marked > Some(2) && report.retransmitted == 0, "{report}");
    let summary = run(&pair(link, "size = '10MB'"), 60);
    assert!(only(&summary).marked == Some(0) && only(&summary).retransmitted > 0, "{}", only(&summary));
}

#[test]
fn connections_pass_nats_that_rebind_and_hosts_with_several_links() {
    let text = "[host.a]\n[host.b]\n[host.far]\n[nat.n]\ninside = ['a-n', 'b-n']\n[router.r]\n\
        [[link]]\nbetween = ['a', 'n']\ndelay = '5ms'\n[[link]]\nbetween = ['b', 'n']\ndelay = '5ms'\n\
        [[link]]\nbetween = ['n', 'r']\nrate = '20Mbit'\nloss = '0.5%'\n\
        [[link]]\nbetween = ['r', 'far']\ndelay = '5ms'\n[[link]]\nbetween = ['a', 'far']\n\
        [[event]]\nat = '300ms'\nnat = 'n'\nrebind = 'port'\n\
        [[traffic]]\nname = 'nat'\nfrom = 'b'\nto = 'far'\nkind = 'quic'\nsize = '400kB'\nflows = 3\n\
        [[traffic]]\nname = 'direct'\nfrom = 'a'\nto = 'far'\nkind = 'quic'\nsize = '1MB'\n";
    let summary = Replay::through(topology(text)).run().unwrap();
    let [nat, direct] = &summary.transfers[..] else { panic!("two transfers") };
    assert!(nat.complete && direct.complete, "{nat}\n{direct}");
    assert!(nat.received_s > 0.31, "it rebinds on the way: {nat}");
    assert_eq!((nat.received_bytes, direct.received_bytes), (1_200_000, 1_000_000));
}

#[test]
fn the_same_seed_gives_the_same_run_and_another_does_not() {
    let with = |seed: u64| {
        let link = "rate = '10Mbit'\ndelay = '10ms'\nloss = '1%'\nduplicate = '1%'\nreorder = { probability = '2%' }\ncorrupt = '0.5%'";
        let text = format!("seed = {seed}\n{}", pair(link, "size = '500kB'\nflows = 3"));
        let summary = Replay::through(topology(&text)).run().unwrap();
        assert!(only(&summary).complete, "{}", only(&summary));
        (summary.transfers.clone(), summary.accounting, summary.links.clone())
    };
    assert_eq!(with(1), with(1));
    assert_ne!(with(1).0, with(2).0);
}

#[test]
fn packets_grow_to_what_the_path_carries() {
    let frames = |mtu: u32| {
        let link = format!("delay = '5ms'\nmtu = {mtu}");
        let summary = run(&pair(&link, "size = '5MB'"), 60);
        assert!(only(&summary).complete, "{}", only(&summary));
        only(&summary).segments
    };
    // 1200, and at most 1452 bytes of UDP payload, of which about 30 are QUIC's.
    let (small, usual, large) = (frames(1228), frames(1500), frames(9000));
    assert!((5_000_000 / 1180..5_000_000 / 1160).contains(&small), "{small}");
    assert!((5_000_000 / 1430..5_000_000 / 1400).contains(&usual), "{usual}");
    assert_eq!(usual, large);
}

#[test]
fn quic_and_tcp_share_a_link() {
    let link = "rate = '10Mbit'\ndelay = '10ms'\nqueue = 'fq-codel'";
    let text = format!("{}[[traffic]]\nfrom = 'a'\nto = 'b'\nname = 'tcp'\nkind = 'tcp'\n", pair(link, ""));
    let summary = run(&text, 10);
    let [quic, tcp] = &summary.transfers[..] else { panic!("two transfers") };
    assert_eq!([&quic.kind, &tcp.kind], ["quic", "tcp"]);
    for report in [quic, tcp] {
        assert!((4e6..5e6).contains(&report.goodput_bps), "{report}");
    }
}

#[test]
fn what_cannot_run_says_what_to_write() {
    let refused = Replay::through(topology(&pair("", ""))).run().expect_err("it is refused").to_string();
    assert_eq!(
        refused,
        "traffic a-b: it does not stop; write stop = \"10s\" or size = \"10MB\" for it, or give --until 10s"
    );
    // A link that never carries anything: both ends give up by the idle timeout.
    let summary = Replay::through(topology(&pair("loss = '100%'", "size = '1kB'"))).run().unwrap();
    assert!(!only(&summary).complete && only(&summary).received_bytes == 0, "{}", only(&summary));
}
