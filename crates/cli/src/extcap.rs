//! Links of running networks in Wireshark's own list of interfaces: the extcap protocol
//! (doc/extcap.adoc and extcap(4) of Wireshark).
//!
//! Wireshark runs the program in its extcap directory with `--extcap-interfaces`, then with
//! `--extcap-dlts` and `--extcap-config` for each interface, and to capture with `--capture`,
//! `--extcap-interface` and `--fifo`. The time of its list is that of one start of the program for
//! each interface, so few links are listed, and these questions are answered before the command
//! line of the whole program is built.

use fastpath::capture::{CaptureOptions, capture_to_file};
use fastpath::{Error, Result};
use fastpath_engine::control::{Request, Response, call};
use fastpath_lab::{control_socket, list};
use serde_json::Value;
use std::ffi::OsString;
use std::fmt::Write as _;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::atomic::AtomicBool;

/// The name under which Wireshark runs the program: a link to it in the extcap directory.
const PROGRAM: &str = "fastpath-extcap";
/// The most links of a network that are listed. All of them are in `all links`, whose options name
/// links.
const LINKS_MAX: usize = 100;

/// Returns the arguments of the program. Where it runs as `fastpath-extcap`, they belong to
/// `fastpath extcap`.
pub(crate) fn arguments(given: impl Iterator<Item = OsString>) -> Vec<OsString> {
    let mut words: Vec<OsString> = given.collect();
    let name = words.first().and_then(|program| Path::new(program).file_name());
    if name.is_some_and(|name| name == PROGRAM) {
        words.insert(1, "extcap".into());
    }
    words
}

/// Answers a question of Wireshark about interfaces. Returns `None` for other words, which the
/// command line reads.
pub(crate) fn quick(words: &[OsString]) -> Option<ExitCode> {
    let (command, words) = words.get(1..)?.split_first()?;
    let words: Vec<String> =
        words.iter().map(|word| word.to_str().map(str::to_owned)).collect::<Option<_>>()?;
    let asks =
        |word: &String| ["--extcap-interfaces", "--extcap-dlts", "--extcap-config"].contains(&word.as_str());
    if command != "extcap" || !words.iter().any(asks) {
        return None;
    }
    // What is wrong with it is said by the command.
    let text = answer(&words, &AtomicBool::new(false)).ok()?;
    // Wireshark may have ended.
    let _ = std::io::stdout().write_all(text.as_bytes());
    Some(ExitCode::SUCCESS)
}

/// A query of Wireshark.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
struct ExtcapQuery {
    interfaces: bool,
    dlts: bool,
    config: bool,
    capture: bool,
    interface: Option<String>,
    fifo: Option<PathBuf>,
    filter: Option<String>,
    drops: bool,
    snap: Option<u32>,
    links: Vec<String>,
}

/// An interface for Wireshark: a link of a network, or all links of it.
#[derive(Clone, PartialEq, Eq, Debug)]
struct ExtcapInterface {
    value: String,
    display: String,
    lab: String,
    link: Option<String>,
}

/// Answers a question of Wireshark. The answer is to be printed; it is empty after a capture, which
/// ends with `stop`.
///
/// # Errors
/// [`Error::Argument`] for an interface that is gone, or for arguments that extcap does not have;
/// otherwise as for [`capture_to_file`].
pub(crate) fn answer(words: &[String], stop: &AtomicBool) -> Result<String> {
    let question = read(words)?;
    if question.interfaces {
        return Ok(interfaces_text(&interfaces()));
    }
    let named = question.interface.as_deref().unwrap_or_default();
    if question.dlts {
        return Ok("dlt {number=1}{name=EN10MB}{display=Ethernet}\n".to_owned());
    }
    if question.config {
        // The value of a link has a colon, which names of labs do not have.
        let of_all = if named.contains(':') { "" } else { CONFIG_OF_ALL };
        return Ok([CONFIG, of_all].concat());
    }
    let filter = question.filter.as_deref().unwrap_or_default();
    if !question.capture {
        return match filter {
            "" => Err(Error::argument(
                "Wireshark runs this command; copy or link the program as fastpath-extcap into its extcap directory",
            )),
            _ => Ok("links have no capture filters: use a display filter\n".to_owned()),
        };
    }
    let Some(fifo) = question.fifo else { return Err(Error::argument("--capture needs --fifo FILE")) };
    let all = interfaces();
    let Some(interface) = all.into_iter().find(|interface| interface.value == named) else {
        return Err(Error::Argument(format!("'{named}' is gone: refresh the list of interfaces")));
    };
    let socket = control_socket(&interface.lab).map_err(|error| Error::argument(error.to_string()))?;
    let links = interface.link.into_iter().chain(question.links).collect();
    let options =
        CaptureOptions { links, drops: question.drops, snap: question.snap, ..CaptureOptions::default() };
    capture_to_file(&socket, &options, &fifo, stop)?;
    Ok(String::new())
}

