//! How controllers reach an OpenFlow node of a network that runs in real time.
//!
//! ```toml
//! [openflow.s]
//! controller = "tcp:127.0.0.1:6653"   # to dial: one, or a list; "tls:…" needs the files below
//! listen     = "ptcp:6634"            # where controllers may connect: one, or a list
//! dpid       = "0x1"                  # absent: the node's number among the OpenFlow nodes
//! fail_mode  = "secure"               # or "standalone": learn addresses without a controller
//! tls        = { private_key = "s.key", certificate = "s.crt", ca_certificate = "ca.crt" }
//! ```
//!
//! A run in virtual time has no controllers.

use crate::fields::{Field, Fields};
use crate::mistake::Remarks;
use crate::schema_parts;
use fastpath_ofctl::controller::{Listen, Security, Target};
use serde_json::{Map, Value, json};
use std::str::FromStr;

/// The most controllers, and the most addresses to listen on, of a node.
const ADDRESSES_MAX: usize = 16;

/// The controllers of an OpenFlow node. The default: none.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Controllers {
    /// Controllers that the node dials.
    pub dial: Vec<Target>,
    /// Addresses on which controllers may connect.
    pub listen: Vec<Listen>,
    /// The datapath id; `None`: the number of the node among the OpenFlow nodes, from 1.
    pub dpid: Option<u64>,
    /// What the node does without a controller.
    pub fail_mode: Option<FailMode>,
    /// Keys and certificates.
    pub tls: Option<ControllerTls>,
}

/// What an OpenFlow node does while no controller that it dials can be reached.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FailMode {
    /// Forwards by the existing flows.
    Secure,
    /// Forwards by learned addresses.
    Standalone,
}

/// The files with which a node authenticates itself and its controllers.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ControllerTls {
    /// The private key (PEM).
    pub private_key: String,
    /// The certificate (PEM).
    pub certificate: String,
    /// The certificate (PEM) of the authority that signs the certificates of controllers.
    pub ca_certificate: String,
}

impl Controllers {
    /// Returns whether controllers can reach the node, or would if there were any.
    pub fn is_served(&self) -> bool {
        !self.dial.is_empty() || !self.listen.is_empty() || self.fail_mode == Some(FailMode::Standalone)
    }
}

pub(crate) fn read(fields: &mut Fields, remarks: &mut Remarks) -> Controllers {
    let dial = fields.get("controller").map(|field| addresses(&field, "tcp:127.0.0.1:6653", remarks));
    let listen = fields.get("listen").map(|field| addresses(&field, "ptcp:6634", remarks));
    let dpid = fields.get("dpid").and_then(|field| dpid(&field, remarks));
    let fail_mode = fields.get("fail_mode").and_then(|field| {
        let modes = [FailMode::Secure, FailMode::Standalone];
        let place = field.word("a fail mode", &modes.map(FailMode::word), remarks)?;
        Some(modes[place])
    });
    let given = fields.get("tls");
    let tls = given.as_ref().and_then(|field| tls(field, remarks));
    let controllers = Controllers {
        dial: dial.unwrap_or_default(),
        listen: listen.unwrap_or_default(),
        dpid,
        fail_mode,
        tls,
    };
    let needs_tls = controllers.dial.iter().map(|target| target.security);
    let mut needs_tls = needs_tls.chain(controllers.listen.iter().map(|listen| listen.security));
    if needs_tls.any(|security| security == Security::Tls) && given.is_none() {
        let instead =
            "write tls = { private_key = \"s.key\", certificate = \"s.crt\", ca_certificate = \"ca.crt\" }";
        remarks.mistake(fields.at, "an address with tls needs a key and certificates", instead);
    }
    controllers
}

