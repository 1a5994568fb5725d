//! Labs in virtual time: real programs over exact links, the same every time. They need the kernel
//! of `fastpath guest build`, which `cargo xtask test` builds below `target/`.
#![cfg(target_os = "linux")]

#[path = "../common/mod.rs"]
mod common;
mod place;
mod queues;
mod soak;
mod transfers;

use common::{skip, user_without_rights};
use fastpath_wire::pcap::CaptureReader;
use place::{FASTPATH, Place, TWO_HOSTS, text};
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

#[test]
fn pings_take_what_the_description_implies() {
    let Some(place) = Place::new("pings in virtual time") else { return };
    let output = place
        .run(&["lab", "run", "net.toml", "--time", "virtual", "--on", "a", "--", "ping", "-c", "50", "b"]);
    assert!(output.status.success(), "{}", text(&output));
    let printed = String::from_utf8_lossy(&output.stdout);
    // ICMPv6: 118 bytes at 20 Mbit/s and 10 ms each way.
    let implied = 2.0 * (10.0 + 118.0 * 8.0 / 20_000.0);
    let summary = printed.lines().find_map(|line| line.strip_prefix("rtt min/avg/max/mdev = "));
    let times = summary.unwrap_or_default().split('/').map_while(|time| time.parse().ok());
    let times: Vec<f64> = times.take(3).collect();
    assert_eq!(times.len(), 3, "{printed}");
    for time in times {
        // The engine and the two kernels read the clock, 256 ns each.
        assert!((implied..implied * 1.001).contains(&time), "{time} of {implied} ms");
    }
}

#[test]
fn a_run_is_the_same_again_whatever_the_machine_does() {
    let Some(place) = Place::new("the same again") else { return };
    let script = "head -c 16 /dev/urandom | od -x; cat /proc/sys/kernel/random/uuid; date +%s.%N; echo $$; \
        echo new > made.txt; stat -c '%i %Y' made.txt net.toml >> made.txt; ls -a; \
        $FASTPATH lab exec b -- iperf3 -s -1 -D; sleep 1; $FASTPATH lab exec a -- iperf3 -c b -t 1";
    let script = script.replace("$FASTPATH", FASTPATH);
    let run = [
        "lab",
        "run",
        "net.toml",
        "--time",
        "virtual",
        "--record",
        "r",
        "--packet-log",
        "log.pcapng",
        "--",
        "sh",
        "-c",
        &script,
    ];
    let first = place.run(&run);
    assert!(first.status.success(), "{}", text(&first));
    let [log, made] = ["log.pcapng", "made.txt"].map(|name| place.read(name));
    assert!(String::from_utf8_lossy(&first.stdout).contains("iperf Done"), "{}", text(&first));
    // The files that it left are hidden, and two others keep the processors busy.
    let mut busy: Vec<_> = (0..2)
        .map(|_| Command::new("sh").args(["-c", "timeout 120 sh -c 'while :; do :; done'"]).spawn().unwrap())
        .collect();
    let again = place.run(&["lab", "again", "r"]);
    assert!(again.status.success(), "{}", text(&again));
    // A file that has another content is named, and what it changes is named.
    fs::write(place.path.join("net.toml"), TWO_HOSTS.replace("10ms", "11ms")).unwrap();
    let other = place.run(&["lab", "again", "r", "--keep", "kept"]);
    for child in &mut busy {
        child.kill().unwrap();
        child.wait().unwrap();
    }
    let said = text(&other);
    assert_eq!(other.status.code(), Some(1), "{said}");
    assert!(said.contains("net.toml has another content") && said.contains("not the same: "), "{said}");
    assert_eq!([place.read("log.pcapng"), place.read("made.txt")], [log, made], "results stay");
    assert!(place.path.join("kept").is_dir());
}

