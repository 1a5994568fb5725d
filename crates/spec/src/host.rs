//! Where the programs of a host run, and which files they see there.
//!
//! ```toml
//! [host.a]                         # none of these keys: a new network namespace
//! # a network namespace that exists: "netns:NAME" (ip-netns(8)), "netns:/path", "pid:123", or
//! # that of a container of Docker or Podman
//! attach = "container:web"
//! [host.b]                         # a container that the lab starts
//! image   = "docker.io/library/nginx"   # of Podman; or rootfs = "directory"
//! # a list of words, or one text for `sh -c`; absent: what the image says, or a shell
//! command = ["nginx", "-g", "daemon off;"]
//! [host.c]
//! env     = { LANG = "C" }         # variables of its programs
//! binds   = ["./conf:/etc/app:ro"] # SOURCE:TARGET[:ro], sources relative to this file
//! private = ["/var/run", "/etc/frr"]    # directories of its own, empty at the start
//! pid_namespace = true             # its programs see no others
//! ```
//!
//! `private` is what Mininet calls `privateDirs`. A directory of the author's in place of an empty
//! one is an entry of `binds`.

use crate::fields::{Field, Fields};
use crate::mistake::Remarks;
use crate::schema_parts;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::fmt;
use std::path::{Component, Path};
use std::str::FromStr;

/// Where the programs of a host run, and which files they see there.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct HostSettings {
    /// Where its programs run.
    pub origin: HostOrigin,
    /// The main program of a container and its arguments; empty: what the image says.
    pub command: Vec<String>,
    /// Variables of its programs.
    pub env: BTreeMap<String, String>,
    /// Files and directories of the machine that its programs see elsewhere.
    pub binds: Vec<Bind>,
    /// Directories of its own, empty when the lab comes up. Absolute.
    pub private: Vec<String>,
    /// Whether its programs see only processes of this host.
    pub pid_namespace: bool,
}

/// Where the programs of a host run.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub enum HostOrigin {
    /// In a new network namespace, with the files of the machine.
    #[default]
    New,
    /// In a network namespace that exists.
    Attached(Attach),
    /// In a container of this image of Podman.
    Image(String),
    /// In a container with the files of this directory, which it does not change.
    RootFs(String),
}

/// The name of a network namespace that exists.
///
/// ```
/// use fastpath_spec::Attach;
///
/// assert_eq!("netns:blue".parse(), Ok(Attach::Netns("blue".to_owned())));
/// assert_eq!("netns:/run/x".parse(), Ok(Attach::Path("/run/x".to_owned())));
/// assert_eq!("pid:123".parse(), Ok(Attach::Pid(123)));
/// assert_eq!("container:web".parse::<Attach>().unwrap().to_string(), "container:web");
/// assert!("blue".parse::<Attach>().is_err());
/// ```
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Attach {
    /// Of `ip netns` (ip-netns(8)): a file in /run/netns.
    Netns(String),
    /// A file that is a network namespace.
    Path(String),
    /// The namespace of a process.
    Pid(u32),
    /// Of a container of Docker or Podman, by its name or ID.
    Container(String),
}

/// A text is not the name of a network namespace.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ParseAttachError(String);

/// A file or directory of the machine that programs of a host see elsewhere: `SOURCE:TARGET[:ro]`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Bind {
    /// On the machine; relative to the description.
    pub source: String,
    /// The absolute path in the host.
    pub target: String,
    /// Whether the programs may not change it.
    pub is_read_only: bool,
}

/// A text is not a [`Bind`].
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ParseBindError(String);

impl HostOrigin {
    /// Returns its key in a spec; `None` for a new namespace.
    pub fn key(&self) -> Option<&'static str> {
        match self {
            HostOrigin::New => None,
            HostOrigin::Attached(_) => Some("attach"),
            HostOrigin::Image(_) => Some("image"),
            HostOrigin::RootFs(_) => Some("rootfs"),
        }
    }

    /// Returns whether the lab starts a container for the host.
    pub fn is_container(&self) -> bool {
        matches!(self, HostOrigin::Image(_) | HostOrigin::RootFs(_))
    }
}

impl HostSettings {
    /// Returns the keys that are given, in their order in a spec.
    pub fn keys(&self) -> Vec<&'static str> {
        let HostSettings { origin, command, env, binds, private, pid_namespace } = self;
        let given = [
            ("command", !command.is_empty()),
            ("env", !env.is_empty()),
            ("binds", !binds.is_empty()),
            ("private", !private.is_empty()),
            ("pid_namespace", *pid_namespace),
        ];
        let given = given.into_iter().filter_map(|(key, is_given)| is_given.then_some(key));
        origin.key().into_iter().chain(given).collect()
    }

    /// Makes relative paths of the machine relative to `directory` instead.
    pub fn below(&mut self, directory: &Path) {
        let place = |path: &mut String| {
            // What is absolute stays as it is.
            if let Ok(joined) = directory.join(&*path).into_os_string().into_string() {
                *path = joined;
            }
        };
        if let HostOrigin::RootFs(path) = &mut self.origin {
            place(path);
        }
        self.binds.iter_mut().for_each(|bind| place(&mut bind.source));
    }
}