/// The options of an interface in Wireshark.
const CONFIG: &str = "\
arg {number=0}{call=--drops}{display=Dropped frames}{type=boolflag}{default=false}{tooltip=Also capture frames that the link drops; the packet comment has the reason}
arg {number=1}{call=--snap}{display=Bytes of each frame}{type=unsigned}{range=0,65535}{default=0}{tooltip=The most bytes of each frame; 0 for all}
";

/// A further option of all links of a network.
const CONFIG_OF_ALL: &str = "\
arg {number=2}{call=--link}{display=Links}{type=string}{tooltip=The names of links, with commas between them; without any all links}
";

fn read(words: &[String]) -> Result<ExtcapQuery> {
    let mut question = ExtcapQuery::default();
    let mut words = words.iter().map(String::as_str).peekable();
    while let Some(word) = words.next() {
        let (option, value) = match word.split_once('=') {
            Some((option, value)) => (option, Some(value)),
            None => (word, None),
        };
        match option {
            "--extcap-interfaces" => question.interfaces = true,
            "--extcap-dlts" => question.dlts = true,
            "--extcap-config" => question.config = true,
            "--capture" => question.capture = true,
            "--extcap-cleanup-postkill" | "--debug" => {}
            // Wireshark before 4.0 leaves the value out.
            "--extcap-version" if value.is_none() => {
                words.next_if(|next| !next.starts_with("--"));
            }
            "--extcap-version" => {}
            "--drops" => {
                let value = value.or_else(|| words.next_if(|next| ["true", "false"].contains(next)));
                question.drops = value != Some("false");
            }
            _ => {
                let value = value.or_else(|| words.next()).unwrap_or_default();
                match option {
                    "--extcap-interface" => question.interface = Some(value.to_owned()),
                    "--fifo" => question.fifo = Some(value.into()),
                    "--extcap-capture-filter" => question.filter = Some(value.to_owned()),
                    "--snap" => {
                        let wrong = |_| Error::Argument(format!("--snap '{value}': write a number of bytes"));
                        question.snap = Some(value.parse().map_err(wrong)?).filter(|bytes| *bytes > 0);
                    }
                    "--link" => {
                        let names = value.split(',').map(str::trim).filter(|name| !name.is_empty());
                        question.links.extend(names.map(str::to_owned));
                    }
                    // Options of other versions have values that do not concern a link.
                    _ if option.starts_with("--extcap-") || option.starts_with("--log-") => {}
                    _ => {
                        return Err(Error::Argument(format!(
                            "'{option}' is not an argument of extcap: Wireshark runs this command"
                        )));
                    }
                }
            }
        }
    }
    Ok(question)
}

/// The interfaces of all networks of this user that run.
fn interfaces() -> Vec<ExtcapInterface> {
    let mut all = Vec::new();
    for lab in list().into_iter().filter(|lab| lab.alive) {
        let Ok(socket) = control_socket(&lab.name) else { continue };
        let Ok(Response::Topology(topology)) = call(&socket, &Request::Topology) else { continue };
        let links = topology["links"].as_array().map(Vec::as_slice).unwrap_or_default();
        all.extend(interfaces_of(&lab.name, links.iter().filter_map(link_of).collect()));
    }
    all
}

/// The name and the nodes of a link of a description.
fn link_of(link: &Value) -> Option<(String, String, String)> {
    let text = |value: &Value| value.as_str().map(str::to_owned);
    let between = &link["between"];
    Some((text(&link["name"])?, text(&between[0])?, text(&between[1])?))
}

