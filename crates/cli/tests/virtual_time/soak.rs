//! A day of a lab in minutes: `cargo xtask soak`. As a test of the suite it is short.

use crate::common::skip;
use crate::place::{FASTPATH, Place, text};
use std::fs;
use std::process::Command;

const NETWORK: &str = "[host.a]\n[router.r]\n[host.b]\n[[link]]\nbetween = ['a', 'r']\n[[link]]\n\
    between = ['r', 'b']\nrate = '20Mbit'\ndelay = '10ms'\nqueue = '100p'\n";
/// Memory may grow by this, kB: heaps have pages of their own.
const GROWTH_KB: u64 = 4096;

fn number(name: &str, default: u64) -> u64 {
    let given = std::env::var(name).ok();
    given.map_or(default, |text| text.parse().unwrap_or_else(|_| panic!("{name}={text}: write a number")))
}

#[test]
fn a_lab_that_lives_long_stays_as_it_is() {
    let Some(place) = Place::new("a long life") else { return };
    for program in ["ping", "curl", "python3"] {
        let found = Command::new("sh").args(["-c", &format!("command -v {program}")]).output();
        if !found.is_ok_and(|found| found.status.success()) {
            return skip("a long life", &format!("no {program} here"));
        }
    }
    let (cycles, seconds) = (number("FASTPATH_SOAK_CYCLES", 3), number("FASTPATH_SOAK_SECONDS", 120));
    fs::write(place.path.join("net.toml"), NETWORK).unwrap();
    fs::write(place.path.join("soak.sh"), include_str!("soak.sh")).unwrap();
    let (cycles_word, seconds_word) = (cycles.to_string(), seconds.to_string());
    let words = ["lab", "run", "net.toml", "--time", "virtual", "--record-interval", "10s", "--record", "r"];
    let command = ["--", "sh", "soak.sh", FASTPATH, &cycles_word, &seconds_word];
    let output = place.run(&[&words[..], &command].concat());
    let said = text(&output);
    println!("{said}");
    assert!(output.status.success(), "{said}");
    let lines: Vec<Vec<&str>> = said
        .lines()
        .filter(|line| line.starts_with("cycle "))
        .map(|line| line.split(' ').collect())
        .collect();
    assert_eq!(lines.len() as u64, cycles, "{said}");
    for line in &lines {
        // 30 ms each way, and 98 bytes at 20 Mbit/s, or 118 of IPv6.
        let round: f64 = line[2].parse().unwrap();
        assert!((60.07..60.11).contains(&round), "{line:?}");
        // curl(1): 7 is a refused connection.
        assert_eq!(line[3..5], ["same", "7"], "{line:?}");
    }
    let parsed = |line: &[&str], at: usize| -> u64 { line[at].parse().unwrap() };
    let (first, last) = (&lines[0], &lines[lines.len() - 1]);
    assert!(parsed(last, 5) <= parsed(first, 5) + GROWTH_KB, "memory: {first:?} {last:?}");
    assert_eq!(first[6], last[6], "descriptors");
    // Lost is what was sent while the link was down, and nothing else.
    let pings: Vec<&str> =
        said.lines().find(|line| line.starts_with("pings ")).expect("sums").split(' ').collect();
    let (sent, received) = (parsed(&pings, 1), parsed(&pings, 2));
    let down = said.split_once(" down, ").and_then(|(before, _)| before.rsplit_once('('));
    let down = down.and_then(|(_, count)| count.parse().ok());
    assert_eq!((sent, Some(sent - received)), (cycles * seconds, down), "{said}");
    // ping(8) waits up to 4 % longer than a second for a reply that does not come.
    let most = cycles * (seconds / 60 + 1);
    assert!((most * 9 / 10 - 2 * cycles..=most).contains(&(sent - received)), "{said}");
    assert!(place.path.join("r/packets.pcapng").is_file() && place.path.join("r/run.json").is_file());
}