fn addresses<T: FromStr<Err: ToString>>(field: &Field, example: &str, remarks: &mut Remarks) -> Vec<T> {
    let mut found = Vec::new();
    for (at, text) in field.texts(example, remarks) {
        match text.parse::<T>() {
            Ok(address) => found.push(address),
            Err(error) => {
                let error = error.to_string();
                let (what, instead) = error.split_once("; ").unwrap_or((&error, "write another address"));
                remarks.mistake(at, what, instead);
            }
        }
    }
    if found.len() > ADDRESSES_MAX {
        let what = format!("{} addresses; {ADDRESSES_MAX} are possible", found.len());
        remarks.mistake(field.at, what, "remove some");
    }
    found
}

fn dpid(field: &Field, remarks: &mut Remarks) -> Option<u64> {
    if !matches!(field.value, crate::tree::Tree::Text(_)) {
        return field.whole(0..=u64::MAX, remarks);
    }
    let text = field.text("0x1", remarks)?;
    let digits = text.strip_prefix("0x").unwrap_or(text).replace(':', "");
    let dpid = u64::from_str_radix(&digits, 16).ok();
    if dpid.is_none() {
        let what = format!("'{text}' is not a datapath id");
        remarks.mistake(field.at, what, "write up to 16 hexadecimal digits, for example \"0x1\"");
    }
    dpid
}

fn tls(field: &Field, remarks: &mut Remarks) -> Option<ControllerTls> {
    const EXAMPLE: &str = "{ private_key = \"s.key\", certificate = \"s.crt\", ca_certificate = \"ca.crt\" }";
    let mut table = field.table("tls", EXAMPLE, remarks)?;
    let [private_key, certificate, ca_certificate] =
        ["private_key", "certificate", "ca_certificate"].map(|key| {
            let file = table.get(key);
            if file.is_none() {
                remarks.mistake(field.at, format!("tls has no {key}"), format!("write {EXAMPLE}"));
            }
            file?.text("switch.pem", remarks).map(str::to_owned)
        });
    table.finish(remarks);
    Some(ControllerTls {
        private_key: private_key?,
        certificate: certificate?,
        ca_certificate: ca_certificate?,
    })
}

impl FailMode {
    fn word(self) -> &'static str {
        match self {
            FailMode::Secure => "secure",
            FailMode::Standalone => "standalone",
        }
    }
}

/// Writes what is given into the table of a node.
pub(crate) fn write(controllers: &Controllers, table: &mut Map<String, Value>) {
    let Controllers { dial, listen, dpid, fail_mode, tls } = controllers;
    let mut put = |key: &str, value: Value| _ = table.insert(key.to_owned(), value);
    if !dial.is_empty() {
        put("controller", dial.iter().map(|target| json!(target.to_string())).collect());
    }
    if !listen.is_empty() {
        put("listen", listen.iter().map(|listen| json!(listen.to_string())).collect());
    }
    if let Some(dpid) = dpid {
        put("dpid", json!(format!("{dpid:#x}")));
    }
    if let Some(mode) = fail_mode {
        put("fail_mode", json!(mode.word()));
    }
    if let Some(ControllerTls { private_key, certificate, ca_certificate }) = tls {
        let files = json!({
            "private_key": private_key, "certificate": certificate, "ca_certificate": ca_certificate
        });
        put("tls", files);
    }
}

