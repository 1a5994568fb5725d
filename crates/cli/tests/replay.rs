//! Tests `fastpath replay` as a user runs it: captures and specs in; captures, times and frame
//! accounting out.
//!
//! Captures are written and read here byte by byte, independently of the program's own code.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// 2023-11-14 22:13:20 UTC, so that absolute times do not fit 64 bits of picoseconds.
const EPOCH_NS: u64 = 1_700_000_000_000_000_000;

/// An empty directory for one test.
struct Bench(PathBuf);

impl Bench {
    fn new(test: &str) -> Bench {
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join("replay").join(test);
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(&path).unwrap();
        Bench(path)
    }

    fn write(&self, name: &str, content: impl AsRef<[u8]>) {
        fs::write(self.0.join(name), content).unwrap();
    }

    fn read(&self, name: &str) -> Vec<u8> {
        fs::read(self.0.join(name)).unwrap()
    }

    fn text(&self, name: &str) -> String {
        String::from_utf8(self.read(name)).unwrap()
    }

    fn replay(&self, arguments: &str) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_fastpath"));
        command.arg("replay").args(arguments.split_whitespace()).current_dir(&self.0).output().unwrap()
    }

    /// Runs a replay that must succeed; returns its standard output.
    fn replay_ok(&self, arguments: &str) -> String {
        let output = self.replay(arguments);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    }

    /// Runs a replay that must exit with code 2; returns its error output.
    fn replay_fails(&self, arguments: &str) -> String {
        let output = self.replay(arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments}");
        String::from_utf8(output.stderr).unwrap()
    }
}

/// Returns a nanosecond pcap of frames of `len` bytes at `ns` after the epoch. The first bytes of
/// each frame hold its number.
fn capture(packets: &[(u64, usize)]) -> Vec<u8> {
    let mut file = header();
    for (index, &(ns, len)) in packets.iter().enumerate() {
        let mut data = vec![0xee; len];
        let number = (index as u32).to_be_bytes();
        let n = len.min(4);
        data[..n].copy_from_slice(&number[..n]);
        file.extend(record(EPOCH_NS + ns, len as u32, &data));
    }
    file
}

fn header() -> Vec<u8> {
    let mut file = Vec::new();
    for word in [0xa1b2_3c4d_u32, 4 << 16 | 2, 0, 0, 1 << 18, 1] {
        file.extend(word.to_le_bytes());
    }
    file
}

fn record(ns: u64, wire_len: u32, data: &[u8]) -> Vec<u8> {
    let words = [(ns / 1_000_000_000) as u32, (ns % 1_000_000_000) as u32, data.len() as u32, wire_len];
    [&words.map(u32::to_le_bytes).concat(), data].concat()
}

/// Returns the packets of a nanosecond pcap: time after the epoch, bytes on the wire, data.
fn packets(file: &[u8]) -> Vec<(u64, u32, Vec<u8>)> {
    let word = |at: usize| u32::from_le_bytes(file[at..at + 4].try_into().unwrap());
    assert_eq!((word(0), word(20)), (0xa1b2_3c4d, 1), "a nanosecond capture of Ethernet");
    let (mut at, mut list) = (24, Vec::new());
    while at < file.len() {
        let ns = u64::from(word(at)) * 1_000_000_000 + u64::from(word(at + 4));
        let end = at + 16 + word(at + 8) as usize;
        list.push((ns - EPOCH_NS, word(at + 12), file[at + 16..end].to_vec()));
        at = end;
    }
    list
}

fn spec(link: &str) -> String {
    format!("[host.a]\n[host.b]\n[[link]]\nbetween = [\"a\", \"b\"]\n{link}\n")
}

#[test]
fn six_packets_leave_at_the_times_of_the_click_manual() {
    // The example of Click's LinkUnqueue(5ms, 100kbps): times of its manual page, shifted by the
    // delay.
    let bench = Bench::new("click");
    bench.write("link.toml", spec("rate = \"100kbit\"\ndelay = \"5ms\""));
    bench.write("in.pcap", capture(&[20, 20, 1600, 20, 1600, 20].map(|len| (0, len))));
    bench.replay_ok("link.toml in.pcap out.pcap --times times.csv");

    let ms = [1.6, 3.2, 131.2, 132.8, 260.8, 262.4].map(|ms| ms + 5.0);
    let ns: Vec<u64> = packets(&bench.read("out.pcap")).into_iter().map(|(ns, ..)| ns).collect();
    assert_eq!(ns, ms.map(|ms| (ms * 1e6_f64).round() as u64));
    assert_eq!(
        bench.text("times.csv"),
        "index,host,capture_frame,in_ps,out_ps\n\
         1,a,1,1700000000000000000000,1700000000006600000000\n\
         2,a,2,1700000000000000000000,1700000000008200000000\n\
         3,a,3,1700000000000000000000,1700000000136200000000\n\
         4,a,4,1700000000000000000000,1700000000137800000000\n\
         5,a,5,1700000000000000000000,1700000000265800000000\n\
         6,a,6,1700000000000000000000,1700000000267400000000\n"
    );
}

