//! Reads a network description from a file: TOML, the canonical form (`.json`), an Emulab script
//! (`.ns`), or a file of containerlab (`.yml`).

use crate::error::{Error, Result};
#[cfg(target_os = "linux")]
use fastpath_engine::Notice;
use fastpath_spec::mistake::printable;
use fastpath_spec::{Checked, Files, Mistakes, NetworkSpec, Warning};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fmt::Display;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

/// The seed of random choices when neither the caller nor the description gives one.
pub const DEFAULT_SEED: u64 = 1;
/// Longest description, bytes. The bound keeps a wrong path from filling the memory.
const BYTES_MAX: u64 = 64 << 20;

/// A network description without mistakes.
#[derive(Clone, Debug)]
pub struct Loaded {
    /// The network, and the settings of the engine.
    pub spec: NetworkSpec,
    /// Warnings about values that are legal but probably not meant.
    pub warnings: Vec<Warning>,
    /// The file it was read from.
    pub path: PathBuf,
    /// The files that the description names, such as traces, in the order of their names.
    pub files: Vec<PathBuf>,
}

impl Loaded {
    /// Returns the options to run the network in real time: the seed given here, in the
    /// description, or [`DEFAULT_SEED`]; the description's `[engine]` table; OpenFlow tables as
    /// machine code; controllers of OpenFlow nodes. `notice` is called for events of the run, such
    /// as a port that fails. The options are for one run.
    ///
    /// # Errors
    /// The operating system refuses a descriptor.
    #[cfg(target_os = "linux")]
    pub fn engine_options(&self, seed: Option<u64>, notice: Notice) -> Result<fastpath_engine::Options> {
        let seed = seed.or(self.spec.topology.seed).unwrap_or(DEFAULT_SEED);
        let mut options = engine_options(seed, notice);
        options.fill_from(&self.spec.engine);
        let directory = self.path.parent().unwrap_or(Path::new(""));
        crate::switching::attach_controllers(&self.spec.topology, directory, &mut options)?;
        Ok(options)
    }
}

/// Returns options to run any network in real time, with OpenFlow tables as machine code.
#[cfg(target_os = "linux")]
pub fn engine_options(seed: u64, notice: Notice) -> fastpath_engine::Options {
    let executors = {
        let notice = notice.clone();
        crate::switching::compiled(move |text| notice.send(text))
    };
    let pool_limit = fastpath_engine::memory_default();
    let network = fastpath_net::Options { executors, pool_limit, ..fastpath_net::Options::with_seed(seed) };
    fastpath_engine::Options { notice, ..fastpath_engine::Options::new(network) }
}

/// How a description is read; files of other lab tools have more ways.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Reading {
    /// Whether nodes that need more than Linux are stubs, whose links lead nowhere. Otherwise they
    /// are mistakes.
    pub only_linux: bool,
    /// Whether hosts are namespaces with the programs of this machine, whatever their image.
    pub ignore_images: bool,
    /// A file of values of links (TOML): a table for each link, or for what leaves an endpoint.
    pub impairments: Option<PathBuf>,
    /// Whether every warning is a mistake.
    pub strict: bool,
    /// Whether the network is drawn and does not run. Then it needs no host, and nodes of any kind
    /// are part of it.
    pub to_draw: bool,
}

/// Loads a network description.
///
/// # Errors
/// [`Error::File`] if a file cannot be read; [`Error::Mistakes`] with every mistake of the
/// description.
pub fn load(path: impl AsRef<Path>) -> Result<Loaded> {
    load_with(path.as_ref(), &Reading::default())
}

/// Loads a network description as [`load`] does.
///
/// # Errors
/// Those of [`load`], and those of [`check_with`].
pub fn load_with(path: &Path, reading: &Reading) -> Result<Loaded> {
    let read = RefCell::new(BTreeMap::new());
    let (spec, warnings) = checked(path, check_recording(path, reading, &read)?)?;
    let directory = path.parent().unwrap_or(Path::new(""));
    let files = read.into_inner().into_keys().map(|name| directory.join(name)).collect();
    Ok(Loaded { spec, warnings, path: path.to_owned(), files })
}

fn checked(path: &Path, checked: Checked<NetworkSpec>) -> Result<(NetworkSpec, Vec<Warning>)> {
    let in_file = |mistakes: Mistakes| mistakes.iter().map(|mistake| at(path, mistake)).collect();
    checked.into_result().map_err(|mistakes| Error::Mistakes(in_file(mistakes)))
}

/// Returns the request to make the description in a file the network of a running lab, with the
/// texts of the files that it names, and its warnings.
///
/// # Errors
/// As [`load_with`].
#[cfg(target_os = "linux")]
pub fn apply_request(
    path: &Path,
    reading: &Reading,
) -> Result<(fastpath_engine::control::Apply, Vec<Warning>)> {
    let files = RefCell::new(BTreeMap::new());
    let (spec, warnings) = checked(path, check_recording(path, reading, &files)?)?;
    // A reader that keeps no description has nothing that was assigned.
    let is_kept = !spec.description.nodes.is_empty();
    let description =
        if is_kept { spec.description } else { fastpath_spec::describe(&spec.topology) }.to_json();
    let apply = fastpath_engine::control::Apply { description, files: files.into_inner(), dry_run: false };
    Ok((apply, warnings))
}