/// The schema of the keys of this file.
pub(crate) fn properties() -> Map<String, Value> {
    let text = || json!({ "type": "string" });
    let addresses = || schema_parts::one_or_list(text());
    let files = schema_parts::properties([
        ("private_key", "The private key of the switch (PEM).", text()),
        ("certificate", "Its certificate (PEM).", text()),
        ("ca_certificate", "The certificate of the authority that signs those of controllers (PEM).", text()),
    ]);
    let dpid = json!({ "anyOf": [text(), { "type": "integer", "minimum": 0 }] });
    schema_parts::properties([
        ("controller", "Controllers to dial: tcp:ADDRESS:PORT or tls:ADDRESS:PORT.", addresses()),
        ("listen", "Where controllers may connect: ptcp:PORT:ADDRESS or ptls:PORT:ADDRESS.", addresses()),
        ("dpid", "The datapath id, in hexadecimal digits.", dpid),
        (
            "fail_mode",
            "What the switch does without a controller.",
            json!({ "enum": ["secure", "standalone"] }),
        ),
        (
            "tls",
            "Keys and certificates.",
            schema_parts::table(files, &["private_key", "certificate", "ca_certificate"]),
        ),
    ])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Description, NodeKind, check, describe};

    fn spec(keys: &str) -> String {
        format!(
            "[host.a]\n[host.b]\n[openflow.s]\n{keys}\n[[link]]\nbetween = ['a', 's']\n[[link]]\nbetween = ['s', 'b']\n"
        )
    }

    fn controllers(keys: &str) -> Result<Controllers, Vec<String>> {
        let checked = check(&spec(keys), &|_: &str| Err("no files".to_owned()));
        let (spec, _) =
            checked.into_result().map_err(|all| all.iter().map(ToString::to_string).collect::<Vec<_>>())?;
        let kinds = spec.topology.nodes.iter().find_map(|node| match &node.kind {
            NodeKind::OpenFlow { controllers, .. } => Some((**controllers).clone()),
            _ => None,
        });
        // What was read is written and read again.
        let text = describe(&spec.topology).to_json().to_string();
        let again = Description::from_json(&text, crate::NO_FILES);
        let again = again.unwrap_or_else(|mistakes| panic!("{mistakes:?}: {text}"));
        let kept = again.nodes.iter().find(|node| node.name == "s").unwrap();
        assert_eq!(Some(&kept.controllers), kinds.as_ref());
        Ok(kinds.unwrap())
    }

    #[test]
    fn controllers_are_one_address_or_a_list_and_the_datapath_id_is_hexadecimal() {
        let one = controllers("controller = 'tcp:127.0.0.1:6653'\ndpid = '0x2a'\nfail_mode = 'standalone'")
            .unwrap();
        assert_eq!(one.dial[0].to_string(), "tcp:127.0.0.1:6653");
        assert_eq!((one.dpid, one.fail_mode), (Some(42), Some(FailMode::Standalone)));
        let many = controllers("controller = ['tcp:c1', 'tcp:c2:6633']\nlisten = ['ptcp:6634']").unwrap();
        assert_eq!((many.dial.len(), many.listen.len(), many.dpid), (2, 1, None));
        assert!(many.is_served() && !controllers("").unwrap().is_served());
        let files = "tls = { private_key = 'k', certificate = 'c', ca_certificate = 'a' }";
        assert!(controllers(&format!("controller = 'tls:c1'\n{files}")).unwrap().tls.is_some());
    }

    #[test]
    fn mistakes_name_the_place_and_what_to_write() {
        for (keys, words) in [
            ("controller = '127.0.0.1:6653'", ["4:14", "tcp:ADDRESS:PORT"]),
            ("listen = 'tcp:1'", ["4:10", "ptcp:PORT:ADDRESS"]),
            ("controller = 7", ["4:14", "tcp:127.0.0.1:6653"]),
            ("dpid = 'one'", ["4:8", "hexadecimal"]),
            ("fail_mode = 'safe'", ["4:13", "secure"]),
            ("controller = 'tls:c1'", ["needs a key", "tls = {"]),
            ("tls = { private_key = 'k' }", ["4:7", "no certificate"]),
            ("controler = 'tcp:c1'", ["4:1", "controller"]),
        ] {
            let mistakes = controllers(keys).unwrap_err().join("\n");
            assert!(words.iter().all(|word| mistakes.contains(word)), "{keys}: {mistakes}");
        }
        let host = "[host.a]\ncontroller = 'tcp:c1'\n[host.b]\n[[link]]\nbetween = ['a', 'b']\n";
        assert!(check(host, &|_: &str| Err("no files".to_owned())).into_result().is_err());
    }
}