#[test]
fn departures_are_exact_times_rounded_down_to_the_picosecond() {
    // Rates without integral bit times; arrivals sometimes on an idle link, sometimes in a burst.
    let rates: [u128; 4] = [999_999_937, 7, 799_999_999_993, 1_234_567];
    for (case, rate) in rates.into_iter().enumerate() {
        let bench = Bench::new(&format!("exact-{case}"));
        bench.write("link.toml", spec(&format!("rate = \"{rate}bit\"\ndelay = \"1ns\"\nqueue = \"1000p\"")));
        let gap = 64 * 8 * 1_000_000_000 / rate as u64;
        let mut arrivals: Vec<(u64, usize)> =
            (0..200).map(|i| (i * i % 37 * gap / 9 + i * gap, 60 + (i * 7919 % 900) as usize)).collect();
        arrivals.sort_by_key(|&(ns, _)| ns);
        bench.write("in.pcap", capture(&arrivals));
        bench.replay_ok("link.toml in.pcap out.pcap --times times.csv");

        let times = bench.text("times.csv");
        let mut free_at = 0; // in picoseconds × rate
        for (row, &(ns, len)) in times.lines().skip(1).zip(&arrivals) {
            let arrived = u128::from(ns) * 1000;
            free_at = free_at.max(arrived * rate) + len as u128 * 8 * 1_000_000_000_000;
            let epoch = u128::from(EPOCH_NS) * 1000;
            let expected = format!("{},{}", epoch + arrived, epoch + free_at / rate + 1000);
            assert!(row.ends_with(&expected), "{rate} bit/s: {row} is not {expected}");
        }
        assert_eq!(times.lines().count(), arrivals.len() + 1);
    }
}

#[test]
fn equal_seeds_give_equal_bytes_and_another_seed_gives_others() {
    let bench = Bench::new("seed");
    bench.write("link.toml", spec("rate = \"10Mbit\"\nloss = \"30%\""));
    bench.write("in.pcap", capture(&(0..200).map(|i| (i * 1_000_000, 100)).collect::<Vec<_>>()));
    for (seed, name) in [(7, "one"), (7, "two"), (8, "other")] {
        bench.replay_ok(&format!("link.toml in.pcap {name}.pcap --times {name}.csv --seed {seed}"));
    }
    assert_eq!(bench.read("one.pcap"), bench.read("two.pcap"));
    assert_eq!(bench.read("one.csv"), bench.read("two.csv"));
    assert_ne!(bench.read("one.csv"), bench.read("other.csv"));
    assert!(bench.text("one.csv").contains(",loss\n"));
}

#[test]
fn frame_accounting_balances_and_drops_have_a_reason() {
    let bench = Bench::new("books");
    bench.write("link.toml", spec("rate = \"8kbit\"\nqueue = \"2p\""));
    bench.write("in.pcap", capture(&[(0, 100); 5]));
    let printed = bench.replay_ok("link.toml in.pcap out.pcap --times times.csv --seed 3 --json");
    let mut report: serde_json::Value = serde_json::from_str(&printed).unwrap();
    let pairs = report.as_object_mut().unwrap().remove("pairs").unwrap();
    assert_eq!(pairs[0]["frames"], 2);
    let links = report.as_object_mut().unwrap().remove("links").unwrap();
    assert_eq!(links.as_array().unwrap().len(), 2, "both directions");
    let there = &links[0];
    assert_eq!((&there["link"], &there["from"]), (&"a-b".into(), &"a".into()));
    assert_eq!((&there["bytes_in"], &there["frames_out"]), (&500.into(), &2.into()));
    assert_eq!(there["dropped"]["queue-full"], 3);
    assert_eq!(
        report.to_string(),
        "{\"conservation\":{\"delivered\":2,\"dropped\":{\"queue-full\":3},\"held\":0,\"in\":5},\"seed\":3}"
    );
    assert_eq!(bench.text("times.csv").matches(",queue-full\n").count(), 3);
    assert!(bench.replay_ok("link.toml in.pcap out.pcap").contains("queue-full"));
}

