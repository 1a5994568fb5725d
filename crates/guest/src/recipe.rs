//! What is made of the source of a kernel: a configuration and a patch.

use crate::sums;

/// Options of the kernel beside the default ones of User Mode Linux.
pub(crate) const CONFIGURATION: &str = include_str!("../kernel/config");
/// See the head of the crate.
pub(crate) const PATCH: &str = include_str!("../kernel/fastpath.patch");
/// Returns the SHA-256 of what is made of a source.
pub(crate) fn recipe() -> String {
    sums::of_bytes(format!("{CONFIGURATION}\0{PATCH}").as_bytes())
}

/// Returns the options of ours that a configuration does not have.
pub(crate) fn missing(config: &str) -> Vec<String> {
    let asked = CONFIGURATION.lines().filter(|line| line.starts_with("CONFIG_") && line.ends_with("=y"));
    let has = |line: &&str| !config.lines().any(|known| known == *line);
    let name = |line: &str| line["CONFIG_".len()..line.len() - "=y".len()].to_owned();
    asked.filter(has).map(name).collect()
}
