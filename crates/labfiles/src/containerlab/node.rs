//! The nodes of a topology file.

use super::{NodeUse, Reader};
use crate::fields::{map, pairs, text, texts};
use crate::words;
use crate::yaml::Yaml;
use fastpath_spec::{Attach, Bind, HostOrigin, HostSettings, NodeDescription, NodeRole};
use fastpath_text::mistake::Code;
use fastpath_text::mistake::{Remarks, choice};
use fastpath_text::tree::{Placed, Tree};
use std::collections::BTreeMap;

/// Keys of a node that have an effect here.
const KEYS: [&str; 18] = [
    "kind",
    "image",
    "group",
    "exec",
    "binds",
    "env",
    "env-files",
    "entrypoint",
    "cmd",
    "sysctls",
    "network-mode",
    "startup-delay",
    "stages",
    "tmpfs",
    "hostname",
    "labels",
    "position",
    "type",
];

/// Keys of a node that have no effect here, with the reason.
pub(super) const IGNORED: [(&str, &str); 36] = [
    ("aliases", "there is no management network"),
    ("auto-remove", ""),
    ("cap-add", ""),
    ("certificate", "a lab has no certificates"),
    ("cgroup-parent", ""),
    ("cgroupns-mode", ""),
    ("components", ""),
    ("config", ""),
    ("cpu", ""),
    ("cpu-set", ""),
    ("credentials", ""),
    ("devices", ""),
    ("dns", "there is no management network"),
    ("enforce-startup-config", ""),
    ("extras", ""),
    ("healthcheck", ""),
    ("image-pull-policy", ""),
    ("license", ""),
    ("link-apply-mode", ""),
    ("memory", ""),
    ("mgmt-ipv4", "there is no management network"),
    ("mgmt-ipv6", "there is no management network"),
    ("mgmt_ipv4", "there is no management network"),
    ("mgmt_ipv6", "there is no management network"),
    ("pid-mode", ""),
    ("ports", "there is no management network"),
    ("privileged", ""),
    ("publish", "there is no management network"),
    ("restart-policy", ""),
    ("runtime", ""),
    ("security-opts", ""),
    ("shm-size", ""),
    ("startup-config", "it is for images of vendors"),
    ("suppress-startup-config", ""),
    ("user", "programs run as the user of the lab"),
    ("volumes", ""),
];

/// Keys of a host that have no effect here, and do for other kinds of nodes.
pub(super) const IGNORED_OF_HOSTS: [(&str, &str); 2] =
    [("hostname", "a host has the name of its node"), ("type", "it is for images of vendors")];

/// Keys of a switch that say something of it.
const OF_SWITCHES: [&str; 5] = ["kind", "group", "labels", "position", "network-mode"];

/// What a mount may have, besides being read-only.
const BIND_MODES: [&str; 14] = [
    "ro",
    "rw",
    "z",
    "Z",
    "cached",
    "consistent",
    "delegated",
    "nocopy",
    "private",
    "rprivate",
    "rshared",
    "rslave",
    "shared",
    "slave",
];

/// The stages of a node, in their order.
const STAGES: [&str; 5] = ["create", "create-links", "configure", "healthy", "exit"];

/// When a command of a stage runs.
const PHASES: [&str; 2] = ["on-enter", "on-exit"];

/// Reports the keys of a map of a node that containerlab does not know.
pub(super) fn check_keys(what: &str, yaml: &Yaml, remarks: &mut Remarks) {
    let mut fields = map(what, yaml, remarks);
    fields.know(KEYS.into_iter().chain(IGNORED.map(|(key, _)| key)));
    fields.finish(remarks);
}