/// The interfaces of a network with these links: name and nodes.
fn interfaces_of(lab: &str, links: Vec<(String, String, String)>) -> Vec<ExtcapInterface> {
    let more = match links.len().checked_sub(LINKS_MAX) {
        None | Some(0) => String::new(),
        Some(more) => format!(", {more} more than listed"),
    };
    let whole = ExtcapInterface {
        value: format!("fastpath-{lab}"),
        display: format!("fastpath {lab}: all links{more}"),
        lab: lab.to_owned(),
        link: None,
    };
    let links = links.into_iter().take(LINKS_MAX).map(|(name, from, to)| ExtcapInterface {
        value: format!("fastpath-{lab}:{}", fastpath_engine::control::percent_encoded(&name)),
        display: format!("fastpath {lab}: {name} ({from} - {to})"),
        lab: lab.to_owned(),
        link: Some(name),
    });
    std::iter::once(whole).chain(links).collect()
}

fn interfaces_text(interfaces: &[ExtcapInterface]) -> String {
    let mut text = format!("extcap {{version={}}}{{display=fastpath}}\n", env!("CARGO_PKG_VERSION"));
    for ExtcapInterface { value, display, .. } in interfaces {
        // Braces and control characters would end a sentence of the protocol.
        let is_plain = |letter: &char| !letter.is_control() && !['{', '}'].contains(letter);
        let display: String = display.chars().filter(is_plain).collect();
        _ = writeln!(text, "interface {{value={value}}}{{display={display}}}");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str) -> Vec<String> {
        line.split_whitespace().map(str::to_owned).collect()
    }

    #[test]
    fn links_are_listed_with_names_that_the_protocol_can_express() {
        let link = |name: &str| (name.to_owned(), "a".to_owned(), "b".to_owned());
        let text = interfaces_text(&interfaces_of("net", vec![link("a-b"), link("x} {value=\u{1b}")]));
        let lines: Vec<&str> = text.lines().skip(1).collect();
        assert_eq!(
            lines,
            [
                "interface {value=fastpath-net}{display=fastpath net: all links}",
                "interface {value=fastpath-net:a-b}{display=fastpath net: a-b (a - b)}",
                "interface {value=fastpath-net:x%7D%20%7Bvalue%3D%1B}{display=fastpath net: x value= (a - b)}",
            ]
        );
    }

    #[test]
    fn the_rest_of_many_links_is_named_in_the_options_of_all() {
        let link = |number: usize| (format!("l{number}"), "a".to_owned(), "b".to_owned());
        let all = interfaces_of("net", (0..LINKS_MAX + 7).map(link).collect());
        assert_eq!(all.len(), 1 + LINKS_MAX);
        assert_eq!(all[0].display, "fastpath net: all links, 7 more than listed");
        let config = |of: &str| {
            answer(&words(&format!("--extcap-config --extcap-interface {of}")), &AtomicBool::new(false))
        };
        assert!(config("fastpath-net").unwrap().contains("{call=--link}"));
        assert!(!config("fastpath-net:l1").unwrap().contains("--link"));
        let asked = read(&["--capture", "--link", "l101, l7"].map(str::to_owned)).unwrap();
        assert_eq!(asked.links, ["l101", "l7"]);
    }

    #[test]
    fn the_questions_of_wireshark_are_understood() {
        let asked = read(&words("--extcap-interfaces --extcap-version=4.4")).unwrap();
        assert!(asked.interfaces && !asked.capture);
        let asked = read(&words("--extcap-dlts --extcap-interface fastpath-net:a-b")).unwrap();
        assert!(asked.dlts && asked.interface.as_deref() == Some("fastpath-net:a-b"));
        let asked = read(&words(
            "--capture --extcap-interface fastpath-net --fifo f --drops --snap 0 --extcap-control-in i",
        ))
        .unwrap();
        assert!(asked.capture && asked.drops && asked.snap.is_none());
        assert_eq!(asked.fifo, Some("f".into()));
        assert!(!read(&words("--capture --drops false --snap 96")).unwrap().drops);
        for (wrong, said) in [("--snap x", "--snap 'x'"), ("eth0", "'eth0' is not an argument of extcap")] {
            let error = read(&words(wrong)).unwrap_err().to_string();
            assert!(error.starts_with(said), "{error}");
        }
    }

    #[test]
    fn the_program_under_its_other_name_is_the_command() {
        let of = |line: &str| arguments(words(line).into_iter().map(OsString::from));
        assert_eq!(of("/x/fastpath-extcap --capture"), ["/x/fastpath-extcap", "extcap", "--capture"]);
        assert_eq!(of("/x/fastpath check"), ["/x/fastpath", "check"]);
    }
}