#[test]
fn a_run_that_failed_can_be_looked_at() {
    let Some(place) = Place::new("looking back") else { return };
    let words = ["lab", "run", "net.toml", "--time", "virtual", "--on", "a"];
    let command = ["--", "sh", "-c", "ping -q -c 3 -s 1000 b; exit 3"];
    let output = place.run(&[&words[..], &command].concat());
    let said = text(&output);
    assert_eq!(output.status.code(), Some(3), "{said}");
    let at = said
        .lines()
        .find_map(|line| line.strip_prefix("fastpath: packets, log and series of the run are in "));
    let kept = PathBuf::from(at.expect(&said));
    assert!(kept.starts_with(place.path.join("cache")), "{said}");
    let packets = |path: &Path| {
        let file = fs::read(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        let mut reader = CaptureReader::new(&file[..]).unwrap();
        let mut found = Vec::new();
        while let Some(packet) = reader.read_packet().unwrap() {
            found.push((packet.ns, packet.data.to_vec()));
        }
        found
    };
    // Whole frames of six echo messages, and the log of the same frames.
    let seen = packets(&kept.join("packets.pcapng"));
    assert_eq!(seen.iter().filter(|(_, bytes)| bytes.len() > 1000).count(), 6, "{said}");
    let logged = packets(&kept.join("log.pcapng"));
    assert!(logged.len() >= seen.len() && kept.join("links.csv").is_file());
    let again =
        place.run(&["lab", "again", kept.to_str().unwrap(), "--capture", "all.pcapng", "--link", "a-b"]);
    assert!(again.status.success(), "{}", text(&again));
    assert_eq!(packets(&place.path.join("all.pcapng")), seen);
    let none = place.run(&["lab", "again", kept.to_str().unwrap(), "--capture", "x.pcapng", "--link", "c"]);
    assert!(!none.status.success() && text(&none).contains("no link c"), "{}", text(&none));
    assert!(!place.path.join("x.pcapng").exists());
    // A named record has the same packets, and a second one there is refused.
    let record = [&words[..], &["--record", "r", "--packet-log", "log.pcapng"], &command].concat();
    assert_eq!(place.run(&record).status.code(), Some(3));
    assert_eq!(place.read("r/packets.pcapng"), fs::read(kept.join("packets.pcapng")).unwrap());
    assert_eq!(place.read("log.pcapng"), fs::read(kept.join("log.pcapng")).unwrap());
    let second = text(&place.run(&record));
    assert!(second.contains("there is a record already"), "{second}");
}

#[test]
fn another_seed_is_another_run() {
    let Some(place) = Place::new("seeds of guests") else { return };
    let uuid = |seed: &str| {
        let words = [
            "lab",
            "run",
            "net.toml",
            "--time",
            "virtual",
            "--seed",
            seed,
            "--",
            "cat",
            "/proc/sys/kernel/random/uuid",
        ];
        let output = place.run(&words);
        assert!(output.status.success(), "{}", text(&output));
        output.stdout
    };
    assert_eq!(uuid("7"), uuid("7"));
    assert_ne!(uuid("7"), uuid("8"));
}

#[test]
fn a_user_without_rights_has_the_same_lab() {
    let Some(place) = Place::new("virtual time without rights") else { return };
    let prefix = match user_without_rights() {
        Ok(prefix) => prefix,
        Err(why) => return skip("virtual time without rights", &why),
    };
    let words = [
        "lab",
        "run",
        "net.toml",
        "--time",
        "virtual",
        "--on",
        "b",
        "--",
        "sh",
        "-c",
        "id -u; ping -q -c 5 a; exit 7",
    ];
    let output = place.behind(&prefix, &words);
    let said = text(&output);
    assert_eq!(output.status.code(), Some(7), "{said}");
    assert!(said.contains("5 received") && said.contains("/20.09"), "{said}");
}

#[test]
fn an_audit_in_virtual_time_is_exact() {
    let Some(place) = Place::new("audit in virtual time") else { return };
    let output =
        place.run(&["lab", "run", "net.toml", "--time=virtual", "--audit", "--json", "--junit", "audit.xml"]);
    assert!(output.status.success(), "{}", text(&output));
    let audit: Value = serde_json::from_slice(&output.stdout).expect("one JSON object");
    for pair in audit["pairs"].as_array().unwrap() {
        let [median, implied] = ["median", "configured"].map(|key| pair["rtt_ms"][key].as_f64().unwrap());
        assert!((median / implied - 1.0).abs() < 0.001, "{pair}");
        let [observed, expected] =
            ["observed", "expected"].map(|key| pair["udp_mbit"][key].as_f64().unwrap());
        assert!((observed / expected - 1.0).abs() < 0.001, "{pair}");
    }
    assert!(String::from_utf8_lossy(&place.read("audit.xml")).contains("failures=\"0\""));
}

#[test]
fn nothing_stays_of_a_guest_whose_owner_is_killed() {
    let Some(place) = Place::new("a killed guest") else { return };
    let words = ["lab", "run", "net.toml", "--time", "virtual", "--", "sh", "-c", "while :; do :; done"];
    let mut owner = place.command(&[], &words).spawn().unwrap();
    let kernel = || {
        let children = format!("/proc/{0}/task/{0}/children", owner.id());
        fs::read_to_string(children).ok()?.split_whitespace().next().map(str::to_owned)
    };
    let until = |what: &str, is_so: &dyn Fn() -> bool| {
        let start = std::time::Instant::now();
        while !is_so() {
            assert!(start.elapsed().as_secs() < 60, "{what}");
            std::thread::yield_now();
        }
    };
    let room = || fs::read_link(format!("/proc/{}/cwd", kernel()?)).ok();
    let is_room = |path: PathBuf| path.to_string_lossy().contains("fastpath-guest-");
    until("the guest starts", &|| room().is_some_and(is_room));
    let (room, kernel) = (room().unwrap(), kernel().unwrap());
    owner.kill().unwrap();
    owner.wait().unwrap();
    // A process that has ended and was not waited for yet has no memory.
    let has_ended = || {
        let state = fs::read_to_string(format!("/proc/{kernel}/statm")).unwrap_or_default();
        state.is_empty() || state.starts_with("0 ")
    };
    until("the guest ends", &has_ended);
    let next = place.run(&["lab", "run", "net.toml", "--time", "virtual", "--", "true"]);
    assert!(next.status.success() && !room.exists(), "{}", text(&next));
}

#[test]
fn runs_of_an_experiment_are_in_guests_and_each_is_the_same_again() {
    let Some(place) = Place::new("experiments in virtual time") else { return };
    let steps = "spec = 'net.toml'\ntime = 'virtual'\nseeds = 3\n\
        [[step]]\nname = 'ping'\nrun = \"sh -c 'cat /proc/sys/kernel/random/uuid; ping -q -c 5 b; test {seed} != 3'\"\non = 'a'\n\
        [metric.received]\nof = 'ping'\npattern = '(\\d+) received'\n";
    fs::write(place.path.join("e.toml"), steps).unwrap();
    let missing = place.run(&["experiment", "e.toml", "--missing"]);
    let missing: Value = serde_json::from_slice(&missing.stdout).expect("JSON");
    assert_eq!(missing["labs"], false, "any worker of a cluster can do them");
    let done = place.run(&["experiment", "e.toml"]);
    let said = text(&done);
    assert!(
        done.status.code() == Some(1) && said.contains("run 2 (seed 3) is left out: step ping"),
        "{said}"
    );
    assert!(said.contains("fastpath lab again e.results/runs/0002 --capture"), "{said}");
    // The packets stay of the run that failed. The others are the same again, and so are theirs.
    let has_packets = |run: u64| place.path.join(format!("e.results/runs/{run:04}/packets.pcapng")).exists();
    assert_eq!([0, 1, 2].map(has_packets), [false, false, true]);
    let failed = place.run(&["lab", "again", "e.results/runs/0002", "--capture", "failed.pcapng"]);
    assert!(failed.status.success(), "{}", text(&failed));
    assert_eq!(place.read("failed.pcapng"), place.read("e.results/runs/0002/packets.pcapng"));
    let out = |run: u64| place.read(&format!("e.results/runs/{run:04}/ping.out"));
    assert_ne!(out(0), out(1), "the seeds differ");
    let again = place.run(&["lab", "again", "e.results/runs/0001"]);
    assert!(again.status.success(), "{}", text(&again));
}

#[test]
fn a_host_with_files_of_its_own_is_in_virtual_time_too() {
    let Some(place) = Place::new("rootfs in virtual time") else { return };
    let found = Command::new("sh").args(["-c", "command -v busybox"]).output().unwrap();
    let busybox = String::from_utf8_lossy(&found.stdout).trim().to_owned();
    if busybox.is_empty() {
        return skip("rootfs in virtual time", "no busybox here");
    }
    for directory in ["bin", "etc", "proc"] {
        fs::create_dir_all(place.path.join("root").join(directory)).unwrap();
    }
    for program in ["busybox", "sh"] {
        fs::copy(&busybox, place.path.join("root/bin").join(program)).unwrap();
    }
    fs::write(place.path.join("root/etc/who"), "inside\n").unwrap();
    fs::write(place.path.join("net.toml"), TWO_HOSTS.replace("[host.a]", "[host.a]\nrootfs = 'root'"))
        .unwrap();
    let script = "busybox cat /etc/who && busybox ping -q -c 3 b";
    let words = ["lab", "run", "net.toml", "--time", "virtual", "--on", "a", "--", "sh", "-c"];
    let output = place.run(&[&words[..], &[script]].concat());
    let said = text(&output);
    assert!(output.status.success() && said.contains("inside") && said.contains(" 0% packet loss"), "{said}");
}

#[test]
fn the_directory_of_the_kernel_may_be_relative() {
    let Some(place) = Place::new("a relative directory of the kernel") else { return };
    std::os::unix::fs::symlink(&place.guest, place.path.join("kernel")).unwrap();
    let mut command = place.command(&[], &["lab", "run", "net.toml", "--time", "virtual", "--", "true"]);
    let output = command.env("FASTPATH_GUEST", "kernel").output().unwrap();
    assert!(output.status.success(), "{}", text(&output));
}

#[test]
fn what_has_no_virtual_time_is_refused_with_its_reason() {
    let Some(place) = Place::new("refused in virtual time") else { return };
    for (spec, reason) in [
        ("[host.a]\nport = 'eth9'\n[host.b]\n", "a is an interface of this machine: it has no virtual time"),
        ("[host.a]\nattach = 'netns:x'\n[host.b]\n", "a is a namespace that runs already"),
        ("[host.a]\nimage = 'debian'\n[host.b]\n", "a is a container of Podman, which a guest does not have"),
    ] {
        fs::write(place.path.join("other.toml"), format!("{spec}[[link]]\nbetween = ['a', 'b']\n")).unwrap();
        let output = place.run(&["lab", "run", "other.toml", "--time", "virtual", "--", "true"]);
        assert!(output.status.code() == Some(2) && text(&output).contains(reason), "{}", text(&output));
    }
    let output = place.run(&["lab", "run", "net.toml", "--time", "virtual", "--dashboard", "--", "true"]);
    assert!(text(&output).contains("--dashboard has no meaning with --time virtual"), "{}", text(&output));
    let words = ["lab", "run", "net.toml", "--time", "virtual", "--memory", "64MiB", "--", "true"];
    let small = place.run(&words);
    assert!(small.status.code() == Some(2) && text(&small).contains("at least 192MiB"), "{}", text(&small));
    let up = place.run(&["lab", "up", "net.toml", "--time", "virtual"]);
    assert!(up.status.code() == Some(2) && text(&up).contains("lab up has no virtual time"), "{}", text(&up));
    let missing =
        place.run(&["lab", "run", "net.toml", "--time", "virtual", "--on", "a", "--", "no-such-program"]);
    assert!(!missing.status.success() && text(&missing).contains("no-such-program"), "{}", text(&missing));
    let mut command = place.command(&[], &["lab", "run", "net.toml", "--time", "virtual", "--", "true"]);
    let empty = command.env("FASTPATH_GUEST", place.path.join("nothing")).output().unwrap();
    assert!(text(&empty).contains("fastpath guest build"), "{}", text(&empty));
}