/// Reads a spec file; the canonical form of a description if the name ends in `.json`; an Emulab
/// script if it ends in `.ns`; a topology of containerlab if it ends in `.yml` or `.yaml`. Files
/// that the description names are searched relative to it.
///
/// # Errors
/// [`Error::File`] if the description cannot be read.
pub fn check(path: &Path) -> Result<Checked<NetworkSpec>> {
    check_with(path, &Reading::default())
}

/// Reads a file as [`check`] does.
///
/// # Errors
/// [`Error::File`] if the description or the file of values cannot be read; [`Error::Argument`] if
/// the file is not one of another lab tool, and `reading` is not the default.
pub fn check_with(path: &Path, reading: &Reading) -> Result<Checked<NetworkSpec>> {
    check_recording(path, reading, &RefCell::default())
}

/// As [`check_with`]; the texts of the files that the description names go to `read`.
fn check_recording(
    path: &Path,
    reading: &Reading,
    read: &RefCell<BTreeMap<String, String>>,
) -> Result<Checked<NetworkSpec>> {
    let extension = path.extension().and_then(|extension| extension.to_str());
    if matches!(extension, Some("pcap" | "pcapng")) {
        let what = "this is a capture, not a description of a network; name the description first: fastpath replay NET.toml";
        return Err(Error::argument(format!("{0}: {what} {0}", path.display())));
    }
    let text = text(path).map_err(Error::file(path))?;
    let files = |name: &str| {
        let file = path.parent().unwrap_or(Path::new("")).join(name);
        let text = self::text(&file).map_err(|error| error.to_string())?;
        read.borrow_mut().insert(name.to_owned(), text.clone());
        Ok(text)
    };
    if let Some(what) = other_kind(extension, &text) {
        return Err(Error::argument(format!("{}: {what}", path.display())));
    }
    let of_any_file = Reading { strict: reading.strict, to_draw: reading.to_draw, ..Reading::default() };
    if *reading != of_any_file && !matches!(extension, Some("yml" | "yaml")) {
        let what = "only files of containerlab (.yml) are read with --kinds, --images or --impair";
        return Err(Error::argument(format!("{}: {what}; write the values in the file", path.display())));
    }
    let checked = match extension {
        Some("yml" | "yaml") => check_labfile(&text, reading, &files)?,
        Some("json") if reading.to_draw => fastpath_spec::check_json_to_draw(&text, &files),
        Some("json") => fastpath_spec::check_json(&text, &files),
        Some("ns") => {
            let description = fastpath_emulab::describe(&text).map(|(description, _)| description);
            let description = description.unwrap_or_default();
            fastpath_emulab::check(&text).map(|topology| NetworkSpec {
                topology,
                description,
                ..NetworkSpec::default()
            })
        }
        _ if reading.to_draw => fastpath_spec::check_to_draw(&text, &files),
        _ => fastpath_spec::check(&text, &files),
    };
    let checked = if reading.strict { checked.strict() } else { checked };
    // Programs of a lab may have another working directory.
    let directory = std::path::absolute(path).map_err(Error::file(path))?;
    let directory = directory.parent().unwrap_or(Path::new("/"));
    Ok(checked.map(|mut spec| {
        let hosts = spec.topology.nodes.iter_mut().filter_map(|node| node.kind.host_settings_mut());
        hosts.for_each(|host| host.below(directory));
        spec.description.nodes.iter_mut().for_each(|node| node.host.below(directory));
        spec
    }))
}

/// Says what a file is that is known not to be a description, and what to do with it.
fn other_kind(extension: Option<&str>, text: &str) -> Option<&'static str> {
    const KATHARA: &str = "this is a lab.conf of Kathará, which is not read; write its devices as hosts and its collision domains as switches";
    const PYTHON: &str = "this is a Python program, not a description of a network; run it with python3 (it may use the package fastpath)";
    const MININET: &str = "this is a Python program, not a description of a network; run a Mininet script with python3 -m fastpath.mininet";
    const TABLE: &str =
        "this is a table, not a description of a network; a trace is named in a link: trace = \"FILE.csv\"";
    const PROGRAM: &str = "this is a program, not a description of a network; run it by itself";
    let first = text.lines().next().unwrap_or_default();
    // In TOML this is a comment.
    let interpreter = first.strip_prefix("#!").filter(|_| extension != Some("toml")).unwrap_or_default();
    match extension {
        Some("conf") if is_of_kathara(text) => Some(KATHARA),
        Some("csv" | "tsv") => Some(TABLE),
        _ if extension == Some("py") || interpreter.contains("python") => {
            Some(if text.contains("mininet") { MININET } else { PYTHON })
        }
        _ if !interpreter.is_empty() => Some(PROGRAM),
        _ => None,
    }
}

