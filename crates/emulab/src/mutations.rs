//! Every word of a script changes what would run, or is named: scripts in which one word of a
//! command is changed, removed or misspelled.
//!
//! `FASTPATH_MUTATIONS=100000 cargo test -p fastpath-emulab mutations` tries more of them, and
//! `FASTPATH_SEED` others.

use crate::interp;
use fastpath_spec::{NO_FILES, resolve_into};
use fastpath_text::mistake::Remarks;
use fastpath_units::Rng;
use std::collections::BTreeSet;
use std::ops::Range;

const MUTATIONS: usize = 4000;
const SEED: u64 = 33;

const SCRIPTS: [(&str, &str); 8] = [
    ("emulab-fig2-1.ns", include_str!("../../../examples/emulab-fig2-1.ns")),
    ("lan-events.ns", include_str!("../../../examples/lan-events.ns")),
    ("tcl.ns", include_str!("../../../fuzz/corpus/ns/tcl.ns")),
    ("red.ns", include_str!("../../../fuzz/corpus/ns/red.ns")),
    ("traffic", TRAFFIC),
    ("events", EVENTS),
    ("transfers", TRANSFERS),
    ("models", MODELS),
];

const TRAFFIC: &str = r#"set ns [new Simulator]
$ns color 1 Blue
set nf [open out.nam w]
$ns namtrace-all $nf
foreach n {n0 n1 r} { set $n [$ns node] }
set up [$ns duplex-link $n0 $r 2Mb 10ms DropTail]
$ns duplex-link $r $n1 1.7Mb 20ms RED
$ns duplex-link-op $n0 $r orient right-down
$ns queue-limit $r $n1 12
set udp [new Agent/UDP]
$ns attach-agent $n0 $udp
set null [new Agent/Null]
$ns attach-agent $n1 $null
$ns connect $udp $null
$udp set fid_ 1
set cbr [new Application/Traffic/CBR]
$cbr attach-agent $udp
$cbr set packetSize_ 500
$cbr set interval_ 0.005
$ns at 0.5 "$cbr start"
$ns at 2.5 "$cbr set rate_ 900kb"
$ns at 4.5 "$cbr stop"
$ns at 5.0 "finish"
set two [$ns create-connection UDP $n1 Null $n0 2]
set burst [$two attach-app Traffic/Pareto]
$burst set shape_ 1.7
$burst set burst_time_ 300ms
$burst set rate_ 200kb
$ns at 1.0 "$burst start"
set three [new Agent/UDP]
$ns attach-agent $n1 $three
set monitor [new Agent/LossMonitor]
$ns attach-agent $n0 $monitor
$ns connect $three $monitor
$ns at 3.0 "$three send 700"
$ns at 0.0 "record"
proc record {} {
    global ns monitor
    set now [$ns now]
    puts "$now [$monitor set bytes_]"
    if {$now < 2} { $ns at [expr $now + 0.5] "record" }
}
proc finish {} {
    global ns nf
    $ns flush-trace
    close $nf
    exit 0
}
$ns run
"#;

const MODELS: &str = r#"Agent/UDP set fid_ 3
Queue set limit_ 33
Queue/SFQ set buckets_ 12
rtModel/Deterministic set downInterval_ 0.25
set ns [new Simulator]
set n0 [$ns node]
set n1 [$ns node]
set n2 [$ns node]
$ns duplex-link $n0 $n1 [bw_parse 2Mb] [delay_parse 7ms] SFQ
$ns duplex-link $n1 $n2 3Mb 10ms DRR
$ns duplex-link $n0 $n2 4Mb 10ms CoDel
set q [[$ns link $n1 $n2] queue]
$q set quantum_ 400
$q set blimit_ 9000
[[$ns get-link $n0 $n2] queue] set target_ 0.009
$ns rtproto DV
$ns rtmodel-at 1.25 down $n0 $n1
$ns rtmodel-at 2.25 up $n0 $n1
$ns rtmodel Deterministic {0.75 3.0 -} $n1 $n2
$ns rtmodel Exponential {1.5 5.0 2.0 50.0} $n0
set em [new ErrorModel]
$em unit pkt
$em set rate_ 0.03
$ns lossmodel $em $n0 $n2
$ns at 9 "$em set rate_ 0.2"
$ns at 60 "$ns halt"
$ns run
"#;

