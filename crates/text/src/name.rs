//! Names of nodes, links, groups and traffic.

/// Returns whether a name can be a file's, a namespace's and an argument on a command line: up to
/// 32 ASCII letters, digits, `_`, `-`, `.`, the first neither `-` nor `.`.
pub fn is_name(name: &str) -> bool {
    let known = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
    (1..=32).contains(&name.len()) && name.chars().all(known) && !name.starts_with(['-', '.'])
}
