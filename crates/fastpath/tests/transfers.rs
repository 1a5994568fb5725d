//! Traffic over TCP in virtual time: links that are filled, NATs, several links, losses, queues,
//! and times that a formula gives.

mod common;

use common::{only, run, topology};
use fastpath::Replay;
use fastpath::spec::parse;
use fastpath::units::Duration;

/// Hosts `a` and `b`, joined by one link, and traffic from `a` to `b`.
fn pair(link: &str, traffic: &str) -> String {
    format!(
        "[host.a]\n[host.b]\n[[link]]\nbetween = ['a', 'b']\n{link}\n[[traffic]]\nfrom = 'a'\nto = 'b'\n{traffic}\n"
    )
}

#[test]
fn a_short_transfer_takes_the_time_of_its_round_trips() {
    // 10 segments leave at once: the SYN and its answer, then the data.
    let summary = run(&pair("delay = '20ms'", "kind = 'tcp'\nsize = '14480B'"), 10);
    let report = only(&summary);
    assert!(report.complete);
    assert_eq!((report.received_bytes, report.segments, report.retransmitted), (14_480, 10, 0));
    assert!((report.received_s - 0.06).abs() < 1e-9, "{report}");
    assert_eq!(report.rtt_min_ms, Some(40.0));
    // The 11th needs one more.
    let summary = run(&pair("delay = '20ms'", "kind = 'tcp'\nsize = '14481B'"), 10);
    assert!((only(&summary).received_s - 0.1).abs() < 1e-9, "{}", only(&summary));
}

#[test]
fn flows_share_a_link_and_fill_it() {
    for queue in ["'codel'", "'fq-codel'", "'pie'", "'dualpi2'", "{ kind = 'drop-tail', limit = '40p' }"] {
        for congestion in ["cubic", "reno"] {
            let link = format!("rate = '10Mbit'\ndelay = '10ms'\nqueue = {queue}");
            let traffic = format!("kind = 'tcp'\nflows = 4\ncongestion = '{congestion}'");
            let summary = run(&pair(&link, &traffic), 20);
            let report = only(&summary);
            // 1448 of 1514 bytes.
            let share = report.goodput_bps / (10e6 * 1448.0 / 1514.0);
            assert!((0.9..=1.0).contains(&share), "{queue} {congestion}: {share}");
            assert_eq!(report.flow_bytes.iter().sum::<u64>(), report.received_bytes);
            let least = *report.flow_bytes.iter().min().unwrap() as f64;
            assert!(
                least > report.received_bytes as f64 / 16.0,
                "{queue} {congestion}: {:?}",
                report.flow_bytes
            );
            assert!(summary.accounting.balances());
        }
    }
}

#[test]
fn marks_take_the_place_of_losses() {
    let link = "rate = '10Mbit'\ndelay = '10ms'\nqueue = { kind = 'codel', ecn = true }";
    let summary = run(&pair(link, "kind = 'tcp'\necn = true\nsize = '10MB'"), 60);
    let report = only(&summary);
    assert!(report.complete && report.marked > Some(2) && report.retransmitted == 0, "{report}");
    let summary = run(&pair(link, "kind = 'tcp'\nsize = '10MB'"), 60);
    assert!(only(&summary).marked == Some(0) && only(&summary).retransmitted > 0, "{}", only(&summary));
}

#[test]
fn connections_pass_nats_and_hosts_with_several_links() {
    let text = "[host.a]\n[host.b]\n[host.far]\n[nat.n]\ninside = ['a-n', 'b-n']\n[router.r]\n\
        [[link]]\nbetween = ['a', 'n']\ndelay = '5ms'\n[[link]]\nbetween = ['b', 'n']\ndelay = '5ms'\n\
        [[link]]\nbetween = ['n', 'r']\nrate = '20Mbit'\nloss = '0.5%'\n\
        [[link]]\nbetween = ['r', 'far']\ndelay = '5ms'\n[[link]]\nbetween = ['a', 'far']\n\
        [[traffic]]\nname = 'nat'\nfrom = 'b'\nto = 'far'\nkind = 'request'\nsize = '40kB'\nrequests = 20\nflows = 3\n\
        [[traffic]]\nname = 'direct'\nfrom = 'a'\nto = 'far'\nkind = 'tcp'\nsize = '1MB'\n";
    let Ok((topology, _)) = parse(text) else {
        let mistakes = parse(text).unwrap_err();
        panic!("{}", mistakes[0]);
    };
    let summary = Replay::through(topology).run().unwrap();
    let [nat, direct] = &summary.transfers[..] else { panic!("two transfers") };
    assert!(nat.complete && direct.complete, "{nat}\n{direct}");
    assert_eq!((nat.answers, nat.received_bytes), (60, 60 * 40_000));
    assert_eq!(direct.received_bytes, 1_000_000);
}