/// Whether a text is a lab.conf of Kathará: `DEVICE[0]="DOMAIN"`, `DEVICE[image]=…`, `LAB_NAME=…`.
/// A table of a spec has its name in brackets first.
fn is_of_kathara(text: &str) -> bool {
    let mut lines = text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
    lines.next().is_some_and(|line| {
        let device = line.split_once('[').and_then(|(device, rest)| Some((device, rest.split_once("]")?.1)));
        let is_device = |(device, rest): (&str, &str)| {
            let word = |c: char| c.is_ascii_alphanumeric() || "_-".contains(c);
            !device.is_empty() && device.chars().all(word) && rest.starts_with('=')
        };
        line.starts_with("LAB_") || device.is_some_and(is_device)
    })
}

fn check_labfile(text: &str, reading: &Reading, files: &Files) -> Result<Checked<NetworkSpec>> {
    let overlay = reading.impairments.as_deref();
    let overlay = overlay.map(|path| {
        let text = self::text(path).map_err(Error::file(path))?;
        Ok::<_, Error>((path.display().to_string(), text))
    });
    let overlay = overlay.transpose()?;
    let options = fastpath_labfiles::Options {
        files,
        variables: &|name| std::env::var(name).ok(),
        only_linux: reading.only_linux,
        ignore_images: reading.ignore_images,
        to_draw: reading.to_draw,
        impairments: overlay.as_ref().map(|(name, text)| (name.as_str(), text.as_str())),
    };
    Ok(fastpath_labfiles::check(text, &options))
}

/// Returns the name of the network in a file: that of the file without its extension, which may be
/// `.clab.yml`. It is the default name of a lab.
pub fn name_of(path: &Path) -> String {
    let stem = path.file_stem().map_or_else(String::new, |stem| stem.to_string_lossy().into_owned());
    stem.strip_suffix(".clab").map_or(stem.clone(), str::to_owned)
}

/// Formats a mistake or warning with the name of its file: `FILE:LINE:COLUMN: …`.
pub fn at(path: &Path, remark: &impl Display) -> String {
    printable(&format!("{}:{remark}", path.display())).into_owned()
}

fn text(path: &Path) -> io::Result<String> {
    let mut bytes = Vec::new();
    File::open(path)?.take(BYTES_MAX + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > BYTES_MAX {
        return Err(io::Error::other(format!("longer than {BYTES_MAX} bytes")));
    }
    String::from_utf8(bytes).map_err(|_| io::Error::other("not UTF-8 text"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_of_hosts_are_relative_to_the_description() {
        let directory = std::env::temp_dir().join(format!("fastpath-load-{}", std::process::id()));
        std::fs::create_dir(&directory).expect("a new directory");
        let path = directory.join("net.toml");
        let text = "[host.a]\nrootfs = 'files'\n[host.b]\n[[link]]\nbetween = ['a', 'b']\n";
        std::fs::write(&path, text).expect("written");
        let loaded = load(&path).expect("a valid description");
        std::fs::remove_dir_all(&directory).expect("removed");
        let files = directory.join("files").to_str().expect("text").to_owned();
        let host = loaded.spec.topology.nodes[0].kind.host_settings().unwrap();
        assert_eq!(host.origin, fastpath_spec::HostOrigin::RootFs(files));
    }

    #[test]
    fn a_file_of_another_kind_is_named_in_one_sentence() {
        let said = |extension, text| other_kind(extension, text).unwrap_or_default();
        assert!(said(Some("py"), "import fastpath as fp\n").contains("run it with python3 ("));
        assert!(
            said(Some("py"), "from mininet.net import Mininet\n").contains("python3 -m fastpath.mininet")
        );
        assert!(said(None, "#!/usr/bin/env python3\n").contains("a Python program"));
        assert!(said(Some("csv"), "time_s,rate_mbps\n0,1\n").contains("trace = \"FILE.csv\""));
        assert!(said(Some("sh"), "#!/bin/sh\n").contains("a program"));
        assert_eq!(said(Some("toml"), "#!/bin/sh\n[host.a]\n"), "");
        assert_eq!(said(Some("ns"), "set ns [new Simulator]\n"), "");
        let capture = check(Path::new("in.pcap")).expect_err("a capture").to_string();
        assert!(capture.ends_with("fastpath replay NET.toml in.pcap"), "{capture}");
    }

    #[test]
    fn a_lab_conf_of_kathara_is_named() {
        let directory = std::env::temp_dir().join(format!("fastpath-kathara-{}", std::process::id()));
        std::fs::create_dir(&directory).expect("a new directory");
        let path = directory.join("lab.conf");
        let mut said = Vec::new();
        for text in ["# one\npc1[0]=\"A\"\npc2[0]=A\n", "LAB_NAME=\"x\"\n", "[host.a]\n[host.b]\n"] {
            std::fs::write(&path, text).expect("written");
            said.push(check(&path).err().map(|error| error.to_string()).unwrap_or_default());
        }
        std::fs::remove_dir_all(&directory).expect("removed");
        assert!(said[0].contains("this is a lab.conf of Kathará") && said[1] == said[0], "{said:?}");
        assert_eq!(said[2], "");
    }
}
