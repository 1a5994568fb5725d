//! Routers that are namespaces of the Linux kernel: `[router.r] kind = "kernel"`.

use crate::fields::Fields;
use crate::loss::word;
use crate::mistake::Remarks;
use crate::tree::Tree;
use serde_json::{Value, json};

/// A router that a lab makes a network namespace: the kernel forwards, and programs run in it as in
/// a host. Without namespaces (`replay`, `run`) it is a router inside the engine.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct KernelRouter {}

/// The word for a kernel router: `kind = "kernel"` of a router, and the kind of a node of the
/// canonical form.
pub(crate) const KERNEL: &str = "kernel";

/// Reads the keys of a router that say whether the kernel forwards.
pub(crate) fn read(fields: &mut Fields, remarks: &mut Remarks) -> Option<KernelRouter> {
    let field = fields.get("kind")?;
    // This is the kind of a node of the canonical form.
    let is_canonical = *field.value == Tree::Text("router".into());
    let kind =
        if is_canonical { None } else { word(&field, "a kind of router", &[KERNEL, "engine"], remarks) };
    (kind == Some(0)).then(KernelRouter::default)
}

/// The properties of the JSON Schema.
pub(crate) fn properties() -> [(&'static str, &'static str, Value); 1] {
    [(
        "kind",
        "What forwards: the engine, or the kernel in a namespace of its own, in which programs run.",
        json!({ "enum": [KERNEL, "engine"] }),
    )]
}
