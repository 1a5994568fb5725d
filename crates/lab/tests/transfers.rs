//! Connections of TCP and QUIC of a description, on the hosts of a lab and at ports.
#![cfg(target_os = "linux")]

mod common;

use common::up;
use fastpath_engine::{Options, Report};
use fastpath_lab::Lab;
use fastpath_spec::parse;
use fastpath_traffic::TransferReport;
use std::sync::atomic::AtomicBool;

/// Runs a network until its traffic has ended. `None` where labs are not permitted.
fn run(test: &str, text: &str) -> Option<Report> {
    let lab = up(test, text)?;
    lab.wait_for_traffic(&AtomicBool::new(false));
    Some(lab.down().expect("the engine does not panic"))
}

/// The same between ports of the engine.
fn run_at_ports(test: &str, text: &str) -> Report {
    let (topology, _) = parse(text).expect("a spec");
    let options = Options::new(fastpath_net::Options::default());
    let lab = Lab::attach(topology, &format!("ports {test}").replace(' ', "-"), options)
        .unwrap_or_else(|error| panic!("{error}"));
    lab.wait_for_traffic(&AtomicBool::new(false));
    lab.down().expect("the engine does not panic")
}

/// Two hosts behind a link of 50 Mbit/s and 10 ms each way.
fn pair(traffic: &str) -> String {
    format!(
        "[host.a]\n[host.b]\n[[link]]\nbetween = ['a', 'b']\nrate = '50Mbit'\ndelay = '10ms'\n\
         [[traffic]]\nfrom = 'a'\nto = 'b'\n{traffic}"
    )
}

fn check_bulk(report: &TransferReport) {
    assert!(report.complete && report.flow_bytes == [1_000_000; 4], "{report}");
    assert!(report.goodput_bps > 5e6 && report.goodput_bps < 50e6, "{report}");
    assert!(report.rtt_min_ms.unwrap() >= 20.0, "{report}");
    assert!(report.segments >= 4 * 1_000_000 / 1460, "{report}");
}

#[test]
fn all_bytes_of_all_connections_arrive() {
    let text = pair("kind = 'tcp'\nsize = '1MB'\nflows = 4\ncongestion = 'reno'\ndscp = 10\n");
    check_bulk(&run_at_ports("bulk transfers", &text).transfers[0]);
    for family in ["v4", "v6"] {
        let Some(report) = run("bulk transfers", &format!("family = '{family}'\n{text}")) else { return };
        check_bulk(&report.transfers[0]);
    }
}

#[test]
fn connections_of_quic_run_between_ports() {
    for family in ["v4", "v6"] {
        let text = pair("kind = 'quic'\nsize = '1MB'\nflows = 4\ncongestion = 'reno'\ndscp = 10\n");
        let report = run_at_ports("quic", &format!("family = '{family}'\n{text}"));
        let transfer = &report.transfers[0];
        check_bulk(transfer);
        assert_eq!((transfer.kind.as_str(), transfer.timeouts), ("quic", None));
    }
}

#[test]
fn requests_through_a_nat_have_their_answers() {
    let text = "family = 'v4'\n[host.a]\n[host.b]\n[nat.n]\ninside = ['a-n']\n\
        [[link]]\nbetween = ['a', 'n']\ndelay = '5ms'\n[[link]]\nbetween = ['n', 'b']\ndelay = '5ms'\n\
        [[traffic]]\nfrom = 'a'\nto = 'b'\nkind = 'request'\nrequest = '100B'\nflows = 5\nrequests = 8\n\
        size = { law = 'exponential', mean = '20kB' }\nthink = '10ms'\n";
    let live = run("requests", text);
    for report in [run_at_ports("requests", text)].iter().chain(&live) {
        let report = &report.transfers[0];
        assert!(report.complete && (report.requests, report.answers) == (40, 40), "{report}");
        assert!(report.answer.unwrap().min_ms >= 20.0, "{report}");
        // The sizes are drawn with the seed of the run, whoever sends them.
        let drawn = &run_at_ports("drawn", text).transfers[0].flow_bytes;
        assert_eq!(drawn, &report.flow_bytes);
    }
}

#[test]
fn what_has_no_size_ends_at_its_stop() {
    let text = pair("kind = 'tcp'\nstart = '200ms'\nstop = '1500ms'\n");
    let live = run("endless", &text);
    for report in [run_at_ports("endless", &text)].iter().chain(&live) {
        let transfer = &report.transfers[0];
        assert!(!transfer.complete && transfer.received_s >= 0.5, "{transfer}");
        assert!(transfer.received_bytes > 100_000 && transfer.goodput_bps < 50e6, "{transfer}");
    }
}

#[test]
fn connections_with_ecn_are_marked_and_not_dropped() {
    let text = |ecn: bool| {
        "[host.a]\n[host.b]\n[[link]]\nbetween = ['a', 'b']\nrate = '10Mbit'\ndelay = '5ms'\n\
         queue = { kind = 'codel', ecn = true }\n[[traffic]]\nfrom = 'a'\nto = 'b'\nkind = 'tcp'\nstop = '3s'\n"
            .to_owned()
            + &format!("ecn = {ecn}\n")
    };
    let live = |ecn: bool| run("ecn", &text(ecn));
    for reports in [[true, false].map(|ecn| Some(run_at_ports("ecn", &text(ecn)))), [true, false].map(live)] {
        let [Some(with), Some(without)] = reports else { continue };
        let marked = |report: &Report| report.links[0].directions[0].marked;
        assert!(marked(&with) > 0 && with.transfers[0].retransmitted == 0, "{}", with.transfers[0]);
        assert!(marked(&without) == 0 && without.transfers[0].retransmitted > 0, "{}", without.transfers[0]);
    }
}

#[test]
fn a_connection_that_breaks_is_over() {
    // The first packet is never answered, and the lab goes on to the stop.
    let text = pair("kind = 'request'\nsize = '1kB'\nrequests = 1\nstop = '1s'\n")
        .replace("delay = '10ms'", "delay = '10ms'\nloss = '100%'");
    let Some(report) = run("broken", &text) else { return };
    let transfer = &report.transfers[0];
    assert!(!transfer.complete && (transfer.requests, transfer.answers) == (1, 0), "{transfer}");
    assert!(transfer.timeouts > Some(0), "{transfer}");
}
