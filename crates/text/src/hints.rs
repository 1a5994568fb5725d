//! What to write for keys of other tools: Mininet, containerlab, tc, Kathará, Emulab.

/// The key of another tool, the key that is meant, and what to write.
const OTHER_KEYS: &[(&str, &str, &str)] = &[
    ("latency", "delay", "delay = \"25ms\""),
    ("lat", "delay", "delay = \"25ms\""),
    ("delay_ms", "delay", "delay = \"25ms\""),
    ("latency_ms", "delay", "delay = \"25ms\""),
    ("rtt", "delay", "delay = \"25ms\", which is one way: half of a round trip"),
    ("bandwidth", "rate", "rate = \"10Mbit\""),
    ("bw", "rate", "rate = \"10Mbit\""),
    ("capacity", "rate", "rate = \"10Mbit\""),
    ("throughput", "rate", "rate = \"10Mbit\""),
    ("datarate", "rate", "rate = \"10Mbit\""),
    ("bandwidth_mbps", "rate", "rate = \"10Mbit\""),
    ("rate_mbps", "rate", "rate = \"10Mbit\""),
    ("packet_loss", "loss", "loss = \"1%\""),
    ("loss_rate", "loss", "loss = \"1%\""),
    ("loss_percent", "loss", "loss = \"1%\""),
    ("plr", "loss", "loss = \"1%\""),
    ("drop", "loss", "loss = \"1%\""),
    ("queue_size", "queue", "queue = \"50p\""),
    ("max_queue_size", "queue", "queue = \"50p\""),
    ("queue_limit", "queue", "queue = \"50p\""),
    ("qlen", "queue", "queue = \"50p\""),
    ("limit", "queue", "queue = \"50p\""),
    ("buffer", "queue", "queue = \"50p\""),
    ("qdisc", "queue", "queue = { kind = \"codel\" }"),
    ("aqm", "queue", "queue = { kind = \"codel\" }"),
    ("jitter_ms", "jitter", "jitter = { law = \"normal\", sd = \"2ms\" }"),
    ("corruption", "corrupt", "corrupt = \"0.1%\""),
    ("duplication", "duplicate", "duplicate = \"1%\""),
    ("reordering", "reorder", "reorder = \"25%\""),
    ("endpoints", "between", "between = [\"a\", \"b\"]"),
    ("ends", "between", "between = [\"a\", \"b\"]"),
    ("ip", "address", "address = \"10.0.1.2/24\""),
    ("ipv4", "address", "address = \"10.0.1.2/24\""),
    ("ipv6", "address", "address = \"fd00::2/64\""),
    ("interface", "port", "port = \"eth1\""),
    ("docker", "image", "image = \"IMAGE\" to start a container, or attach = \"container:NAME\""),
    ("container", "image", "image = \"IMAGE\" to start one, or attach = \"container:NAME\""),
    ("dockerfile", "image", "image = \"IMAGE\", which `podman build` makes"),
    ("dimage", "image", "image = \"IMAGE\""),
    ("netns", "attach", "attach = \"netns:NAME\""),
    ("namespace", "attach", "attach = \"netns:NAME\""),
    ("pid", "attach", "attach = \"pid:NUMBER\""),
    ("cmd", "command", "command = [\"PROGRAM\", \"ARGUMENT\"]"),
    ("dcmd", "command", "command = [\"PROGRAM\", \"ARGUMENT\"]"),
    ("environment", "env", "env = { NAME = \"value\" }"),
    ("volumes", "binds", "binds = [\"SOURCE:TARGET\"]"),
    ("mounts", "binds", "binds = [\"SOURCE:TARGET\"]"),
    ("privatedirs", "private", "private = [\"/var/run\"]"),
    ("private_dirs", "private", "private = [\"/var/run\"]"),
    ("time", "at", "at = \"10s\""),
    ("hosts", "host", "[host.NAME] for each"),
    ("nodes", "host", "[host.NAME], [router.NAME] or [switch.NAME] for each"),
    ("links", "link", "[[link]] for each"),
    ("edges", "link", "[[link]] for each"),
    ("events", "event", "[[event]] for each"),
];

/// Keys by which other tools give the number of losses in a row.
const BURST_KEYS: [&str; 7] =
    ["burst", "burst_length", "mean_burst", "consecutive", "consecutive_losses", "length", "max_consecutive"];

/// What to write for a number of losses in a row.
pub const IN_A_ROW: &str = "write kind = \"runs\", passed = [97], lost = [3] for three losses in a row \
                            after 97 packets; or kind = \"gilbert-elliott\", to_bad = \"1%\", \
                            to_good = \"33%\" for three on average";

/// Returns what to write for a key of another tool in a table that has the keys `known`.
pub fn hint(key: &str, known: &[String]) -> Option<String> {
    let key = key.to_ascii_lowercase();
    let has = |meant: &str| known.iter().any(|known| known == meant);
    if BURST_KEYS.contains(&key.as_str()) && has("correlation") && has("ecn") {
        return Some(IN_A_ROW.to_owned());
    }
    let found = OTHER_KEYS.iter().find(|(word, meant, _)| *word == key && has(meant));
    found.map(|(_, _, how)| format!("write {how}"))
}

/// Returns the byte offset of the first line of a text that is YAML: `---`, or `key:` with nothing
/// or a space behind it.
pub fn first_line_of_yaml(text: &str) -> Option<usize> {
    let mut at = 0;
    for line in text.split_inclusive('\n') {
        let start = at;
        at += line.len();
        let content = line.trim();
        if content.is_empty() || content.starts_with('#') {
            continue;
        }
        let word = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
        let rest = content.trim_start_matches(word);
        let is_key = rest.len() < content.len() && (rest == ":" || rest.starts_with(": "));
        return (content == "---" || content.starts_with("- ") || is_key).then_some(start);
    }
    None
}
