//! Traces of links, in every format.

use fastpath_net::trace::{Format, Timeline};
use fastpath_net::{Mistake, spec};
use fastpath_units::Duration;

/// A trace from anywhere: one that a network follows, or mistakes that stand in the file.
pub fn trace(text: &[u8]) {
    let text = String::from_utf8_lossy(text);
    let lines = text.lines().count().max(1) + 1;
    let formats = [
        ("mahimahi", Format::Mahimahi),
        ("csv", Format::Csv),
        ("theaterq", Format::TheaterQ),
        ("netem-trace", Format::NetemTrace),
    ];
    for (name, format) in formats {
        // A count is how often to write out a pattern, and takes its time.
        if format == Format::NetemTrace && text.contains("count") {
            continue;
        }
        match Timeline::read(format, &text) {
            Err(mistakes) => {
                let is_placed = |mistake: &Mistake| (1..=lines).contains(&mistake.line);
                assert!(!mistakes.is_empty() && mistakes.iter().all(is_placed), "{name}: {mistakes:?}");
            }
            Ok(timeline) => {
                assert!(timeline.length() > Duration::ZERO && !timeline.describe().is_empty());
                let link = format!(
                    "[host.a]\n[host.b]\n[[link]]\nbetween = [\"a\", \"b\"]\ntrace = {{ file = \"t\", format = \"{name}\" }}\n"
                );
                super::spec::description(&link, spec::parse_with(&link, &|_| Ok(text.to_string())));
            }
        }
    }
}