#[test]
fn captures_at_several_hosts_share_one_timeline() {
    let bench = Bench::new("several");
    bench.write("link.toml", spec("a_to_b = { delay = \"10us\" }\nb_to_a = { delay = \"20us\" }"));
    bench.write("a.pcap", capture(&[(0, 60), (2000, 61)]));
    bench.write("b.pcap", capture(&[(1000, 70), (2000, 71)]));
    bench
        .replay_ok("link.toml --in a=a.pcap --in b=b.pcap --out a=at-a.pcap --out b=at-b.pcap --times t.csv");
    let seen =
        |name: &str| packets(&bench.read(name)).into_iter().map(|(ns, len, _)| (ns, len)).collect::<Vec<_>>();
    assert_eq!(seen("at-b.pcap"), [(10_000, 60), (12_000, 61)]);
    assert_eq!(seen("at-a.pcap"), [(21_000, 70), (22_000, 71)]);
    // Both packets are at 2 µs: the packet of the capture named first comes first.
    assert_eq!(
        bench.text("t.csv"),
        "index,host,capture_frame,in_ps,out_ps\n\
         1,a,1,1700000000000000000000,1700000000000010000000\n\
         2,b,1,1700000000000001000000,1700000000000021000000\n\
         3,a,2,1700000000000002000000,1700000000000012000000\n\
         4,b,2,1700000000000002000000,1700000000000022000000\n"
    );
}

#[test]
fn the_delays_between_hosts_are_printed_and_exact() {
    let bench = Bench::new("pairs");
    bench.write(
        "link.toml",
        spec("a_to_b = { delay = \"10ms\" }\nb_to_a = { delay = \"20ms\" }\nrate = \"8Mbit\""),
    );
    // 1000 bytes take 1 ms on the wire. The second frame waits for the first.
    bench.write("a.pcap", capture(&[(0, 1000), (500_000, 1000), (9_000_000, 1000)]));
    bench.write("b.pcap", capture(&[(1000, 500)]));
    let inputs = "link.toml --in a=a.pcap --in b=b.pcap";
    let report: serde_json::Value =
        serde_json::from_str(&bench.replay_ok(&format!("{inputs} --json"))).unwrap();
    let pair = |from: &str, to: &str, frames: u64, [min, mean, max]: [f64; 3]| serde_json::json!({ "from": from, "to": to, "frames": frames, "min_ms": min, "mean_ms": mean, "max_ms": max });
    let first = pair("a", "b", 3, [11.0, 11.166_666_666, 11.5]);
    let second = pair("b", "a", 1, [20.5, 20.5, 20.5]);
    assert_eq!(report["pairs"], serde_json::json!([first, second]));
    let text = bench.replay_ok(inputs);
    let rows: Vec<Vec<&str>> = text.lines().map(|line| line.split_whitespace().collect()).collect();
    assert!(rows.contains(&vec!["a", "→", "b", "3", "11.000", "11.167", "11.500"]), "{text}");
    assert!(rows.contains(&vec!["b", "→", "a", "1", "20.500", "20.500", "20.500"]), "{text}");
}

#[test]
fn frame_accounting_includes_copies_made_by_a_switch() {
    let bench = Bench::new("switch");
    let link = |host| format!("[host.{host}]\n[[link]]\nbetween = [\"{host}\", \"s\"]\ndelay = \"1us\"\n");
    bench.write("lan.toml", format!("[switch.s]\n{}{}{}", link("a"), link("b"), link("c")));
    bench.write("in.pcap", capture(&[(0, 60)]));
    let printed =
        bench.replay_ok("lan.toml --in a=in.pcap --out b=b.pcap --out c=c.pcap --times t.csv --json");
    assert!(printed.contains("\"delivered\":2,\"dropped\":{},\"held\":0,\"in\":2"), "{printed}");
    for name in ["b.pcap", "c.pcap"] {
        assert_eq!(
            packets(&bench.read(name)).iter().map(|(ns, ..)| *ns).collect::<Vec<_>>(),
            [2000],
            "{name}"
        );
    }
    assert_eq!(
        bench.text("t.csv").lines().count(),
        2,
        "a row for the frame of the capture, none for its copy"
    );
}

