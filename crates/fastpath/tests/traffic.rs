//! The traffic of descriptions in virtual time: exact times, the same packets for the same seed,
//! the waiting times of queueing theory, and Emulab's rates on the wire.

use fastpath::replay::TimeColumns;
use fastpath::spec::{Topology, parse};
use fastpath::units::{Duration, Time};
use fastpath::{Replay, ReplaySummary};
use fastpath_traffic::FlowReport;
use proptest::{prop_assert, prop_assert_eq, proptest};
use std::ops::ControlFlow;

fn topology(text: &str) -> Topology {
    parse(text).unwrap_or_else(|mistakes| panic!("{text}\n{}", mistakes[0])).0
}

/// Hosts `a` and `b`, joined by one link, and traffic from `a` to `b`.
fn pair(link: &str, traffic: &str) -> Topology {
    topology(&format!(
        "[host.a]\n[host.b]\n[[link]]\nbetween = ['a', 'b']\n{link}\n[[traffic]]\nfrom = 'a'\nto = 'b'\n{traffic}\n"
    ))
}

fn run(replay: Replay) -> ReplaySummary {
    replay.run().unwrap_or_else(|error| panic!("{error}"))
}

/// Also returns the times of each frame.
fn columns(replay: Replay) -> (ReplaySummary, TimeColumns) {
    replay.run_columns(&[], &mut |_| ControlFlow::Continue(())).unwrap_or_else(|error| panic!("{error}"))
}

fn refusal(replay: Replay) -> String {
    replay.run().expect_err("it is refused").to_string()
}

#[test]
fn a_constant_rate_arrives_at_exact_times() {
    let link = "rate = '10Mbit'\ndelay = '25ms'";
    let traffic = "rate = '8Mbit'\nsize = 1000\nstart = '1s'\nstop = '2s'\ndscp = 46";
    let (summary, times) = columns(Replay::through(pair(link, traffic)));
    let [FlowReport { sent, received, lost, sent_bps, received_bps, delay, .. }] = &summary.traffic[..]
    else {
        panic!("one flow")
    };
    assert_eq!((*sent, *received, *lost), (1000, 1000, 0));
    assert_eq!((*sent_bps, *received_bps), (8e6, 8e6));
    // 1042 bytes take 833.6 µs, and packets leave each ms.
    let delay = delay.unwrap();
    assert_eq!((delay.mean_ms, delay.jitter_ms), (25.8336, 0.0));
    let ms = 1_000_000_000;
    for (index, (entered, left)) in times.in_ps.iter().zip(&times.out_ps).enumerate() {
        assert_eq!(*entered, (1000 + index as u64) * ms);
        assert_eq!(left - entered, 25_833_600_000);
    }
    assert_eq!(times.len, vec![1042; 1000]);
}

#[test]
fn a_flow_is_the_same_whatever_else_is_sent() {
    let flows = |others: &str, seed| {
        let text = format!(
            "[host.a]\n[host.b]\n[host.c]\n[[link]]\nbetween = ['a', 'b']\n[[link]]\nbetween = ['a', 'c']\nloss = '10%'\n\
             {others}[[traffic]]\nname = 'x'\nfrom = 'a'\nto = 'b'\nkind = 'poisson'\nrate = '1Mbit'\n"
        );
        let replay = Replay::through(topology(&text)).until(Duration::from_secs(1)).seed(seed);
        let (summary, times) = columns(replay);
        let place = summary.traffic.iter().position(|flow| flow.name == "x").unwrap() as u32;
        let own = times.in_ps.iter().zip(&times.input).filter(|(_, input)| **input == place);
        own.map(|(at, _)| *at).collect::<Vec<u64>>()
    };
    let other = "[[traffic]]\nfrom = 'a'\nto = 'c'\nkind = 'poisson'\nrate = '3Mbit'\n";
    let alone = flows("", 7);
    assert!(alone.len() > 80, "{}", alone.len());
    assert_eq!(flows(other, 7), alone);
    assert_ne!(flows("", 8), alone);
}

#[test]
fn poisson_traffic_waits_as_the_formula_of_pollaczek_and_khinchine_says() {
    // M/D/1 at a load of 70 %: W = ρ S / (2 (1 − ρ)).
    let traffic = "kind = 'poisson'\nload = '70% of bottleneck'\nsize = 958\nstop = '300s'";
    let summary = run(Replay::through(pair("rate = '8Mbit'\nqueue = '10000p'", traffic)));
    let flow = &summary.traffic[0];
    // 1000 bytes take 1 ms.
    let waited = flow.delay.unwrap().mean_ms - 1.0;
    let expected = 0.7 / (2.0 * 0.3);
    assert!((waited / expected - 1.0).abs() < 0.03, "{waited} and {expected}: {flow}");
    assert_eq!(flow.lost, 0);
}