impl FromStr for Attach {
    type Err = ParseAttachError;

    fn from_str(text: &str) -> Result<Attach, ParseAttachError> {
        let wrong = || ParseAttachError(text.to_owned());
        let (kind, name) = text.split_once(':').ok_or_else(wrong)?;
        let plain = |c: char| c.is_ascii_alphanumeric() || "_.-".contains(c);
        match kind {
            "netns" if name.starts_with('/') => Ok(Attach::Path(name.to_owned())),
            "netns" if is_file_name(name) => Ok(Attach::Netns(name.to_owned())),
            "pid" => match name.parse() {
                Ok(pid @ 1..=0x7fff_ffff) => Ok(Attach::Pid(pid)),
                _ => Err(wrong()),
            },
            "container" if !name.is_empty() && !name.starts_with('-') && name.chars().all(plain) => {
                Ok(Attach::Container(name.to_owned()))
            }
            _ => Err(wrong()),
        }
    }
}

fn is_file_name(name: &str) -> bool {
    !matches!(name, "" | "." | "..") && !name.contains(['/', '\0'])
}

impl fmt::Display for Attach {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Attach::Netns(name) | Attach::Path(name) => write!(f, "netns:{name}"),
            Attach::Pid(pid) => write!(f, "pid:{pid}"),
            Attach::Container(name) => write!(f, "container:{name}"),
        }
    }
}

impl fmt::Display for ParseAttachError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "'{}' is not a network namespace", self.0)
    }
}

impl std::error::Error for ParseAttachError {}

impl FromStr for Bind {
    type Err = ParseBindError;

    fn from_str(text: &str) -> Result<Bind, ParseBindError> {
        let mut parts = text.split(':');
        let (source, target, mode) = (parts.next(), parts.next(), parts.next());
        let is_read_only = match mode {
            None | Some("rw") => false,
            Some("ro") => true,
            Some(_) => return Err(ParseBindError(text.to_owned())),
        };
        match (source, target, parts.next()) {
            (Some(source), Some(target), None) if !source.is_empty() && is_target(target) => {
                Ok(Bind { source: source.to_owned(), target: target.to_owned(), is_read_only })
            }
            _ => Err(ParseBindError(text.to_owned())),
        }
    }
}

/// Whether a host can have its own directory or file at this path.
fn is_target(path: &str) -> bool {
    let mut parts = Path::new(path).components();
    parts.next() == Some(Component::RootDir)
        && path.len() > 1
        && parts.all(|part| matches!(part, Component::Normal(_)))
        && !path.contains('\0')
}

impl fmt::Display for Bind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mode = if self.is_read_only { ":ro" } else { "" };
        write!(f, "{}:{}{mode}", self.source, self.target)
    }
}

impl fmt::Display for ParseBindError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "'{}' does not place a path of this machine in a host", self.0)
    }
}

impl std::error::Error for ParseBindError {}

/// Reads the keys of a host about its programs.
pub(crate) fn read(fields: &mut Fields, remarks: &mut Remarks) -> HostSettings {
    HostSettings {
        origin: origin(fields, remarks),
        command: fields.get("command").map(|field| command(&field, remarks)).unwrap_or_default(),
        env: fields.get("env").map(|field| env(&field, remarks)).unwrap_or_default(),
        binds: fields.get("binds").map(|field| binds(&field, remarks)).unwrap_or_default(),
        private: fields.get("private").map(|field| private(&field, remarks)).unwrap_or_default(),
        pid_namespace: fields.get("pid_namespace").and_then(|field| field.switch(remarks)).unwrap_or(false),
    }
}

fn origin(fields: &mut Fields, remarks: &mut Remarks) -> HostOrigin {
    let given: Vec<Field> =
        ["attach", "image", "rootfs"].into_iter().filter_map(|key| fields.get(key)).collect();
    if let [first, second, ..] = &given[..] {
        let what = format!("{} and {} are both given", first.key, second.key);
        remarks.mistake(second.at, what, "write one of them");
    }
    let Some(field) = given.first() else { return HostOrigin::New };
    let read = match &*field.key {
        "attach" => field.text("netns:blue", remarks).and_then(|text| match text.parse() {
            Ok(attach) => Some(HostOrigin::Attached(attach)),
            Err(error) => {
                let instead = "write \"netns:NAME\", \"netns:/path\", \"pid:123\" or \"container:NAME\"";
                remarks.mistake(field.at, format!("{error}"), instead);
                None
            }
        }),
        "image" => given_text(field, "docker.io/library/debian", remarks).map(HostOrigin::Image),
        _ => given_text(field, "rootfs", remarks).map(HostOrigin::RootFs),
    };
    read.unwrap_or_default()
}

