//! Tests a corpus of runs in virtual time whose results are byte-identical across versions:
//! captures and times of replays, captures of switches, and trace hashes of simulations.
//!
//! The expected digests (FNV-1a, 64 bits) were made at commit 30b3611. An intended change of
//! behaviour updates a digest here and is listed in the changelog.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

const PROGRAM: &str = env!("CARGO_BIN_EXE_fastpath");
/// Start of the capture, nanoseconds since 1970.
const EPOCH_NS: u64 = 1_700_000_000_000_000_000;
/// Number of packets in the capture.
const PACKETS: u64 = 3_000;
const FLOWS: u64 = 8;

/// Spec, entrance, exit, destination, and digests of the capture and of the times.
type ReplayCase = (&'static str, &'static str, &'static str, [u8; 4], u64, u64);

/// Spec in `examples/`, host where the capture enters, host where frames leave, destination of half
/// of the flows, and the digests of the output capture and of the times.
const REPLAYS: &[ReplayCase] = &[
    ("two-hosts.toml", "a", "b", [10, 0, 0, 2], 0xbab4_da2e_71bd_ed90, 0x1e0f_ca28_42fb_cafa),
    ("asymmetric-dsl.toml", "server", "home", [10, 1, 1, 2], 0x4bb7_62be_c788_5ed3, 0xee04_83a5_3e10_3603),
    ("red-bottleneck.toml", "a", "b", [10, 1, 3, 3], 0xdbc7_fe59_b790_1af9, 0xfff5_0ac1_5838_861a),
    ("impaired.toml", "a", "b", [10, 0, 0, 2], 0xab4e_5a35_975d_b0d1, 0x9805_91f0_cac7_d2cb),
    ("l4s.toml", "server", "laptop", [10, 1, 3, 3], 0xd09c_47d2_b6f3_dc39, 0x40d4_e5f5_eca2_d109),
    ("lan.toml", "alice", "bob", [10, 0, 0, 2], 0xca6e_80a7_253f_f453, 0x8b76_d73b_3422_ed1a),
    ("cellular.toml", "server", "phone", [10, 0, 0, 2], 0xa334_46b7_67b2_af3e, 0xbca9_0389_d77e_1385),
    (
        "pantheon-100mbit.toml",
        "sender",
        "receiver",
        [10, 0, 0, 2],
        0xc68e_d829_8d54_8640,
        0xb3bb_5d5a_f893_2a79,
    ),
    ("switched-sites.toml", "pc1", "pc2", [10, 0, 0, 2], 0xe530_2dd7_c89a_50a5, 0x6f11_7d9f_e84c_ae90),
    ("lan-events.ns", "node-1", "far", [10, 1, 2, 3], 0x0883_e6fa_87a0_9f56, 0x6dce_b09e_a084_7c75),
    ("emulab-fig2-1.ns", "n0", "n3", [10, 1, 4, 2], 0x47f8_0b94_084e_bc17, 0x59a4_1c32_b1d0_57ba),
];

/// Queue disciplines of a 10 Mbit/s link, and the digest of the times.
const QUEUES: &[(&str, u64)] = &[
    ("\"20p\"", 0x23a7_78a4_14a9_b7b1),
    ("\"30KiB\"", 0xaf53_7e54_7d71_3612),
    ("\"20ms\"", 0x5c68_db56_ea2c_56dc),
    ("{ kind = \"codel\" }", 0xd7da_d0b9_d7de_a8e3),
    ("{ kind = \"fq-codel\" }", 0x37ed_82f6_4bc3_384a),
    ("{ kind = \"pie\" }", 0xe523_d720_45d0_d981),
    ("{ kind = \"dualpi2\" }", 0x89ef_f606_9fe5_d449),
    ("{ kind = \"red\", limit = \"60p\", min = \"5p\", max = \"15p\" }", 0xf9f5_a450_2c8b_a550),
];

/// Machine, program, workload and trace hash.
const SIMULATIONS: &[(&str, &str, &str, &str)] = &[
    ("ixp1200", "linkem", "line-rate,size=64,ports=4,duration=1ms", "6523029fc63a6d81"),
    ("ixp1200-egress2", "linkem", "poisson,rate=1Mpps,size=512,duration=2ms", "e0b371b8e5cbd993"),
    ("ixp1200", "ixp-bridge", "constant,rate=100kpps,size=imix,duration=5ms", "0952bdd760735520"),
    ("pc-850mhz-dummynet", "dummynet", "constant,rate=100kpps,size=64,duration=5ms", "763c0f46b0c28fce"),
    ("xeon-e5-2687wv4", "netcope", "line-rate,size=512,duration=1ms", "d34a1773853b5493"),
    (
        "xeon-e5-2699v3",
        "l2-forward",
        "on-off,rate=10Mpps,on=100us,off=100us,size=64,duration=2ms",
        "12d007dfd128d961",
    ),
    ("cn6880", "cn-forward", "poisson,rate=10Mpps,duration=1ms", "b430194ff24c0c25"),
];

/// The digest of the capture at output port p2 of [`RULES`].
const SWITCHED: u64 = 0xd9bf_69b1_092e_e122;
const RULES: &str = "\
table=0,priority=10,ip,nw_dst=10.0.0.3,actions=drop
table=0,priority=5,udp,tp_dst=5001,actions=mod_nw_tos:184,output:2
table=0,priority=4,ip,nw_src=10.0.0.1,actions=push_vlan:0x8100,set_field:7->vlan_vid,goto_table:1
table=0,priority=0,actions=output:2
table=1,actions=dec_ttl,output:2
";

#[test]
fn replays_switches_and_simulations_of_the_corpus_are_byte_identical() {
    let bench = Path::new(env!("CARGO_TARGET_TMPDIR")).join("corpus");
    let _ = fs::remove_dir_all(&bench);
    fs::create_dir_all(&bench).unwrap();
    let mut wrong = Vec::new();
    for &(spec, from, to, destination, frames, times) in REPLAYS {
        fs::write(bench.join("in.pcap"), capture(destination)).unwrap();
        let spec = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples").join(spec);
        let found = replay(&bench, &spec, from, to);
        if found != (frames, times) {
            wrong.push(format!("{}: {:#018x}, {:#018x}", spec.display(), found.0, found.1));
        }
    }
    fs::write(bench.join("in.pcap"), capture([10, 0, 0, 2])).unwrap();
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
        let found = output.split("\"trace_hash\":\"").nth(1).and_then(|rest| rest.split('"').next());
        if found != Some(hash) {
            wrong.push(format!("{machine} {program} {workload}: {found:?}"));
        }
    }
    fs::write(bench.join("rules.txt"), RULES).unwrap();
    run(&bench, &["switch", "--rules", "rules.txt", "--in", "p1=in.pcap", "--out", "p2=switched.pcap"]);
    let switched = digest(&fs::read(bench.join("switched.pcap")).unwrap());
    if switched != SWITCHED {
        wrong.push(format!("switched.pcap: {switched:#018x}"));
    }
    assert!(wrong.is_empty(), "results differ from commit 30b3611:\n{}", wrong.join("\n"));
}

