//! Traces of links, in every format.

use fastpath_spec::trace::{Format, Timeline};
use fastpath_spec::{self as spec, Mistake};
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
                let read = spec::read(&link, &|_| Ok(text.to_string()));
                super::spec::description(&link, read.map(|(spec, warnings)| (spec.topology, warnings)));
            }
        }
    }
}
