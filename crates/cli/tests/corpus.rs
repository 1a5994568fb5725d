//! A corpus of runs in virtual time whose results stay the same to the byte: captures and times of
//! replays, captures of switches, trace hashes of simulations.
//!
//! The expected digests (FNV-1a, 64 bits) were made at commit 30b3611. A change of behaviour that is
//! meant changes a digest here, and says so in the changelog.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

const PROGRAM: &str = "/work/wt/bin/before";
/// Start of the capture, nanoseconds since 1970.
const EPOCH_NS: u64 = 1_700_000_000_000_000_000;
/// Packets of the capture.
const PACKETS: u64 = 3_000;
const FLOWS: u64 = 8;

/// Spec in `examples/`, host where the capture enters, host where frames leave, and the digests of
/// the capture that leaves and of the times.
const REPLAYS: &[(&str, &str, &str, u64, u64)] = &[
    ("two-hosts.toml", "a", "b", 0, 0),
    ("asymmetric-dsl.toml", "server", "home", 0, 0),
    ("red-bottleneck.toml", "a", "b", 0, 0),
    ("impaired.toml", "a", "b", 0, 0),
    ("l4s.toml", "server", "laptop", 0, 0),
    ("lan.toml", "alice", "bob", 0, 0),
    ("cellular.toml", "server", "phone", 0, 0),
    ("pantheon-100mbit.toml", "sender", "receiver", 0, 0),
    ("switched-sites.toml", "pc1", "pc2", 0, 0),
    ("lan-events.ns", "n0", "n1", 0, 0),
    ("emulab-fig2-1.ns", "n0", "n3", 0, 0),
];

/// Queue disciplines of a 10 Mbit/s link, and the digest of the times.
const QUEUES: &[(&str, u64)] = &[
    ("\"20p\"", 0),
    ("\"30KiB\"", 0),
    ("\"20ms\"", 0),
    ("{ kind = \"codel\" }", 0),
    ("{ kind = \"fq-codel\" }", 0),
    ("{ kind = \"pie\" }", 0),
    ("{ kind = \"dualpi2\" }", 0),
    ("{ kind = \"red\", limit = \"60p\", min = \"5p\", max = \"15p\" }", 0),
];

/// Machine, program, workload and trace hash.
const SIMULATIONS: &[(&str, &str, &str, &str)] = &[
    ("ixp1200", "linkem", "line-rate,size=64,ports=4,duration=1ms", ""),
    ("ixp1200-egress2", "linkem", "poisson,rate=1Mpps,size=512,duration=2ms", ""),
    ("ixp1200", "ixp-bridge", "constant,rate=100kpps,size=imix,duration=5ms", ""),
    ("pc-850mhz-dummynet", "dummynet", "constant,rate=100kpps,size=64,duration=5ms", ""),
    ("xeon-e5-2687wv4", "netcope", "line-rate,size=512,duration=1ms", ""),
    ("xeon-e5-2699v3", "l2-forward", "on-off,rate=10Mpps,on=100us,off=100us,size=64,duration=2ms", ""),
    ("cn6880", "cn-forward", "poisson,rate=10Mpps,duration=1ms", ""),
];

/// The digest of what leaves by port p2 of [`RULES`].
const SWITCHED: u64 = 0;
const RULES: &str = "\
table=0,priority=10,ip,nw_dst=10.0.0.3,actions=drop
table=0,priority=5,udp,tp_dst=5001,actions=mod_nw_tos:184,output:2
table=0,priority=4,ip,nw_src=10.0.0.1,actions=push_vlan:0x8100,set_field:7->vlan_vid,goto_table:1
table=0,priority=0,actions=output:2
table=1,actions=dec_ttl,output:2
";