/// Runs a replay; returns the digests of the output capture and of the times.
fn replay(bench: &Path, spec: &Path, from: &str, to: &str) -> (u64, u64) {
    let (input, output) = (format!("{from}=in.pcap"), format!("{to}=out.pcap"));
    let spec: PathBuf = spec.into();
    let spec = spec.to_str().unwrap();
    run(bench, &["replay", spec, "--in", &input, "--out", &output, "--times", "times.csv", "--seed", "7"]);
    let read = |name: &str| fs::read(bench.join(name)).unwrap();
    (digest(&read("out.pcap")), digest(&former(&String::from_utf8(read("times.csv")).unwrap())))
}

/// The times as they were at that commit: numbered from 0, without host and number in the capture.
fn former(times: &str) -> Vec<u8> {
    let mut rows = "index,in_ps,out_ps\n".to_owned();
    for line in times.lines().skip(1) {
        let [index, _host, number, entered, end] = line.split(',').collect::<Vec<_>>()[..] else {
            panic!("{line}");
        };
        assert_eq!(index, number, "one capture has one numbering");
        rows += &format!("{},{entered},{end}\n", index.parse::<u64>().unwrap() - 1);
    }
    rows.into_bytes()
}

fn run(bench: &Path, arguments: &[&str]) -> String {
    let output = Command::new(PROGRAM).args(arguments).current_dir(bench).output().unwrap();
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// Returns the FNV-1a digest, 64 bits.
fn digest(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}

/// Returns a capture (pcap, nanoseconds) of UDP packets of [`FLOWS`] flows. A linear congruential
/// generator draws sizes and gaps; the mean rate is about 12 Mbit/s.
fn capture(destination: [u8; 4]) -> Vec<u8> {
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
        let frame = packet(len, flow as u8, destination);
        let words = [(ns / 1_000_000_000) as u32, (ns % 1_000_000_000) as u32, len as u32, len as u32];
        words.iter().for_each(|word| file.extend(word.to_le_bytes()));
        file.extend(frame);
    }
    file
}

/// Returns an Ethernet frame with an IPv4 and a UDP header (no UDP checksum). Flows from the fifth
/// on go to the next address.
fn packet(len: usize, flow: u8, [a, b, c, d]: [u8; 4]) -> Vec<u8> {
    let mut frame = vec![2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 8, 0];
    let total = (len - 14) as u16;
    // Every other flow is ECN-capable (ECT(0)).
    let mut ip =
        vec![0x45, 2 * (flow % 2), 0, 0, 0, 0, 0, 0, 64, 17, 0, 0, 10, 0, 0, 1, a, b, c, d + flow / 4];
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