#[test]
fn the_times_and_the_per_packet_log_number_frames_as_the_capture_does() {
    let bench = Bench::new("numbers");
    let link = |host| format!("[host.{host}]\n[[link]]\nbetween = [\"{host}\", \"s\"]\ndelay = \"1us\"\n");
    bench.write("lan.toml", format!("[switch.s]\n{}{}{}", link("a"), link("b"), link("c")));
    // Every frame is flooded, so that copies are made; the second is too long to enter.
    bench.write("in.pcap", capture(&[(0, 60), (1000, 70_000), (2000, 62), (3000, 63)]));
    let text =
        bench.replay_ok("lan.toml --in a=in.pcap --out b=b.pcap --times t.csv --packet-log log.pcapng");
    assert!(text.contains("(4 entered, 3 made inside: copies, fragments, answers of routers)"), "{text}");
    let rows = bench.text("t.csv");
    assert!(rows.lines().nth(2).is_some_and(|row| row.starts_with("2,a,2,")), "{rows}");
    let log = String::from_utf8_lossy(&bench.read("log.pcapng")).into_owned();
    // The last frame enters 3 µs after the first.
    assert!(log.contains("frame=4 queued=0.000003000000"), "{log}");
    assert!(log.contains("made=3 ") && !log.contains("frame=2 ") && !log.contains("frame=5 "), "{log}");
}

#[test]
fn a_truncated_capture_is_replayed_to_its_end_and_then_reported() {
    let bench = Bench::new("cut");
    bench.write("link.toml", spec("delay = \"1ms\""));
    let whole = capture(&[(0, 60), (1000, 60), (2000, 60)]);
    bench.write("in.pcap", &whole[..whole.len() - 10]);
    let said = bench.replay_fails("link.toml in.pcap out.pcap --times t.csv");
    assert!(said.starts_with("fastpath: in.pcap: file is cut in the middle of packet 3"), "{said}");
    assert_eq!(packets(&bench.read("out.pcap")).len(), 2);
    assert_eq!(bench.text("t.csv").lines().count(), 3);
}

#[test]
fn frames_of_any_size_and_content_are_forwarded_or_counted() {
    let bench = Bench::new("sizes");
    bench.write("link.toml", spec(""));
    let sizes = [0, 1, 13, 14, 60, 1514, 9014, 65_536, 70_000, 200_000];
    bench.write("in.pcap", capture(&sizes.map(|size| (0, size))));
    let printed = bench.replay_ok("link.toml in.pcap out.pcap --json");
    assert!(
        printed.contains("\"delivered\":8,\"dropped\":{\"too-big\":2},\"held\":0,\"in\":10"),
        "{printed}"
    );
    let seen = packets(&bench.read("out.pcap"));
    assert_eq!(seen, packets(&bench.read("in.pcap"))[..8]);
}

#[test]
fn a_frame_truncated_by_a_snap_length_takes_its_full_time_and_stays_truncated() {
    let bench = Bench::new("snap");
    bench.write("link.toml", spec("rate = \"8Mbit\""));
    bench.write("in.pcap", [header(), record(EPOCH_NS, 1000, &[7; 96])].concat());
    bench.replay_ok("link.toml in.pcap out.pcap");
    assert_eq!(packets(&bench.read("out.pcap")), [(1_000_000, 1000, vec![7; 96])]);
}

#[test]
fn packets_out_of_order_enter_late_and_are_reported() {
    let bench = Bench::new("disorder");
    bench.write("link.toml", spec("delay = \"1us\""));
    bench.write("in.pcap", capture(&[(5000, 60), (4000, 61), (6000, 62)]));
    let output = bench.replay("link.toml in.pcap out.pcap");
    assert!(String::from_utf8_lossy(&output.stderr).contains("1 packets are older than their predecessor"));
    let ns: Vec<u64> = packets(&bench.read("out.pcap")).into_iter().map(|(ns, ..)| ns).collect();
    assert_eq!(ns, [6000, 6000, 7000]);
}

#[test]
fn frames_above_the_mtu_of_their_link_are_reported() {
    let bench = Bench::new("mtu");
    let said = |mtu: &str| {
        bench.write("link.toml", spec(mtu));
        bench.write("in.pcap", capture(&[(4000, 1514), (5000, 9014), (6000, 62)]));
        String::from_utf8_lossy(&bench.replay("link.toml in.pcap out.pcap").stderr).into_owned()
    };
    assert!(said("mtu = 1500").contains("1 frames are longer than the MTU of their link"), "{}", said(""));
    assert!(!said("mtu = 9000").contains("MTU"));
}