const TRANSFERS: &str = r#"set ns [new Simulator]
set n0 [$ns node]
set n1 [$ns node]
$ns duplex-link $n0 $n1 2Mb 10ms DropTail
set tcp [new Agent/TCP]
$tcp set window_ 64
$tcp set packetSize_ 960
$tcp set ecn_ 1
$ns attach-agent $n0 $tcp
set sink [new Agent/TCPSink/DelAck]
$ns attach-agent $n1 $sink
$ns connect $tcp $sink
set ftp [new Application/FTP]
$ftp attach-agent $tcp
$ns at 0.5 "$ftp start"
$ns at 4.5 "$ftp stop"
set linux [$ns create-connection TCP/Linux $n1 TCPSink/Sack1 $n0 2]
$linux select_ca cubic
$ns at 1.5 "$linux send 70000"
set two [$ns create-connection TCP/Newreno $n1 TCPSink $n0 2]
set bulk [$two attach-source FTP]
$bulk set maxpkts_ 40
$ns at 2.5 "$bulk start"
$ns at 5.5 "$two advance 300"
$ns at 9.5 "$ns halt"
$ns run
"#;

const EVENTS: &str = r#"source tb_compat.tcl
set ns [new Simulator]
set a [$ns node]
set b [$ns node]
set c [$ns node]
set x [$ns duplex-link $a $b 10Mb 5ms DropTail]
set y [$ns duplex-link $b $c 10Mb 5ms DropTail]
set lan [$ns make-lan "$a $c" 100Mb 2ms]
tb-set-link-loss $x 0.01
tb-set-node-lan-params $a $lan 4ms 20Mb 0.05
tb-set-link-simplex-params $y $b 3ms 4Mb 0.2
tb-set-node-startcmd $b "hostname boot"
tb-set-ip-link $a $x 10.3.0.4
set udp [new Agent/UDP]
$ns attach-agent $a $udp
set cbr [new Application/Traffic/CBR]
$cbr set packetSize_ 500
$cbr set iptos_ 16
$cbr attach-agent $udp
set null [new Agent/Null]
$ns attach-agent $b $null
$ns connect $udp $null
set prog [$b program-agent -command "sleep 3; date" -timeout 5]
set other [new Program $ns]
$other set node $c
$other set command uptime
set both [new EventGroup $ns]
$both add $x $y
set time [$ns event-timeline]
$time at 1.0 "$cbr start"
$time at 3.0 "$cbr stop; $x down"
$time at 4.0 "$x up"
set steps [$ns event-sequence {
    $y delay 20ms
    $time run
    $y bandwidth 5Mb duplex
    $other start
}]
$steps append "$y plr 0.1"
$ns at 1.0 "$prog start"
$ns at 9.0 "$prog stop"
$ns at 2.0 "$steps start"
$ns at 20.0 "$both down"
$ns at 1m "$both up"
$ns rtproto Session
$ns run
"#;

/// Words that may change nothing, and why: the command, and its words from one on.
const EQUIVALENCES: [(&str, usize, &str); 15] = [
    ("color", 2, "a colour in the pictures of nam"),
    ("duplex-link-op", 2, "a place in the pictures of nam"),
    ("namtrace-all", 2, "the file of a trace, which is opened with a warning"),
    ("fid_", 2, "the number of a flow in traces"),
    ("create-connection", 6, "the number of a flow in traces"),
    ("flush-trace", 1, "traces are not written"),
    ("global", 1, "a variable that the procedure may not need"),
    ("exit", 1, "the exit status of ns-2"),
    ("if", 1, "a condition of the same outcome"),
    ("while", 1, "a condition of the same outcome"),
    ("for", 1, "a condition of the same outcome"),
    ("expr", 1, "an expression of the same value"),
    ("foreach", 1, "a value that a later turn replaces"),
    ("format", 1, "more digits of the same number"),
    ("bandwidth", 3, "both directions are what is changed"),
];