#[test]
fn what_a_queue_drops_is_lost() {
    let summary = run(Replay::through(pair(
        "rate = '8Mbit'\nqueue = '10p'",
        "rate = '15.328Mbit'\nsize = 958\nstop = '10s'",
    )));
    let flow = &summary.traffic[0];
    // 2000 frames of 1000 bytes a second, of which 1000 leave.
    assert_eq!((flow.sent, flow.sent - flow.received), (20_000, flow.lost));
    assert!((9_985..=10_000).contains(&flow.lost), "{flow}");
    assert_eq!(summary.accounting.total_dropped(), flow.lost);
    assert_eq!(flow.delay.unwrap().max_ms.round(), 10.0, "{flow}");
}

#[test]
fn traffic_crosses_routers_switches_and_both_families() {
    for family in ["v4", "v6"] {
        let summary = run(Replay::through(topology(&format!(
            "family = '{family}'\n[host.a]\n[host.b]\n[router.r]\n[switch.s]\n\
             [[link]]\nbetween = ['a', 's']\n[[link]]\nbetween = ['s', 'r']\n[[link]]\nbetween = ['r', 'b']\ncorrupt = '20%'\n\
             [[traffic]]\nfrom = 'a'\nto = 'b'\nrate = '1Mbit'\nstop = '1s'\n\
             [[traffic]]\nfrom = 'b'\nto = 'a'\nkind = 'voice'\nstop = '9s'\n"
        ))));
        let [there, back] = &summary.traffic[..] else { panic!("two flows") };
        // Frames that were corrupted are delivered, and the receiver discards most of them.
        assert!(there.sent == 125 && (5..60).contains(&there.lost), "{family}: {there}");
        assert!(back.sent > 50 && back.lost > 0 && back.received > back.lost, "{family}: {back}");
    }
}

#[test]
fn captures_of_receivers_hold_the_datagrams() {
    let directory = std::env::temp_dir().join(format!("fastpath-traffic-{}", std::process::id()));
    std::fs::create_dir_all(&directory).unwrap();
    let file = directory.join("b.pcap");
    let pair = pair("delay = '1ms'", "rate = '1Mbit'\nsize = 100\nstop = '8ms'\nport = 4000\ndscp = 46");
    let summary = run(Replay::through(pair).output(&format!("b={}", file.display())).unwrap());
    let bytes = std::fs::read(&file).unwrap();
    std::fs::remove_dir_all(&directory).unwrap();
    assert_eq!(summary.traffic[0].received, 10);
    let mut reader = fastpath::wire::pcap::CaptureReader::new(&bytes[..]).unwrap();
    for number in 0..10_u64 {
        let packet = reader.read_packet().unwrap().expect("ten packets");
        assert_eq!(packet.ns, Some(number * 800_000 + 1_000_000));
        let headers = fastpath::wire::Headers::parse(packet.data);
        let status = fastpath::wire::checksum::check_transport(packet.data, &headers);
        assert_eq!(status, fastpath::wire::checksum::ChecksumStatus::Good);
        assert_eq!((headers.traffic_class(), packet.data.len()), (46 << 2, 142));
        assert_eq!(packet.data[42..50], number.to_be_bytes());
    }
    assert!(reader.read_packet().unwrap().is_none());
}

#[test]
fn what_cannot_be_sent_is_refused_before_the_run() {
    let endless = refusal(Replay::through(pair("", "rate = '1Mbit'")));
    assert_eq!(endless, "traffic a-b: it does not stop; write stop = \"10s\" for it, or give --until 10s");
    let apart = "[host.a]\nassign = false\n[host.b]\nassign = false\n[[link]]\nbetween = ['a', 'b']\n\
        [[traffic]]\nfrom = 'a'\nto = 'b'\nrate = '1Mbit'\nstop = '1s'\n";
    assert!(
        refusal(Replay::through(topology(apart)))
            .starts_with("traffic a-b: a has no route to an address of b; ")
    );
    let router = "[host.a]\n[host.b]\n[router.r]\nkind = 'kernel'\n[[link]]\nbetween = ['a', 'r']\n[[link]]\nbetween = ['r', 'b']\n\
        [[traffic]]\nfrom = 'a'\nto = 'r'\nrate = '1Mbit'\nstop = '1s'\n";
    let said = refusal(Replay::through(topology(router)));
    assert!(
        said.contains("r is a kernel router, which sends and receives only in a lab; name a host"),
        "{said}"
    );
}

