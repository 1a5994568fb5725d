//! Rates, counts and intervals of labs against an independent count, the counters of the kernel,
//! while the sampler is stalled on purpose.
#![cfg(target_os = "linux")]

use fastpath::record::{Origin, Run, RunWriter};
use fastpath_engine::{CaptureFilter, Options};
use fastpath_lab::{Lab, UpError};
use fastpath_units::Duration;
use fastpath_wire::pcap::CaptureReader;
use serde_json::{Map, Value};
use std::fs;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, TryRecvError, channel};

/// Bytes of headers of a datagram over IPv4: 14 of Ethernet, 20, and 8 of UDP.
const HEADERS: f64 = 42.0;

/// Brings a network up, with flows. `None`, and a skip, where labs are not permitted.
fn up(test: &str, text: &str) -> Option<Lab> {
    let (topology, _) = fastpath_spec::parse(text).unwrap_or_else(|mistakes| panic!("{}", mistakes[0]));
    let mut options = Options::new(fastpath_net::Options::default());
    options.records_flows = true;
    static LABS: AtomicUsize = AtomicUsize::new(0);
    let number = LABS.fetch_add(1, Ordering::Relaxed);
    match Lab::up(topology, &format!("rates-{}-{number}", std::process::id()), options) {
        Ok(lab) => Some(lab),
        Err(UpError::NotPermitted(why)) => {
            eprintln!("SKIPPED: {test}: {why}");
            None
        }
        Err(other) => panic!("{test}: {other}"),
    }
}

/// What a program prints in a host.
fn printed(lab: &Lab, host: &str, argv: [&str; 2]) -> String {
    let mut command = Command::new(argv[0]);
    command.arg(argv[1]).stdout(std::process::Stdio::piped());
    let child = lab.spawn(lab.host(host).unwrap(), &mut command).unwrap();
    String::from_utf8(child.wait_with_output().unwrap().stdout).unwrap()
}

/// The bytes that the interface of a host has received and sent, by its kernel.
fn interface(lab: &Lab, host: &str) -> [f64; 2] {
    let text = printed(lab, host, ["cat", "/proc/net/dev"]);
    let line = text.lines().filter_map(|line| line.split_once(':')).find(|(name, _)| name.trim() != "lo");
    let numbers: Vec<f64> = line.unwrap().1.split_whitespace().map(|word| word.parse().unwrap()).collect();
    [numbers[0], numbers[8]]
}

/// The datagrams that a host has received and sent, by its kernel.
fn datagrams(lab: &Lab, host: &str) -> [u64; 2] {
    let text = printed(lab, host, ["cat", "/proc/net/snmp"]);
    let mut rows = text.lines().filter(|line| line.starts_with("Udp:")).map(|line| line.split_whitespace());
    let (titles, values) = (rows.next().unwrap(), rows.next().unwrap());
    let counts: Vec<(&str, &str)> = titles.zip(values).collect();
    let count = |name: &str| counts.iter().find(|(title, _)| *title == name).unwrap().1.parse().unwrap();
    [count("InDatagrams"), count("OutDatagrams")]
}

/// Waits for an interval; nothing is ever sent.
fn pause(never: &Receiver<()>, interval: Duration) {
    let _ = never.recv_timeout(interval.to_std());
}