/// The maps in which the values of a node stand: its own, its group's, its kind's, the defaults.
pub(super) struct Layers<'y> {
    layers: Vec<&'y Yaml<'y>>,
    kind: Option<(&'y str, usize)>,
    /// The group that it names.
    pub(super) group: Option<(&'y str, usize)>,
}

impl<'y> Layers<'y> {
    /// `shared`: the maps of groups and of kinds, and the defaults.
    pub(super) fn of(node: &'y Yaml<'y>, shared: [Option<&'y Yaml<'y>>; 3]) -> Layers<'y> {
        let [groups, kinds, defaults] = shared;
        let own = |yaml: Option<&'y Yaml<'y>>, key| yaml?.get(key).filter(|yaml| !yaml.is_null());
        let named = |of: Option<&'y Yaml<'y>>, name: Option<&'y Yaml<'y>>| own(of, name?.scalar()?);
        let default_group = own(defaults, "group");
        let kind = own(Some(node), "kind")
            .or_else(|| own(named(groups, own(Some(node), "group")), "kind"))
            .or_else(|| own(named(groups, default_group), "kind"))
            .or_else(|| own(defaults, "kind"));
        let of_kind = named(kinds, kind);
        let group = own(Some(node), "group").or_else(|| own(of_kind, "group")).or(default_group);
        let layers = [Some(node), named(groups, group), of_kind, defaults].into_iter().flatten().collect();
        let [kind, group] = [kind, group].map(|yaml| Some((yaml?.scalar()?, yaml?.at)));
        Layers { layers, kind, group }
    }

    /// The name of its kind.
    pub(super) fn kind(&self) -> Option<&'y str> {
        self.kind.map(|(kind, _)| kind)
    }

    /// The first value of a key.
    fn value(&self, key: &str) -> Option<&'y Yaml<'y>> {
        self.layers.iter().find_map(|layer| layer.get(key).filter(|yaml| !yaml.is_null()))
    }

    fn text(&self, key: &str, remarks: &mut Remarks) -> Option<(usize, &'y str)> {
        let yaml = self.value(key)?;
        Some((yaml.at, text(yaml, key, remarks)?))
    }

    /// The values of a key, from the defaults to the node's own.
    fn all(&self, key: &str) -> impl Iterator<Item = &'y Yaml<'y>> {
        self.layers.iter().rev().filter_map(move |layer| layer.get(key))
    }

    /// The position of a node in the labels that containerlab's editors write.
    pub(super) fn position(&self, remarks: &mut Remarks) -> Option<[f64; 2]> {
        let labels = self.pairs("labels", remarks);
        let number = |key: &str| labels.get(key)?.1.parse().ok().filter(|x: &f64| x.is_finite());
        Some([number("graph-posX")?, number("graph-posY")?])
    }

    /// The texts of the lists under a key, each once.
    fn texts(&self, key: &str, remarks: &mut Remarks) -> Vec<(usize, &'y str)> {
        let mut all: Vec<(usize, &str)> = Vec::new();
        for (at, text) in self.all(key).flat_map(|yaml| texts(yaml, key, remarks)) {
            if all.iter().all(|(_, known)| *known != text) {
                all.push((at, text));
            }
        }
        all
    }

    /// The texts of the maps under a key.
    fn pairs(&self, key: &str, remarks: &mut Remarks) -> BTreeMap<&'y str, (usize, &'y str)> {
        let all: Vec<_> = self.all(key).flat_map(|yaml| pairs(yaml, key, remarks)).collect();
        all.into_iter().map(|(at, name, value)| (name, (at, value))).collect()
    }
}