/// What would run, and what is said: the place in the text, and the words.
struct ScriptOutcome {
    runs: Option<String>,
    said: Vec<(usize, usize, String)>,
}

fn outcome(text: &str) -> ScriptOutcome {
    let (built, mut remarks) = crate::read(text);
    let mut runs = None;
    if remarks.is_clean() {
        runs = Some(built.description.to_json().to_string());
        resolve_into(&built.description, NO_FILES, &mut remarks, &|path| built.offset(path));
    }
    let checked = remarks.check(());
    // What a script prints is a result of it.
    if let Some(runs) = &mut runs {
        let printed = checked.warnings.iter().filter(|said| said.what.starts_with("the script says"));
        runs.extend(printed.map(|said| said.what.as_str()));
    }
    let mistakes = checked.mistakes.into_iter().map(|said| (said.line, said.column, said.what));
    let warnings = checked.warnings.into_iter().map(|said| (said.line, said.column, said.what));
    ScriptOutcome { runs, said: mistakes.chain(warnings).collect() }
}

/// A word of a command that was evaluated.
struct Leaf {
    word: Range<usize>,
    /// The first byte of the command.
    command: usize,
    /// The words of the command, and which of them it is in.
    words: Vec<String>,
    index: usize,
}

fn leaves(text: &str) -> Vec<Leaf> {
    let mut tcl = interp::start(Remarks::new(text));
    tcl.run(text);
    let visited = tcl.visited;
    let mut leaves = Vec::new();
    for &command in &visited {
        let ranges = words_at(text, command);
        let words: Vec<String> = ranges.iter().map(|range| text[range.clone()].to_owned()).collect();
        for (index, range) in ranges.into_iter().enumerate() {
            let whole = &text[range.clone()];
            let is_script = visited.range(range.start + 1..range.end).next().is_some();
            if is_script || whole.contains('[') {
                continue;
            }
            let inner = match whole.starts_with(['{', '"']) && range.len() > 1 {
                true => range.start + 1..range.end - 1,
                false => range,
            };
            for word in pieces(text, inner) {
                leaves.push(Leaf { word, command, words: words.clone(), index });
            }
        }
    }
    leaves
}

/// The words of the command at a place, with their quotes and braces.
fn words_at(text: &str, from: usize) -> Vec<Range<usize>> {
    let bytes = text.as_bytes();
    let (mut at, mut words) = (from, Vec::new());
    while at < bytes.len() && !matches!(bytes[at], b'\n' | b';' | b']' | b'#') {
        if bytes[at] == b'\\' {
            at += 2;
            continue;
        }
        if bytes[at].is_ascii_whitespace() {
            at += 1;
            continue;
        }
        let start = at;
        let (mut braces, mut brackets, mut is_quoted) = (0, 0, false);
        while at < bytes.len() {
            match bytes[at] {
                b'\\' => at += 1,
                b'"' if braces == 0 => is_quoted = !is_quoted,
                b'{' if !is_quoted => braces += 1,
                b'}' if !is_quoted => braces -= 1,
                b'[' => brackets += 1,
                b']' if brackets == 0 && braces == 0 && !is_quoted => break,
                b']' => brackets -= 1,
                b'\n' | b';' | b' ' | b'\t' if braces <= 0 && brackets == 0 && !is_quoted => break,
                _ => {}
            }
            at += 1;
        }
        words.push(start..at.min(bytes.len()));
    }
    words
}

