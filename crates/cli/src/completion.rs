//! The names of labs, hosts, links, groups and presets that complete a command line, for the
//! completion scripts of shells.

use fastpath_engine::control::{Request, Response, call};
use fastpath_lab::{Listed, control_socket, list, only_lab};
use fastpath_spec::preset;
use std::path::PathBuf;

/// Returns the names that may follow `words`, the words of a command line after the name of the
/// program. Returns none where no name of a running network is expected.
pub(crate) fn names(words: &[String]) -> Vec<String> {
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    if words.contains(&"--") {
        return Vec::new();
    }
    let labs = || list().into_iter().filter(|lab| lab.alive).map(|lab| lab.name).collect();
    match (&words[..], words.last()) {
        (_, Some(&"--preset")) => preset::all().iter().map(|preset| preset.name.clone()).collect(),
        (_, Some(&"--lab")) | (["lab", "down" | "inspect"], _) => labs(),
        (["lab", "exec"], _) => list().into_iter().filter(|lab| lab.alive).flat_map(hosts).collect(),
        (["lab", "exec", name], _) => {
            list().into_iter().filter(|lab| lab.alive && lab.name == *name).flat_map(hosts).collect()
        }
        (["ctl", ..], Some(&"start" | &"--group")) => of_network(&words, Names::Groups),
        (["ctl", ..], Some(&"--from")) => of_network(&words, Names::Nodes),
        (["ctl", rest @ ..] | ["capture", rest @ ..], Some(last)) => {
            let takes_links = words[0] == "capture" || rest.contains(&"set");
            // The word after an option is its value.
            if takes_links && (!last.starts_with('-') || last.contains('=')) {
                of_network(&words, Names::Links)
            } else {
                Vec::new()
            }
        }
        _ => Vec::new(),
    }
}

fn hosts(lab: Listed) -> Vec<String> {
    lab.hosts.into_keys().collect()
}

/// Which names of a running network.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Names {
    Links,
    Groups,
    Nodes,
}

/// Returns the names in the network that the words choose. Without an answer there are none: a
/// completion has nowhere to report an error.
fn of_network(words: &[&str], wanted: Names) -> Vec<String> {
    let after = |option: &str| words.windows(2).find(|pair| pair[0] == option).map(|pair| pair[1]);
    let lab = after("--lab").map(str::to_owned).or_else(|| only_lab(|lab| lab.alive && !lab.starting).ok());
    let socket = after("--socket").map(PathBuf::from).or_else(|| control_socket(&lab?).ok());
    let Some(socket) = socket else { return Vec::new() };
    if wanted == Names::Groups {
        return match call(&socket, &Request::Groups) {
            Ok(Response::Groups(groups)) => groups.into_iter().map(|group| group.name).collect(),
            _ => Vec::new(),
        };
    }
    let Ok(Response::Report(report)) = call(&socket, &Request::Report) else { return Vec::new() };
    match wanted {
        Names::Links | Names::Groups => report.links.into_iter().map(|link| link.name).collect(),
        Names::Nodes => {
            let mut nodes: Vec<String> =
                report.links.into_iter().flat_map(|link| link.directions.map(|pipe| pipe.from)).collect();
            nodes.sort_unstable();
            nodes.dedup();
            nodes
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn presets_follow_their_option() {
        let words = ["shell", "--preset"].map(str::to_owned);
        assert!(names(&words).contains(&"lte".to_owned()));
    }

    #[test]
    fn values_of_options_and_commands_are_not_completed_with_names() {
        for line in ["", "model", "ctl set --rate", "ctl", "lab exec a -- ls", "check"] {
            let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
            assert_eq!(names(&words), Vec::<String>::new(), "{line}");
        }
    }
}