impl<'y> Reader<'y, '_> {
    /// Adds a node.
    pub(super) fn node(&mut self, name: &'y str, at: usize, layers: &Layers<'y>, remarks: &mut Remarks) {
        let Some((kind, kind_at)) = layers.kind else {
            self.add_stub(name, at);
            self.roles.insert(name, NodeUse::Stub);
            return remarks.mistake_of_running(
                at,
                format!("node {name} has no kind"),
                "write kind: linux, or kind: bridge",
            );
        };
        for (key, _) in IGNORED {
            if let Some(value) = layers.value(key) {
                self.ignore(key, value.at, name);
            }
        }
        let mode = layers.text("network-mode", remarks);
        let attach = match mode.and_then(|(at, mode)| Some((at, mode, shared_network(mode)?))) {
            Some((at, mode, _)) if kind != "linux" || !self.options.ignore_images => {
                let why = format!("network-mode {mode} shares the network of another");
                let instead = "remove network-mode, or write --images ignore";
                return self.refuse(name, at, &why, instead, remarks);
            }
            shared => shared.map(|(_, _, attach)| attach),
        };
        if let Some((at, mode)) = mode
            && attach.is_none()
            && mode != "none"
        {
            let what = format!("network-mode {} of {name} is not known here", mode.escape_debug());
            remarks.mistake(at, what, "write none, host or container:NAME");
        }
        match kind {
            "linux" => self.host(name, at, layers, attach, remarks),
            "bridge" | "ovs-bridge" => {
                self.ignore_of_switch(name, layers);
                self.built.add_node(NodeDescription::new(NodeRole::Switch, name), at);
                self.roles.insert(name, NodeUse::Switch);
            }
            "ext-container" => {
                let Ok(attach) = format!("container:{name}").parse::<Attach>() else {
                    let what = format!("'{}' is not the name of a container", name.escape_debug());
                    return remarks.mistake(at, what, "write the name of a container of Docker or Podman");
                };
                let host = HostSettings { origin: HostOrigin::Attached(attach), ..HostSettings::default() };
                let exec = self.exec(name, layers, remarks);
                let node = NodeDescription { host, exec, assign: false, ..NodeDescription::host(name) };
                self.built.add_node(node, at);
                self.roles.insert(name, NodeUse::Host);
            }
            "host" => {
                self.refuse(name, kind_at, "kind host is the machine itself", "remove the node", remarks)
            }
            _ => {
                let why =
                    format!("a lab has no kind {} (but linux, bridge, ovs-bridge)", kind.escape_debug());
                self.refuse(name, kind_at, &why, "write kind: linux", remarks);
            }
        }
    }

    /// Adds a host; `attach`: the namespace of another that it shares.
    fn host(
        &mut self,
        name: &'y str,
        at: usize,
        layers: &Layers<'y>,
        attach: Option<Attach>,
        remarks: &mut Remarks,
    ) {
        for (key, _) in IGNORED_OF_HOSTS {
            if let Some(value) = layers.value(key) {
                self.ignore(key, value.at, name);
            }
        }
        let mut host = HostSettings { env: self.env(name, layers, remarks), ..HostSettings::default() };
        let image = layers.text("image", remarks);
        if self.options.ignore_images {
            for key in ["image", "entrypoint", "cmd", "binds"] {
                if let Some(value) = layers.value(key) {
                    self.ignore(key, value.at, name);
                }
            }
        } else if let Some((_, image)) = image {
            host.origin = HostOrigin::Image(image.to_owned());
            for key in ["entrypoint", "cmd"] {
                let Some((at, line)) = layers.text(key, remarks) else { continue };
                match words::split(&self.filled(name, line)) {
                    Some(words) => host.command.extend(words),
                    None => {
                        remarks.mistake(at, format!("{key} has a quote without an end"), "write both quotes")
                    }
                }
            }
            host.binds = self.binds(name, layers, remarks);
        } else {
            let instead =
                "write image: IMAGE, or --images ignore for a namespace with the programs of this machine";
            remarks.mistake_of_running(at, format!("node {name} has no image"), instead);
        }
        let is_shared = attach.is_some();
        if let Some(attach) = attach {
            host.origin = HostOrigin::Attached(attach);
        }
        host.private = private(name, layers, remarks);
        // Docker's containers forward, and containerlab keeps IPv6 on.
        let mut sysctls = BTreeMap::new();
        if !is_shared {
            sysctls.insert("net.ipv4.ip_forward".to_owned(), "1".to_owned());
        }
        for (key, (_, value)) in layers.pairs("sysctls", remarks) {
            sysctls.insert(key.to_owned(), value.to_owned());
        }
        let exec = self.exec(name, layers, remarks);
        let node = NodeDescription { host, exec, sysctls, assign: false, ..NodeDescription::host(name) };
        self.built.add_node(node, at);
        self.roles.insert(name, NodeUse::Host);
    }

    /// Notes what a switch says of itself and what has no effect: it runs no programs.
    fn ignore_of_switch(&mut self, name: &'y str, layers: &Layers<'y>) {
        let Some(Placed { value: Tree::Table(own), .. }) = layers.layers.first() else { return };
        for key in KEYS.into_iter().filter(|key| !OF_SWITCHES.contains(key)) {
            if let Some(value) = own.get(key).filter(|yaml| !yaml.is_null() && yaml.scalar() != Some("")) {
                self.ignore(key, value.at, name);
            }
        }
    }

    /// Returns a text with the variables of containerlab filled in.
    fn filled(&self, node: &str, text: &str) -> String {
        let directory = format!("clab-{}", self.name);
        text.replace("__clabNodeName__", node)
            .replace("__clabLabName__", self.name)
            .replace("__clabNodeDir__", &format!("{directory}/{node}"))
            .replace("__clabDir__", &directory)
    }

    fn env(&self, node: &str, layers: &Layers<'y>, remarks: &mut Remarks) -> BTreeMap<String, String> {
        let mut env = BTreeMap::new();
        for (at, file) in layers.texts("env-files", remarks) {
            match (self.options.files)(&self.filled(node, file)) {
                Ok(text) => env.extend(words::variables(&text)),
                Err(why) => {
                    let instead = "write the path of a file of NAME=VALUE, relative to this file";
                    remarks.mistake_of_running(at, format!("{file}: {why}"), instead);
                }
            }
        }
        let given = layers.pairs("env", remarks).into_iter();
        env.extend(given.map(|(name, (_, value))| (name.to_owned(), self.filled(node, value))));
        env
    }

    /// The binds, of equal targets the last.
    fn binds(&self, node: &str, layers: &Layers<'y>, remarks: &mut Remarks) -> Vec<Bind> {
        let mut binds: Vec<Bind> = Vec::new();
        for (at, text) in layers.texts("binds", remarks) {
            let filled = self.filled(node, text);
            let mut parts = filled.splitn(3, ':');
            let (source, target) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
            let modes: Vec<&str> = parts.next().map(|modes| modes.split(',').collect()).unwrap_or_default();
            if let Some(mode) = modes.iter().find(|mode| !BIND_MODES.contains(mode)) {
                let what = format!("'{}' is not a mode of a bind", mode.escape_debug());
                remarks.mistake(at, what, choice(mode, BIND_MODES));
            }
            let is_read_only = modes.contains(&"ro");
            let plain = format!("{source}:{target}{}", if is_read_only { ":ro" } else { "" });
            match plain.parse::<Bind>() {
                Ok(bind) => {
                    binds.retain(|known| known.target != bind.target);
                    binds.push(bind);
                }
                Err(error) => {
                    remarks.mistake(at, error.to_string(), "write SOURCE:TARGET or SOURCE:TARGET:ro")
                }
            }
        }
        binds
    }

    /// The commands of a node: those of its stages and its own, as lines for a shell.
    fn exec(&mut self, node: &'y str, layers: &Layers<'y>, remarks: &mut Remarks) -> Vec<String> {
        let mut given: Vec<(usize, &str)> = Vec::new();
        let delay = layers.text("startup-delay", remarks);
        if let Some((at, seconds)) = delay {
            if seconds.parse::<u32>().is_err() {
                remarks.mistake(
                    at,
                    format!("startup-delay {seconds} is not a number"),
                    "write a number of seconds",
                );
            } else if !layers.value("image").is_none_or(|_| self.options.ignore_images) {
                remarks.warn(
                    Code::Different,
                    at,
                    format!("{node} starts at once: startup-delay holds for its exec only"),
                );
            }
        }
        let own = layers.texts("exec", remarks);
        let stages: Vec<&Yaml> = layers.all("stages").collect();
        for yaml in &stages {
            let mut fields = map(format!("stages of {node}"), yaml, remarks);
            fields.know(STAGES);
            fields.finish(remarks);
        }
        for stage in STAGES {
            for yaml in stages.iter().filter_map(|stages| stages.get(stage)) {
                self.stage(node, yaml, &mut given, remarks);
            }
            // containerlab runs exec once the node is configured.
            if stage == "create-links" {
                given.extend(&own);
            }
        }
        let mut lines: Vec<String> =
            delay.map(|(_, seconds)| format!("sleep {seconds}")).into_iter().collect();
        for (at, command) in given {
            match words::line(&self.filled(node, command)) {
                Some(line) => lines.push(line),
                None => remarks.mistake(at, "the command has a quote without an end", "write both quotes"),
            }
        }
        lines
    }

    /// The commands of a stage.
    fn stage(
        &self,
        node: &str,
        yaml: &'y Yaml<'y>,
        commands: &mut Vec<(usize, &'y str)>,
        remarks: &mut Remarks,
    ) {
        let mut fields = map("a stage", yaml, remarks);
        if let Some(entry) = fields.get("wait-for") {
            remarks.warn(
                Code::Ignored,
                entry.key_at,
                format!("wait-for of {node} is ignored: all nodes start together"),
            );
        }
        let exec = fields.placed("exec");
        fields.finish(remarks);
        let Some(Placed { value: Tree::Array(exec), .. }) = exec else {
            if let Some(exec) = exec {
                remarks.mistake(exec.at, "exec of a stage is not a list", "write - command: COMMAND");
            }
            return;
        };
        for (yaml, phase) in PHASES.into_iter().flat_map(|phase| exec.iter().map(move |yaml| (yaml, phase))) {
            let mut fields = map("exec of a stage", yaml, remarks);
            let (command, target) =
                (fields.placed("command"), fields.placed("target").and_then(Yaml::scalar));
            let given = fields.placed("phase");
            let word = given.map_or(Some("on-enter"), Yaml::scalar).unwrap_or_default();
            if let Some(yaml) = given.filter(|_| !PHASES.contains(&word)) {
                let what = format!("there is no phase '{}'", word.escape_debug());
                remarks.mistake(yaml.at, what, choice(word, PHASES));
            }
            fields.finish(remarks);
            if word != phase {
                continue;
            }
            match (command, target) {
                (Some(command), None | Some("container")) => {
                    commands.extend(text(command, "command", remarks).map(|text| (command.at, text)));
                }
                (Some(_), Some(target)) if target != "host" => {
                    let what = format!("there is no target '{}'", target.escape_debug());
                    remarks.mistake(yaml.at, what, "write target: container");
                }
                (Some(_), Some(target)) => {
                    let what = format!("a command of {node} is ignored: its target is {target}");
                    remarks.warn(Code::Ignored, yaml.at, what);
                }
                (None, _) => {
                    remarks.mistake(yaml.at, "exec of a stage has no command", "write command: COMMAND")
                }
            }
        }
    }
}

/// The directories of a node's own (`tmpfs`).
fn private(name: &str, layers: &Layers, remarks: &mut Remarks) -> Vec<String> {
    let mut paths = Vec::new();
    for (path, (at, options)) in layers.pairs("tmpfs", remarks) {
        if !options.is_empty() {
            let said = path.escape_debug();
            let what = format!("options of tmpfs {said} of {name} are ignored: it has any size");
            remarks.warn(Code::Ignored, at, what);
        }
        paths.push(path.to_owned());
    }
    paths
}

/// Returns the namespace that a node with this `network-mode` shares; `None` if it has its own.
fn shared_network(mode: &str) -> Option<Attach> {
    match mode {
        "host" => Some(Attach::Path("/proc/self/ns/net".to_owned())),
        _ => Some(Attach::Container(mode.strip_prefix("container:")?.to_owned())),
    }
}