/// Reads a text that is not empty.
fn given_text(field: &Field, example: &str, remarks: &mut Remarks) -> Option<String> {
    let text = field.text(example, remarks)?;
    if text.is_empty() || text.starts_with('-') || text.contains('\0') {
        let what = format!("{} = '{}' names nothing", field.key, text.escape_debug());
        remarks.mistake(field.at, what, format!("write {} = \"{example}\"", field.key));
        return None;
    }
    Some(text.to_owned())
}

fn command(field: &Field, remarks: &mut Remarks) -> Vec<String> {
    let words: Vec<String> = match field.elements() {
        Some(_) => {
            let texts = field.texts("nginx", remarks);
            texts.into_iter().map(|(_, text)| text.to_owned()).collect()
        }
        None => match field.text("nginx", remarks) {
            Some(line) => ["sh", "-c", line].map(str::to_owned).to_vec(),
            None => return Vec::new(),
        },
    };
    if words.first().is_none_or(String::is_empty) || words.iter().any(|word| word.contains('\0')) {
        let what = format!("{} names no program", field.key);
        remarks.mistake(field.at, what, format!("write {} = [\"PROGRAM\", \"ARGUMENT\"]", field.key));
    }
    words
}

fn env(field: &Field, remarks: &mut Remarks) -> BTreeMap<String, String> {
    let Some(mut table) = field.table("env", "{ NAME = \"value\" }", remarks) else {
        return BTreeMap::new();
    };
    let mut variables = BTreeMap::new();
    for (at, value) in table.all() {
        if value.key.is_empty() || value.key.contains(['=', '\0']) {
            let what = format!("'{}' cannot be a variable", value.key.escape_debug());
            remarks.mistake(at, what, "write env = { NAME = \"value\" }");
        }
        if let Some(text) = value.text("value", remarks) {
            variables.insert(value.key.clone(), text.to_owned());
        }
    }
    variables
}

fn binds(field: &Field, remarks: &mut Remarks) -> Vec<Bind> {
    let mut binds = Vec::new();
    for (at, text) in field.texts("./conf:/etc/app", remarks) {
        match text.parse::<Bind>() {
            Ok(bind) => binds.push(bind),
            Err(error) => {
                let instead = "write \"SOURCE:TARGET\" or \"SOURCE:TARGET:ro\", the target from \"/\"";
                remarks.mistake(at, error.to_string(), instead);
            }
        }
    }
    binds
}

fn private(field: &Field, remarks: &mut Remarks) -> Vec<String> {
    let mut directories = Vec::new();
    for (at, text) in field.texts("/var/run", remarks) {
        if is_target(text) {
            directories.push(text.to_owned());
        } else {
            let what = format!("'{}' is not a directory that a host can have", text.escape_debug());
            remarks.mistake(at, what, "write its path from \"/\", for example \"/var/run\"");
        }
    }
    directories
}

/// Writes the keys that are given into the table of a host.
pub(crate) fn write(settings: &HostSettings, table: &mut Map<String, Value>) {
    let HostSettings { origin, command, env, binds, private, pid_namespace } = settings;
    let mut put = |key: &str, value: Value| _ = table.insert(key.to_owned(), value);
    match origin {
        HostOrigin::New => {}
        HostOrigin::Attached(attach) => put("attach", json!(attach.to_string())),
        HostOrigin::Image(image) => put("image", json!(image)),
        HostOrigin::RootFs(directory) => put("rootfs", json!(directory)),
    }
    if !command.is_empty() {
        put("command", json!(command));
    }
    if !env.is_empty() {
        put("env", json!(env));
    }
    if !binds.is_empty() {
        put("binds", binds.iter().map(|bind| json!(bind.to_string())).collect());
    }
    if !private.is_empty() {
        put("private", json!(private));
    }
    if *pid_namespace {
        put("pid_namespace", json!(true));
    }
}

/// The properties of the table of a host about its programs.
pub(crate) fn properties() -> Map<String, Value> {
    let text = || json!({ "type": "string" });
    let target = || json!({ "type": "string", "pattern": "^/." });
    schema_parts::properties([
        (
            "attach",
            "A network namespace that exists: netns:NAME, netns:/path, pid:NUMBER or container:NAME.",
            json!({ "type": "string", "pattern": "^(netns|pid|container):." }),
        ),
        ("image", "An image of Podman: the host is a container that the lab starts.", text()),
        ("rootfs", "A directory of files: the host is a container that sees these, unchanged.", text()),
        (
            "command",
            "The main program of a container: its words, or a text for sh -c.",
            schema_parts::one_or_list(text()),
        ),
        (
            "env",
            "Variables of its programs.",
            json!({ "type": "object", "additionalProperties": { "type": "string" } }),
        ),
        (
            "binds",
            "Paths of this machine that its programs see elsewhere: SOURCE:TARGET or SOURCE:TARGET:ro.",
            schema_parts::one_or_list(json!({ "type": "string", "pattern": "^[^:]+:/.+" })),
        ),
        (
            "private",
            "Directories of its own, empty when the lab comes up.",
            schema_parts::one_or_list(target()),
        ),
        (
            "pid_namespace",
            "Whether its programs see only processes of this host.",
            json!({ "type": "boolean" }),
        ),
    ])
}