#[test]
fn the_same_seed_gives_the_same_run_and_transfers_leave_datagrams_alone() {
    let with = |more: &str| {
        let link = "rate = '10Mbit'\ndelay = '10ms'\nloss = '1%'";
        let traffic = "kind = 'request'\nsize = { law = 'pareto', mean = '30kB', shape = 1.4 }\nthink = '50ms'\nflows = 3";
        let text = pair(link, &format!("{traffic}\n{more}"));
        run(&text, 5)
    };
    let (first, second) = (with(""), with(""));
    assert_eq!(first.transfers, second.transfers);
    assert_eq!(first.accounting, second.accounting);
    let voice = "[[traffic]]\nname = 'call'\nfrom = 'b'\nto = 'a'\nkind = 'voice'\n";
    let both = with(voice);
    let alone = run(&format!("[host.a]\n[host.b]\n[[link]]\nbetween = ['a', 'b']\n{voice}"), 5);
    assert_eq!(both.traffic[0].sent, alone.traffic[0].sent);
}

#[test]
fn what_cannot_run_says_what_to_write() {
    let refusal = |text: &str| Replay::through(topology(text)).run().expect_err("it is refused").to_string();
    assert_eq!(
        refusal(&pair("", "kind = 'tcp'")),
        "traffic a-b: it does not stop; write stop = \"10s\" or size = \"10MB\" for it, or give --until 10s"
    );
    let text = "[host.a]\n[host.b]\n[host.c]\n[[link]]\nbetween = ['a', 'c']\n[[traffic]]\nfrom = 'a'\nto = 'b'\nkind = 'request'\nsize = '1kB'\nrequests = 1\n";
    assert!(refusal(text).contains("a has no route to an address of b"), "{}", refusal(text));
    // A link that never carries anything: the connection gives up.
    let summary =
        Replay::through(topology(&pair("loss = '100%'", "kind = 'tcp'\nsize = '1kB'"))).run().unwrap();
    assert_eq!((only(&summary).complete, only(&summary).timeouts), (false, Some(7)));
}

#[test]
fn links_count_what_went_over_them_and_queues_are_sampled() {
    // 1514 bytes of wire take 1.2112 ms; 20 of them wait.
    let link = "rate = '10Mbit'\nqueue = { kind = 'drop-tail', limit = '20p' }";
    let text = pair(link, "kind = 'tcp'\nsize = '2MB'\ncongestion = 'reno'");
    let replay = |interval| Replay::through(topology(&text)).sample_queues(Duration::from_ms(interval)).run();
    let summary = replay(10).unwrap();
    let [there, back] = &summary.links[..] else { panic!("two directions") };
    assert_eq!((there.link.as_str(), there.from.as_str(), back.from.as_str()), ("a-b", "a", "b"));
    let report = only(&summary);
    // The data, the SYN, and the acknowledgement of the answer. The FIN is on the last segment.
    assert_eq!(there.frames_in, report.segments + 2, "{report}");
    assert_eq!(there.dropped["queue-full"], report.retransmitted);
    assert_eq!(there.frames_in, there.frames_out + there.dropped.values().sum::<u64>());
    assert!(back.frames_in > report.segments / 2 && back.dropped.is_empty(), "{back:?}");
    // One sample in 10 ms from the first to the last thing that happens.
    let samples = there.queue.len() as f64;
    assert!((0.0..20.0).contains(&(samples - report.received_s * 100.0)), "{samples} {report}");
    let most = there.queue.iter().map(|queue| queue.volume.packets).max().unwrap();
    let longest = there.queue.iter().map(|queue| queue.delay.as_ms_f64()).fold(0.0, f64::max);
    assert!((15..=21).contains(&most) && (15.0..21.0 * 1.22).contains(&longest), "{most} {longest}");
    // Looking changes nothing.
    assert_eq!(replay(1).unwrap().transfers, summary.transfers);
    assert_eq!(replay(1).unwrap().links[0].queue[9], there.queue[0]);
}
