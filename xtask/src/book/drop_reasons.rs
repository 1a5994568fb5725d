//! The reference of drop reasons, from the documentation of their enums.

/// The enums, with what drops: the file, the name of the enum, and a heading.
pub(crate) const SOURCES: &[(&str, &str, &str)] = &[
    ("crates/link/src/packet.rs", "DropReason", "Links"),
    ("crates/net/src/fate.rs", "Reason", "Routers, NATs, switches and the engine"),
    ("crates/switch/src/outcome.rs", "DropReason", "OpenFlow switches"),
];

/// Returns the page from the texts of [`SOURCES`].
pub(crate) fn page(texts: &[String]) -> String {
    let mut page = String::from(
        "# Drop reasons\n\nIn every run, frames in = delivered + dropped + held. Reports, `--times` and `--packet-log` name \
         the reason of each drop.\n",
    );
    for ((_, name, heading), text) in SOURCES.iter().zip(texts) {
        page.push_str(&format!("\n## {heading}\n\n| reason | meaning |\n|---|---|\n"));
        for (reason, what) in reasons(text, name) {
            page.push_str(&format!("| `{reason}` | {what} |\n"));
        }
    }
    page
}

/// The names in reports with the documentation of their variants.
fn reasons(text: &str, name: &str) -> Vec<(String, String)> {
    let start = format!("pub enum {name} {{");
    let body = text.lines().skip_while(|line| *line != start).skip(1).take_while(|line| *line != "}");
    let mut reasons = Vec::new();
    let mut what = Vec::new();
    for line in body.map(str::trim) {
        if let Some(words) = line.strip_prefix("///") {
            what.push(words.trim());
        } else if !line.starts_with('#') && !line.is_empty() {
            let variant = line.trim_end_matches(',');
            let named = format!("{name}::{variant} => \"");
            let found = text.lines().find_map(|line| line.trim().strip_prefix(&named)?.split('"').next());
            if let Some(found) = found {
                reasons.push((found.to_owned(), what.join(" ").replace(['[', ']'], "")));
            }
            what.clear();
        }
    }
    reasons
}

#[cfg(test)]
mod tests {
    use super::*;
    use fastpath_switch::outcome::DropReason;

    #[test]
    fn every_reason_has_a_row_with_its_meaning() {
        let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        let read = |(file, ..): &(&str, &str, &str)| std::fs::read_to_string(root.join(file)).unwrap();
        let texts: Vec<String> = SOURCES.iter().map(read).collect();
        let page = page(&texts);
        let rows = page.lines().filter(|line| line.starts_with("| `")).count();
        // In the sources: an arm with a name for each reason.
        let arms = texts.iter().flat_map(|text| text.lines());
        let arms = arms.filter(|line| line.contains("Reason::") && line.contains(" => \"")).count();
        assert_eq!(rows, arms, "{page}");
        assert!(page.contains(&format!("| `{}` | No flow matched", DropReason::TableMiss.name())), "{page}");
        assert!(!page.contains("` |  |"), "{page}");
    }
}