#[test]
fn the_rate_of_a_script_of_ns_2_is_that_on_the_wire() {
    // In the shape of the first example of "NS by Example".
    let script = "set ns [new Simulator]\n\
        proc finish {} {\n  global ns nf\n  $ns flush-trace\n  exec nam out.nam &\n  exit 0\n}\n\
        foreach i {0 1 2 3} { set n$i [$ns node] }\n\
        $ns duplex-link $n0 $n2 2Mb 10ms DropTail\n$ns duplex-link $n1 $n2 2Mb 10ms DropTail\n\
        $ns duplex-link $n2 $n3 1.7Mb 20ms DropTail\n$ns queue-limit $n2 $n3 10\n\
        set udp [new Agent/UDP]\n$ns attach-agent $n1 $udp\nset null [new Agent/Null]\n$ns attach-agent $n3 $null\n\
        $ns connect $udp $null\n$udp set fid_ 2\nset cbr [new Application/Traffic/CBR]\n$cbr attach-agent $udp\n\
        $cbr set type_ CBR\n$cbr set packet_size_ 1000\n$cbr set rate_ 1mb\n$cbr set random_ false\n\
        set exp [[$ns create-connection UDP $n0 Null $n3 1] attach-app Traffic/Exponential]\n$exp set rate_ 300Kb\n\
        $ns at 0.1 \"$cbr start\"\n$ns at 4.5 \"$cbr stop\"\n$ns at 0.5 \"$exp start\"\n$ns at 600.0 \"finish\"\n$ns run\n";
    let (topology, warnings) =
        fastpath_emulab::parse(script).unwrap_or_else(|mistakes| panic!("{}", mistakes[0]));
    let said: Vec<String> = warnings.iter().map(ToString::to_string).collect();
    let is_known = |said: &String| said.contains("routers, because") || said.contains("exec is ignored");
    assert!(said.iter().all(is_known), "{said:?}");
    let (summary, times) = columns(Replay::through(topology));
    let [cbr, exponential] = &summary.traffic[..] else { panic!("two flows") };
    assert_eq!((cbr.name.as_str(), cbr.sent), ("cbr", 550));
    assert!((cbr.sent_bps / 1e6 - 1.0).abs() < 0.01 && cbr.lost == 0, "{cbr}");
    // Half of the time at 300 kbit/s, by chance.
    assert!((exponential.sent_bps / 150e3 - 1.0).abs() < 0.1, "{exponential}");
    let first = times.in_ps.iter().zip(&times.input).filter(|(_, input)| **input == 0).map(|(at, _)| *at);
    let gaps: Vec<u64> = first.clone().zip(first.skip(1)).map(|(at, next)| next - at).collect();
    assert!(gaps.iter().all(|gap| *gap == 8_000_000_000), "1000 bytes at 1 Mbit/s: 8 ms");
}

proptest! {
    /// Without the times of frames, a replay takes another way through the network.
    #[test]
    fn the_fast_way_has_the_same_results(
        seed: u64, rate_mbit in 1u32..30, kinds in proptest::collection::vec((0usize..4, 0usize..4, 16u32..1400), 1..5),
        queue in 1u32..30, loss in 0u32..20, jitter in 0u32..3,
    ) {
        let hosts = ["a", "b", "c", "d"];
        let mut text = hosts.map(|host| format!("[host.{host}]\n")).concat();
        text += "[router.r]\n[router.q]\n";
        for (host, router) in [("a", "r"), ("b", "r"), ("c", "q"), ("d", "q")] {
            text += &format!("[[link]]\nbetween = ['{host}', '{router}']\ndelay = '1ms'\nloss = '{loss}%'\n");
        }
        // The law of the jitter may shorten the delay.
        let delay_min_ms = if jitter == 0 { 12.0 } else { 2.0 };
        let jitter = if jitter == 0 { String::new() } else { format!("jitter = {{ law = 'normal', sd = '{jitter}ms' }}\n") };
        text += &format!("[[link]]\nbetween = ['r', 'q']\nrate = '{rate_mbit}Mbit'\nqueue = '{queue}p'\ndelay = '10ms'\nduplicate = '3%'\n{jitter}");
        for (kind, ends, size) in kinds {
            let (from, to) = (hosts[ends], hosts[3 - ends]);
            let more = ["rate = '5Mbit'", "kind = 'poisson'\nrate = '5Mbit'", "kind = 'voice'",
                "kind = 'on-off'\nrate = '20Mbit'\non = '5ms'\noff = { law = 'pareto', mean = '10ms' }"][kind];
            let size = if kind == 2 { String::new() } else { format!("size = {size}\n") };
            text += &format!("[[traffic]]\nfrom = '{from}'\nto = '{to}'\n{more}\n{size}");
        }
        let replay = || Replay::through(topology(&text)).seed(seed).until(Duration::from_ms(100));
        let (fast, (slow, _)) = (run(replay()), columns(replay()));
        prop_assert_eq!(&fast.traffic, &slow.traffic);
        prop_assert_eq!(&fast.accounting, &slow.accounting);
        for flow in &fast.traffic {
            prop_assert_eq!(flow.sent, flow.received + flow.lost);
            prop_assert!(flow.delay.is_none_or(|delay| delay.min_ms >= delay_min_ms), "{}", flow);
        }
        let until = Time::ZERO + Duration::from_ms(100);
        prop_assert!(columns(replay()).1.in_ps.iter().all(|at| *at < until.as_ps()));
    }
}
