//! The traffic of a description on the hosts of a lab.
#![cfg(target_os = "linux")]

mod common;

use common::up;
use fastpath_engine::{Options, Report};
use fastpath_lab::Lab;
use fastpath_spec::parse;
use std::sync::atomic::AtomicBool;

/// Runs a network until its traffic has ended. `None` where labs are not permitted.
fn run(test: &str, text: &str) -> Option<Report> {
    let lab = up(test, text)?;
    lab.wait_for_traffic(&AtomicBool::new(false));
    Some(lab.down().expect("the engine does not panic"))
}

#[test]
fn hosts_send_at_the_rate_of_the_description() {
    for family in ["v4", "v6"] {
        let text = format!(
            "family = '{family}'\n[host.a]\n[host.b]\n[router.r]\n\
             [[link]]\nbetween = ['a', 'r']\ndelay = '5ms'\n\
             [[link]]\nbetween = ['r', 'b']\nrate = '100Mbit'\ndelay = '10ms'\nqueue = '100000p'\n\
             [[traffic]]\nfrom = 'a'\nto = 'b'\nrate = '8Mbit'\nsize = 500\ndscp = 46\nstop = '3s'\n\
             [[traffic]]\nfrom = 'b'\nto = 'a'\nkind = 'poisson'\nrate = '2Mbit'\nstart = '300ms'\nstop = '2500ms'\n"
        );
        let Some(report) = run("rates of traffic", &text) else { return };
        let [there, back] = &report.traffic[..] else { panic!("two flows") };
        // Once for each 500 µs from when the lab is up. What is due does not depend on the
        // machine; on a busy one the last of it is missed.
        assert!((there.asked_bps / 8e6 - 1.0).abs() < 0.01 && there.sent_bps <= there.asked_bps, "{there}");
        assert!(there.sent > 100 && back.sent > 20, "{there}; {back}");
        for flow in [there, back] {
            assert_eq!((flow.lost, flow.received, flow.duplicates), (0, flow.sent, 0), "{flow}");
            assert!(flow.delay.unwrap().min_ms >= 15.0, "{flow}");
        }
    }
}

#[test]
fn what_links_drop_is_lost() {
    let text = "[host.a]\n[host.b]\n[[link]]\nbetween = ['a', 'b']\nloss = { kind = 'packets', numbers = [1, 3, 4] }\n\
        [[traffic]]\nfrom = 'a'\nto = 'b'\nrate = '80kbit'\nsize = 100\nstop = '2s'\n";
    let Some(report) = run("losses of traffic", text) else { return };
    let flow = &report.traffic[0];
    assert!(flow.sent > 10 && flow.lost == 3, "{flow}");
}

#[test]
fn traffic_that_cannot_be_sent_is_refused_before_anything_is_made() {
    let refusal = |text: &str| {
        let (topology, _) = parse(text).unwrap();
        let refused = Lab::up(topology, "refused-traffic", Options::new(fastpath_net::Options::default()));
        refused.expect_err("it is refused").to_string()
    };
    let hosts = "[host.a]\nassign = false\n[host.b]\nassign = false\n[[link]]\nbetween = ['a', 'b']\n";
    let said = refusal(&format!("{hosts}[[traffic]]\nfrom = 'a'\nto = 'b'\nrate = '1Mbit'\n"));
    assert!(said.starts_with("traffic a-b: a has no route to an address of b; "), "{said}");
    let said = refusal(&format!("{hosts}[[traffic]]\nfrom = 'a'\nto = 'b'\nkind = 'tcp'\n"));
    assert!(said.starts_with("traffic a-b: a has no route to an address of b; "), "{said}");
    let hosts = "[host.a]\n[host.b]\n[[link]]\nbetween = ['a', 'b']\n";
    let tcp = "[[traffic]]\nfrom = 'a'\nto = 'b'\nkind = 'tcp'\n";
    let said = refusal(&format!("{hosts}{tcp}size = 1\nflows = 2\n"));
    let expected = "traffic a-b: several connections in a lab need a size of at least 2 bytes, their numbers; \
        write size = \"2B\" or more, or flows = 1";
    assert_eq!(said, expected);
    let said = refusal(&format!("{hosts}[[traffic]]\nfrom = 'a'\nto = 'b'\nkind = 'quic'\n"));
    let expected = "traffic a-b: it is over QUIC, which fastpath itself sends in virtual time and between \
        interfaces; start programs that send it, or write kind = \"tcp\"";
    assert_eq!(said, expected);
    let said = refusal(&format!("{hosts}{tcp}name = 'x'\necn = true\n{tcp}"));
    assert!(
        said.contains("with another ecn") && said.contains("the same ecn for all transfers from a"),
        "{said}"
    );
}
