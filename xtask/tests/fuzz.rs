//! A short run of every fuzz target: its corpus, then seeded mutations of the corpus. The inputs
//! are the same on every machine.
//!
//! The run is not coverage-guided; `cargo +nightly fuzz run TARGET` is, with the same bodies and
//! corpora. An input that fails is printed as hex.

#[path = "../../fuzz/src/lib.rs"]
#[allow(unreachable_pub)] // it is the root of the fuzz crate
mod bodies;

use fastpath_units::Rng;
use std::fs;
use std::path::Path;

/// Mutated inputs per target.
const MUTATIONS: usize = 20_000;
/// Longer inputs are truncated. The parsers' own tests cover size.
const INPUT_BYTES_MAX: usize = 8192;

#[test]
fn frames_of_any_bytes_are_read_without_harm() {
    short_run("wire", bodies::wire);
}

#[test]
fn captures_of_any_bytes_are_read_without_harm() {
    short_run("pcap", bodies::pcap);
}

#[test]
fn specs_of_any_bytes_are_a_network_or_mistakes() {
    short_run("spec", bodies::spec);
}

#[test]
fn scripts_of_any_bytes_are_networks_or_mistakes() {
    short_run("ns", bodies::ns);
}

#[test]
fn openflow_messages_of_any_bytes_are_read_or_refused() {
    short_run("openflow", bodies::openflow);
}

#[test]
fn rules_of_any_bytes_are_mistakes_or_found_alike_one_by_one_and_by_a_plan() {
    short_run("rules", bodies::rules);
}

#[test]
fn traces_of_any_bytes_are_followed_or_mistakes() {
    short_run("trace", bodies::trace);
}

fn short_run(target: &str, body: fn(&[u8])) {
    let corpus = corpus(target);
    for input in &corpus {
        run(input, body);
    }
    let mut rng = Rng::new(1);
    for _ in 0..MUTATIONS {
        run(&mutant(&corpus, &mut rng), body);
    }
}

/// Runs the body; if it panics, the input is shown with the panic.
fn run(input: &[u8], body: fn(&[u8])) {
    struct Show<'a>(&'a [u8]);
    impl Drop for Show<'_> {
        fn drop(&mut self) {
            if std::thread::panicking() {
                eprintln!("input: {:02x?}", self.0);
            }
        }
    }
    let _show = Show(input);
    body(input);
}

fn corpus(target: &str) -> Vec<Vec<u8>> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../fuzz/corpus").join(target);
    let entries = fs::read_dir(&directory).unwrap_or_else(|error| panic!("{}: {error}", directory.display()));
    let mut paths: Vec<_> =
        entries.map(|entry| entry.expect("corpus directory is readable").path()).collect();
    paths.sort();
    assert!(!paths.is_empty(), "{}: a target needs a corpus", directory.display());
    paths.iter().map(|path| fs::read(path).expect("corpus file is readable")).collect()
}

/// One to eight mutations of a member of the corpus.
fn mutant(corpus: &[Vec<u8>], rng: &mut Rng) -> Vec<u8> {
    let mut input = pick(corpus, rng).clone();
    for _ in 0..=rng.below(8) {
        let at = rng.below(input.len() as u64 + 1) as usize;
        let until = at + rng.below((input.len() - at) as u64 + 1) as usize;
        match rng.below(7) {
            0 => input.truncate(at),
            1 => drop(input.drain(at..until)),
            2 => input.extend_from_within(at..until),
            3 => input.insert(at, rng.next_u64() as u8),
            4 => splice(&mut input, at, pick::<Vec<u8>>(corpus, rng), rng),
            _ if at == input.len() => {}
            5 => input[at] ^= 1 << rng.below(8),
            _ => input[at] = *pick(&[0, 1, 0x7f, 0x80, 0xff, b'0', b'9', b'"', b'\n', b' '], rng),
        }
        input.truncate(INPUT_BYTES_MAX);
    }
    input
}

/// Overwrites `input` from `at` with the end of another member.
fn splice(input: &mut Vec<u8>, at: usize, other: &[u8], rng: &mut Rng) {
    let from = rng.below(other.len() as u64 + 1) as usize;
    input.truncate(at);
    input.extend_from_slice(&other[from..]);
}

fn pick<'a, T>(list: &'a [T], rng: &mut Rng) -> &'a T {
    &list[rng.below(list.len() as u64) as usize]
}