#[test]
fn rates_of_a_record_and_of_traffic_are_those_of_the_kernel_though_the_sampler_stalls() {
    let spec = "family = 'v4'\n[host.a]\n[host.b]\n\
        [[link]]\nbetween = ['a', 'b']\nrate = '10Mbit'\ndelay = '2ms'\nqueue = '10p'\n\
        [[traffic]]\nfrom = 'a'\nto = 'b'\nname = 'f'\nrate = '5Mbit'\nsize = 1000\nstop = '3s'\n";
    let Some(lab) = up("rates of a stalled sampler", spec) else { return };
    let directory = std::env::temp_dir().join(format!("fastpath-rates-{}", std::process::id()));
    let (interval, (_never, paused)) = (Duration::from_ms(10), channel());
    let origin = Origin::default();
    let mut writer = RunWriter::create(&directory, lab.topology(), &origin, interval).unwrap();
    let sampler = lab.sampler().unwrap();
    for _ in 0..30 {
        pause(&paused, interval);
        writer.write(&sampler.sample().unwrap()).unwrap();
    }
    // The stall: the rest of the traffic, most of 3 s, lies in one interval.
    lab.wait_for_traffic(&AtomicBool::new(false));
    writer.write(&sampler.sample().unwrap()).unwrap();
    // A sampler that makes up for the ticks that it missed.
    for _ in 0..5 {
        writer.write(&sampler.sample().unwrap()).unwrap();
    }
    let before = ["a", "b"].map(|host| interface(&lab, host));
    let last = sampler.sample().unwrap();
    writer.write(&last).unwrap();
    writer.finish(&Value::Null, Map::new()).unwrap();
    let after = ["a", "b"].map(|host| interface(&lab, host));
    let (sent, received) = (datagrams(&lab, "a")[1], datagrams(&lab, "b")[0]);
    let report = lab.down().unwrap();

    let flow = &report.traffic[0];
    assert_eq!((flow.sent, flow.received), (sent, received), "{flow}");
    // A packet each 1.6 ms from when the lab was up.
    let due = flow.sent_s * 5e6 / 8000.0;
    assert!((flow.asked as f64 - due).abs() <= 1.0 && flow.sent <= flow.asked, "{flow} {due}");
    for (bps, packets, seconds) in
        [(flow.sent_bps, sent, flow.sent_s), (flow.received_bps, received, flow.received_s)]
    {
        assert!((bps / (packets as f64 * 8000.0 / seconds) - 1.0).abs() < 1e-9, "{flow}");
    }

    let run = Run::read(&directory).unwrap();
    fs::remove_dir_all(&directory).unwrap();
    let series = run.series.unwrap();
    let there = series.links.iter().find(|link| link.from == "a").unwrap();
    let total = there.total("bytes_out");
    let counted = before[1][0]..=after[1][0];
    assert!(counted.contains(&total), "{total} bytes, and {counted:?} by the kernel");
    // The kernel of the sender may have sent frames of its own before the link was there.
    let (least, most) = (sent as f64 * (1000.0 + HEADERS), after[0][1]);
    assert!((least..=most).contains(&there.total("bytes_in")), "{least} to {most}");
    // The link passes no more than its rate in any row: and a frame that was on the wire before.
    let bytes = &there.columns["bytes_out"];
    for ((at, interval), bytes) in there.times.iter().zip(&there.intervals).zip(bytes) {
        let most = 10e6 / 8.0 * interval + 1000.0 + HEADERS;
        assert!(*bytes <= most, "{bytes} bytes in {interval} s before {at} s");
    }
    let stall = there.intervals.iter().copied().fold(0.0, f64::max);
    assert!(stall > 1.0, "the sampler did not stall: {:?}", there.intervals);
    let gaps = series.gaps();
    assert!(gaps.iter().any(|(from, to)| (to - from - stall).abs() < 1e-3), "{gaps:?}");
    let bins = series.bins(350);
    let rates = bins.rates(there.rows(), bytes);
    let sum: f64 = rates.iter().map(|rate| rate * bins.width_s).sum();
    assert!((sum / there.total("bytes_out") - 1.0).abs() < 1e-3, "{sum}");
    let most = 10e6 + 8.0 * 2.0 * (1000.0 + HEADERS) / bins.width_s;
    assert!(rates.iter().all(|rate| rate * 8.0 <= most), "{rates:?}");
    let queue = bins.largest(there.rows(), &there.columns["queue_delay_s"]);
    assert!(queue.iter().filter(|delay| delay.is_nan()).count() as f64 > 0.8 / bins.width_s, "{queue:?}");
}

/// A frame of a capture: when the engine took it out of the link or dropped it, in seconds since
/// the start of the run, and its bytes.
struct CapturedFrame {
    at_s: f64,
    bytes: f64,
    is_dropped: bool,
}

/// Captures what leaves `from` until `stop` closes. It closes `start` when it has begun.
fn capture_of(lab: &Lab, from: &str, start: Sender<()>, stop: &Receiver<()>) -> Vec<CapturedFrame> {
    let filter = CaptureFilter { from: Some(from.to_owned()), drops: true, ..CaptureFilter::default() };
    let mut capture = lab.capture(&filter).unwrap();
    drop(start);
    let mut file = Vec::new();
    while let Err(TryRecvError::Empty) = stop.try_recv() {
        file.extend(capture.read(Duration::from_ms(50).to_std()).expect("the network runs"));
    }
    assert_eq!(capture.missed(), 0);
    file.extend(capture.end());
    let mut reader = CaptureReader::new(&file[..]).unwrap();
    let mut lengths = Vec::new();
    while let Some(packet) = reader.read_packet().unwrap() {
        lengths.push(f64::from(packet.orig_len));
    }
    // The comment of each packet: delivered=… actual=SECONDS, or dropped=WHY at=SECONDS.
    let text = String::from_utf8_lossy(&file);
    let marks = [("delivered=", " actual=", false), ("dropped=", " at=", true)];
    let mut frames: Vec<(usize, f64, bool)> = Vec::new();
    for (mark, key, is_dropped) in marks {
        for (place, _) in text.match_indices(mark) {
            let (_, rest) = text[place..].split_once(key).expect("a time");
            let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
            frames.push((place, rest[..end].parse().expect("seconds"), is_dropped));
        }
    }
    frames.sort_by_key(|(place, ..)| *place);
    assert_eq!(frames.len(), lengths.len(), "a comment for each frame");
    let frame = |((_, at_s, is_dropped), bytes)| CapturedFrame { at_s, bytes, is_dropped };
    frames.into_iter().zip(lengths).map(frame).collect()
}