/// A tunnel has no Ethernet headers: its packets get one of ours, and the times are the same.
#[test]
fn captures_without_ethernet_headers_enter_with_one() {
    let bench = Bench::new("raw-ip");
    bench.write("link.toml", spec("rate = \"1Mbit\"\ndelay = \"5ms\"\nqueue = \"9p\""));
    let mut packet = [0; 100];
    packet[0] = 0x45;
    bench.write("raw.pcap", [&header()[..20], &[101, 0, 0, 0], &record(EPOCH_NS, 100, &packet)[..]].concat());
    bench.replay_ok("link.toml raw.pcap out.pcap");
    let out = packets(&bench.read("out.pcap"));
    assert_eq!(out.len(), 1);
    let (_, _, frame) = &out[0];
    assert_eq!((frame.len(), &frame[12..15]), (114, &[8, 0, 0x45][..]));
}

#[test]
fn errors_of_the_command_line_name_the_cause() {
    let bench = Bench::new("mistakes");
    bench.write("link.toml", spec(""));
    bench.write(
        "three.toml",
        "[host.a]\n[host.b]\n[host.c]\n[[link]]\nbetween = [\"a\", \"b\"]\n\
        [[link]]\nbetween = [\"a\", \"c\"]\n",
    );
    bench.write("in.pcap", capture(&[(0, 60)]));
    bench.write("text.pcap", "no capture at all");
    bench.write("raw.pcap", [&header()[..20], &[101, 0, 0, 0], &record(EPOCH_NS, 20, &[0; 20])[..]].concat());
    for (arguments, expected) in [
        ("link.toml", "nothing to replay"),
        ("missing.toml in.pcap out.pcap", "missing.toml: No such file"),
        ("link.toml missing.pcap out.pcap", "missing.pcap"),
        ("link.toml text.pcap out.pcap", "text.pcap: not a pcap or pcapng file"),
        (
            "link.toml raw.pcap out.pcap",
            "raw.pcap: no packet is an Ethernet frame or an IP packet (link type 101)",
        ),
        ("link.toml --in c=in.pcap", "no such host (have: a, b)"),
        ("link.toml --in a:eth9=in.pcap", "no such interface of a (have: eth0)"),
        ("three.toml in.pcap out.pcap", "the network has 3 hosts"),
        ("three.toml --in a=in.pcap", "a has several interfaces"),
        ("link.toml in.pcap in.pcap", "in.pcap: named twice"),
        ("link.toml --in a=in.pcap --out b=x.pcap --out b=y.pcap", "has two outputs"),
        ("link.toml in.pcap nowhere/out.pcap", "nowhere/out.pcap: cannot write"),
    ] {
        let said = bench.replay_fails(arguments);
        assert!(said.starts_with("fastpath: ") && said.contains(expected), "{arguments}: {said}");
    }
    assert_eq!(packets(&bench.read("in.pcap")).len(), 1, "inputs are unchanged");
}

#[test]
fn configured_and_measured_jitter_from_a_file_are_reported_side_by_side() {
    let bench = Bench::new("jitter");
    let link = "rate = \"8Mbit\"\ndelay = \"10ms\"\njitter = { law = \"trace\", file = \"delays.csv\" }";
    bench.write("link.toml", spec(link));
    bench.write("delays.csv", "delay_ms\n4\n0\n2\n");
    // 1000 bytes take 1 ms on the wire; packets 10 ms apart are never reordered.
    bench.write("in.pcap", capture(&[0, 10, 20, 30, 40, 50].map(|ms| (ms * 1_000_000, 1000))));
    let json = bench.replay_ok("link.toml in.pcap out.pcap --json --packet-log log.pcapng");
    let ms: Vec<u64> = packets(&bench.read("out.pcap")).into_iter().map(|(ns, ..)| ns / 1_000_000).collect();
    assert_eq!(ms, [15, 21, 33, 45, 51, 63]);
    let log = String::from_utf8_lossy(&bench.read("log.pcapng")).into_owned();
    assert!(log.contains("frame=2 queued=0.010000000000 dequeued=0.011000000000 delivered=0.021000000000"));

    let report: serde_json::Value = serde_json::from_str(&json).unwrap();
    let jitter = &report["jitter"][0];
    assert_eq!(
        (&jitter["from"], &jitter["to"], &jitter["reorder"]),
        (&"a".into(), &"b".into(), &"never".into())
    );
    assert_eq!(jitter["packets"], 6);
    for (of, mean_ms) in [("asked", 12.0), ("realised", 12.0)] {
        assert!((jitter[of]["mean_ms"].as_f64().unwrap() - mean_ms).abs() < 1e-9, "{jitter}");
    }
    assert!(jitter["bias"]["mean_ms"].as_f64().unwrap().abs() < 1e-9, "{jitter}");
    let text = bench.replay_ok("link.toml in.pcap out.pcap");
    assert!(text.contains("a → b: delay of 6 packets mean 12.000 sd"), "{text}");

    bench.write("delays.csv", "delay_ms\n4\nx\n");
    let error = bench.replay_fails("link.toml in.pcap out.pcap");
    assert!(error.contains("delays.csv:3:1: delay 'x'"), "{error}");
}