/// The pieces of a text between blanks and semicolons.
fn pieces(text: &str, range: Range<usize>) -> Vec<Range<usize>> {
    let ends = |byte: u8| byte.is_ascii_whitespace() || matches!(byte, b';' | b'{' | b'}' | b'"');
    let bytes = text.as_bytes();
    let (mut at, mut pieces) = (range.start, Vec::new());
    while at < range.end {
        let start = at;
        while at < range.end && !ends(bytes[at]) {
            at += 1;
        }
        if at > start {
            pieces.push(start..at);
        }
        at += 1;
    }
    pieces
}

/// Another word: none, a misspelled one, or another number.
fn mutate(word: &str, rng: &mut Rng) -> String {
    let digits = |c: char| c.is_ascii_digit();
    let letters: Vec<usize> =
        word.char_indices().filter(|(_, c)| c.is_alphabetic()).map(|(at, _)| at).collect();
    match rng.below(3) {
        0 => String::new(),
        1 if word.contains(digits) && !word.starts_with('$') => {
            let start = word.find(digits).unwrap_or_default();
            let end = word[start..].find(|c| !digits(c)).map_or(word.len(), |length| start + length);
            let number: u64 = word[start..end].parse().unwrap_or(7);
            format!("{}{}{}", &word[..start], number * 2 + 1, &word[end..])
        }
        _ if !letters.is_empty() => {
            let at = letters[rng.below(letters.len() as u64) as usize];
            format!("{}q{}", &word[..at], &word[at..])
        }
        _ => format!("{word}q"),
    }
}

fn is_equivalent(leaf: &Leaf, new: &str) -> bool {
    // `$ns set duplex-link` of Joglekar 2004 is `$ns duplex-link`.
    if leaf.index == 1 && leaf.words[1] == "set" && new.is_empty() && leaf.words[0] == "$ns" {
        return true;
    }
    EQUIVALENCES
        .iter()
        .any(|(name, from, _)| leaf.words.iter().take(3).any(|word| word == name) && leaf.index >= *from)
}

fn number_of(variable: Option<&str>, default: u64) -> u64 {
    variable.and_then(|text| text.parse().ok()).unwrap_or(default)
}

#[test]
fn every_word_of_a_command_changes_what_runs_or_is_named() {
    let count = number_of(option_env!("FASTPATH_MUTATIONS"), MUTATIONS as u64) as usize;
    let mut rng = Rng::new(number_of(option_env!("FASTPATH_SEED"), SEED));
    let inputs: Vec<_> =
        SCRIPTS.iter().map(|(name, text)| (*name, *text, leaves(text), outcome(text))).collect();
    for (name, _, leaves, base) in &inputs {
        assert!(base.runs.is_some(), "{name}: {:?}", base.said);
        assert!(leaves.len() > 20, "{name} has {} words", leaves.len());
    }
    let mut silent = BTreeSet::new();
    for _ in 0..count {
        let (name, text, leaves, base) = &inputs[rng.below(inputs.len() as u64) as usize];
        let leaf = &leaves[rng.below(leaves.len() as u64) as usize];
        let old = &text[leaf.word.clone()];
        let new = mutate(old, &mut rng);
        let mutant = format!("{}{new}{}", &text[..leaf.word.start], &text[leaf.word.end..]);
        let outcome = outcome(&mutant);
        let (line, column) = Remarks::new(text).position(leaf.command);
        let known: BTreeSet<&str> = base.said.iter().map(|(_, _, what)| what.as_str()).collect();
        let is_named = outcome.said.iter().any(|(said_line, said_column, what)| {
            !known.contains(what.as_str()) || (*said_line, *said_column) == (line, column)
        });
        if outcome.runs == base.runs && !is_named && !is_equivalent(leaf, &new) {
            silent.insert(format!("{name}:{line}: '{old}' → '{new}' in {}", leaf.words.join(" ")));
        }
    }
    let shown: Vec<&String> = silent.iter().take(40).collect();
    assert!(silent.is_empty(), "{} changes have no effect and are not named: {shown:#?}", silent.len());
}