/// Records until the traffic is over, with samples 10 ms apart and then a stall of the sampler.
fn record_with_a_stall(lab: &Lab, directory: &Path) {
    let (interval, (_never, paused)) = (Duration::from_ms(10), channel());
    let mut writer = RunWriter::create(directory, lab.topology(), &Origin::default(), interval).unwrap();
    let sampler = lab.sampler().unwrap();
    for _ in 0..40 {
        pause(&paused, interval);
        writer.write(&sampler.sample().unwrap()).unwrap();
    }
    lab.wait_for_traffic(&AtomicBool::new(false));
    // What is on the link arrives.
    pause(&paused, Duration::from_ms(100));
    writer.write(&sampler.sample().unwrap()).unwrap();
    writer.finish(&Value::Null, Map::new()).unwrap();
}

#[test]
fn rows_of_a_record_are_those_of_a_capture_though_the_sampler_stalls() {
    let spec = "family = 'v4'\n[host.a]\n[host.b]\n\
        [[link]]\nbetween = ['a', 'b']\nrate = '10Mbit'\ndelay = '2ms'\nqueue = '10p'\n\
        [[traffic]]\nfrom = 'a'\nto = 'b'\nname = 'f'\nkind = 'poisson'\nrate = '12Mbit'\nsize = 1000\n\
        stop = '4s'\n";
    let Some(lab) = up("rows of a record", spec) else { return };
    let directory = std::env::temp_dir().join(format!("fastpath-rows-{}", std::process::id()));
    let ((start, started), (stop, stopped)) = (channel(), channel());
    let frames = std::thread::scope(|scope| {
        let captured = &lab;
        let capture = scope.spawn(move || capture_of(captured, "a", start, &stopped));
        let _ = started.recv();
        record_with_a_stall(&lab, &directory);
        drop(stop);
        capture.join().unwrap()
    });
    lab.down().unwrap();
    let run = Run::read(&directory).unwrap();
    fs::remove_dir_all(&directory).unwrap();
    let series = run.series.unwrap();
    let there = series.links.iter().find(|link| link.from == "a").unwrap();
    // The column of the drops, whatever their reason, has the name that all of them begin with.
    let recorded = |name: &str, row: usize| -> f64 {
        let columns = there.columns.iter().filter(|(column, _)| column.starts_with(name));
        columns.map(|(_, values)| values[row]).sum()
    };
    assert!(frames.iter().any(|frame| frame.is_dropped));
    // The engine stamps the frames and the sample one after another.
    const BETWEEN_S: f64 = 1e-3;
    let mut compared = (0, 0.0);
    for (row, (&end, &interval)) in there.times.iter().zip(&there.intervals).enumerate() {
        let start = end - interval;
        // What the first row counts began before the capture.
        if row == 0 {
            continue;
        }
        let within =
            |more: f64| frames.iter().filter(move |it| it.at_s > start - more && it.at_s <= end + more);
        for (column, is_dropped, is_bytes) in
            [("frames_out", false, false), ("bytes_out", false, true), ("dropped.", true, false)]
        {
            let of = |more: f64| -> f64 {
                let chosen = within(more).filter(|frame| frame.is_dropped == is_dropped);
                chosen.map(|frame| if is_bytes { frame.bytes } else { 1.0 }).sum()
            };
            let (least, found, most) = (of(-BETWEEN_S), recorded(column, row), of(BETWEEN_S));
            assert!(
                (least..=most).contains(&found),
                "{column} to {end} s: {found}, captured {least} to {most}"
            );
        }
        compared.0 += 1;
        compared.1 += there.columns["frames_out"][row];
    }
    // Most rows, and the one of the stall.
    assert!(compared.0 > 10 && compared.1 > 500.0, "{compared:?}");
    assert!(there.intervals.iter().any(|interval| *interval > 0.5), "the sampler did not stall");
}

#[test]
fn a_flow_that_the_machine_does_not_carry_says_so_and_marks_the_run() {
    let spec = "family = 'v4'\n[host.a]\n[host.b]\n[[link]]\nbetween = ['a', 'b']\n\
        [[traffic]]\nfrom = 'a'\nto = 'b'\nname = 'f'\nrate = '4Gbit'\nsize = 64\nstop = '1s'\n";
    let Some(lab) = up("a flow that is not carried", spec) else { return };
    lab.wait_for_traffic(&AtomicBool::new(false));
    let (sent, received) = (datagrams(&lab, "a")[1], datagrams(&lab, "b")[0]);
    let report = lab.down().unwrap();
    let flow = &report.traffic[0];
    assert_eq!((flow.sent, flow.received), (sent, received), "{flow}");
    // 7.8 million packets a second are due, and the time is that until the stop.
    assert!((flow.asked as f64 / (flow.sent_s * 4e9 / 512.0) - 1.0).abs() < 1e-3, "{flow}");
    assert!(flow.sent_s <= 1.0 && flow.asked > 4 * flow.sent, "{flow}");
    assert!((flow.sent_bps - sent as f64 * 512.0 / flow.sent_s).abs() < 1.0, "{flow}");
    assert!(!report.is_good() && report.shortfalls().len() == 1, "{:?}", report.shortfalls());
    assert!(flow.to_string().contains(" (asked "), "{flow}");
}