#[test]
fn replays_switches_and_simulations_of_the_corpus_give_the_same_bytes() {
    let bench = Path::new(env!("CARGO_TARGET_TMPDIR")).join("corpus");
    let _ = fs::remove_dir_all(&bench);
    fs::create_dir_all(&bench).unwrap();
    fs::write(bench.join("in.pcap"), capture()).unwrap();
    let mut wrong = Vec::new();
    for &(spec, from, to, frames, times) in REPLAYS {
        let spec = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples").join(spec);
        let found = replay(&bench, &spec, from, to);
        if found != (frames, times) {
            wrong.push(format!("{}: {:#018x}, {:#018x}", spec.display(), found.0, found.1));
        }
    }
    for &(queue, times) in QUEUES {
        let spec = bench.join("queue.toml");
        let text = format!(
            "[host.a]\n[host.b]\n[[link]]\nbetween = [\"a\", \"b\"]\nrate = \"10Mbit\"\ndelay = \"5ms\"\nqueue = {queue}\n"
        );
        fs::write(&spec, text).unwrap();
        let found = replay(&bench, &spec, "a", "b").1;
        if found != times {
            wrong.push(format!("{queue}: {found:#018x}"));
        }
    }
    for &(machine, program, workload, hash) in SIMULATIONS {
        let output = run(&bench, &["sim", machine, "--program", program, "--workload", workload, "--json"]);
        let outcome: serde_json::Value = serde_json::from_str(&output).unwrap();
        if outcome["trace_hash"] != hash {
            wrong.push(format!("{machine} {program} {workload}: {}", outcome["trace_hash"]));
        }
    }
    fs::write(bench.join("rules.txt"), RULES).unwrap();
    run(&bench, &["switch", "--rules", "rules.txt", "--in", "p1=in.pcap", "--out", "p2=switched.pcap"]);
    let switched = digest(&fs::read(bench.join("switched.pcap")).unwrap());
    if switched != SWITCHED {
        wrong.push(format!("switched.pcap: {switched:#018x}"));
    }
    assert!(wrong.is_empty(), "other results than at commit 30b3611:\n{}", wrong.join("\n"));
}

/// The digests of what leaves and of the times.
fn replay(bench: &Path, spec: &Path, from: &str, to: &str) -> (u64, u64) {
    let (input, output) = (format!("{from}=in.pcap"), format!("{to}=out.pcap"));
    let spec: PathBuf = spec.into();
    let spec = spec.to_str().unwrap();
    run(bench, &["replay", spec, "--in", &input, "--out", &output, "--times", "times.csv", "--seed", "7"]);
    let read = |name: &str| digest(&fs::read(bench.join(name)).unwrap());
    (read("out.pcap"), read("times.csv"))
}

fn run(bench: &Path, arguments: &[&str]) -> String {
    let output = Command::new(PROGRAM).args(arguments).current_dir(bench).output().unwrap();
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// FNV-1a.
fn digest(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}

/// A capture (pcap, nanoseconds) of UDP packets of [`FLOWS`] flows. Sizes and gaps are those of a
/// linear congruential generator; the mean rate is about 12 Mbit/s.
fn capture() -> Vec<u8> {
    let mut file = Vec::new();
    for word in [0xa1b2_3c4d_u32, 0x0004_0002, 0, 0, 65_535, 1] {
        file.extend(word.to_le_bytes());
    }
    let mut state = 1_u64;
    let mut draw = |below: u64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % below
    };
    let mut ns = EPOCH_NS;
    for _ in 0..PACKETS {
        ns += draw(1_000_000);
        let (len, flow) = (60 + draw(1455) as usize, draw(FLOWS));
        let frame = packet(len, flow as u8);
        let words = [(ns / 1_000_000_000) as u32, (ns % 1_000_000_000) as u32, len as u32, len as u32];
        words.iter().for_each(|word| file.extend(word.to_le_bytes()));
        file.extend(frame);
    }
    file
}

/// An Ethernet frame with an IPv4 and a UDP header (no UDP checksum).
fn packet(len: usize, flow: u8) -> Vec<u8> {
    let mut frame = vec![2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 8, 0];
    let total = (len - 14) as u16;
    // Every other flow is ECN-capable (ECT(0)).
    let mut ip = vec![0x45, 2 * (flow % 2), 0, 0, 0, 0, 0, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2 + flow / 4];
    ip[2..4].copy_from_slice(&total.to_be_bytes());
    let sum: u32 = ip.chunks(2).map(|pair| u32::from(u16::from_be_bytes([pair[0], pair[1]]))).sum();
    let folded = (sum & 0xffff) + (sum >> 16);
    ip[10..12].copy_from_slice(&(!(folded as u16)).to_be_bytes());
    frame.extend(ip);
    frame.extend((4000 + u16::from(flow)).to_be_bytes());
    frame.extend((5000 + u16::from(flow % 4)).to_be_bytes());
    frame.extend((total - 20).to_be_bytes());
    frame.extend([0, 0]);
    frame.resize(len, flow);
    frame
}