#[test]
fn a_kernel_router_is_emulated_and_a_notice_says_so() {
    let bench = Bench::new("kernel-router");
    let spec = "[host.a]\n[host.b]\n[router.k]\nkind = 'kernel'\n\
        [[link]]\nbetween = ['a', 'k']\n[[link]]\nbetween = ['k', 'b']";
    bench.write("net.toml", spec);
    bench.write("in.pcap", capture(&[(EPOCH_NS, 100)]));
    let output = bench.replay("net.toml in.pcap out.pcap");
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success() && said.contains("the engine forwards for k"), "{said}");
    bench.write("net.toml", spec.replace("'kernel'", "'linux'"));
    let said = bench.replay_fails("net.toml in.pcap out.pcap");
    assert!(said.contains("'linux' is not a kind of router; write one of kernel, engine"), "{said}");
}

/// Two routers with a host each, jitter and loss between them, and a capture beside traffic.
const PARALLEL: &str = "[host.a]\n[router.r]\n[router.q]\n[host.b]\n\
    [[link]]\nbetween = ['a', 'r']\ndelay = '1ms'\nrate = '20Mbit'\nqueue = '9p'\n\
    [[link]]\nbetween = ['r', 'q']\ndelay = '3ms'\nloss = '5%'\njitter = { law = 'uniform', half_width = '1ms' }\n\
    [[link]]\nbetween = ['q', 'b']\ndelay = '1ms'\n[[event]]\nat = '100ms'\nlink = 'r-q'\ndelay = '2ms'\n\
    [[traffic]]\nfrom = 'a'\nto = 'b'\nkind = 'poisson'\nsize = 900\nrate = '20Mbit'\nstop = '300ms'\n";

#[test]
fn results_are_the_same_for_every_number_of_workers_and_every_cut() {
    let bench = Bench::new("workers");
    bench.write("net.toml", PARALLEL);
    let packets: Vec<(u64, usize)> = (0..400).map(|i| (i * 500_000, 60 + (i as usize * 37) % 1200)).collect();
    bench.write("in.pcap", capture(&packets));
    let mut first = None;
    for (workers, seed) in [("1", None), ("2", None), ("3", Some("4")), ("8", Some("9")), ("auto", None)] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_fastpath"));
        command.args("replay net.toml --in a=in.pcap --out b=out.pcap --times times.csv --json".split(' '));
        command.args(["--packet-log", "log.pcapng", "--workers", workers]).current_dir(&bench.0);
        seed.iter().for_each(|seed| _ = command.env("FASTPATH_PARTITION_SEED", seed));
        let output = command.output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let profile = String::from_utf8(output.stderr).unwrap();
        assert!(workers != "2" || profile.contains("fastpath: worker 1: "), "{profile}");
        let files = ["out.pcap", "times.csv", "log.pcapng"].map(|name| bench.read(name));
        assert!(files.iter().all(|file| file.len() > 10_000), "there are results");
        let results = (output.stdout, files);
        assert!(*first.get_or_insert(results.clone()) == results, "{workers} workers, seed {seed:?}");
    }
    // What cannot be cut runs on one worker, and the program says so.
    bench.write("joined.toml", PARALLEL.replace("delay = '1ms'", "").replace("delay = '3ms'", ""));
    let output = bench.replay("joined.toml --workers 2");
    let notice = String::from_utf8(output.stderr).unwrap();
    assert!(notice.contains("one worker runs the whole network"), "{notice}");
    let refused = bench.replay_fails("net.toml --workers none");
    assert!(refused.contains("write a number from 1 on, or auto"), "{refused}");
}
