//! What the running kernel has of the facilities that could carry packets in place of the engine.
//! Nothing needs them.

use super::try_path;
use crate::kernel::namespace::Namespace;
use crate::kernel::netlink::Netlink;
use netlink_packet_core::{NLM_F_CREATE, NLM_F_EXCL};
use netlink_packet_route::RouteNetlinkMessage;
use netlink_packet_route::tc::{TcAttribute, TcHandle, TcMessage};
use nix::net::if_::if_nametoindex;
use serde::{Deserialize, Serialize};
use std::fs;

/// What a kernel has for the packets of labs.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct KernelFacilities {
    /// BPF programs at the ingress of interfaces: links and switches that hold no packet run there.
    pub programs: bool,
    /// The queue discipline fq, which sends a packet at the time that a program gave it (earliest
    /// departure time): enough for rates and delays without a limit of the queue.
    pub fq: bool,
    /// Queue disciplines as BPF programs.
    pub bpf_qdisc: bool,
}

impl KernelFacilities {
    /// Tries them in a network namespace of its own; `None` without the right to.
    pub fn of_this_machine() -> Option<KernelFacilities> {
        let namespace = Namespace::new().ok()?;
        let programs = match try_path((1, 1), false, false) {
            Err(error) if error.is_privilege() => return None,
            tried => tried.is_ok(),
        };
        let fq = namespace.within(has_fq).ok()?;
        Some(KernelFacilities { programs, fq, bpf_qdisc: has_bpf_qdisc() })
    }
}

/// Whether the loopback interface of the thread's namespace can have fq.
fn has_fq() -> bool {
    let tried = || -> std::io::Result<()> {
        let mut message = TcMessage::default();
        message.header.index = if_nametoindex("lo")? as i32;
        message.header.handle = TcHandle { major: 1, minor: 0 };
        message.header.parent = TcHandle::ROOT;
        message.attributes.push(TcAttribute::Kind("fq".to_owned()));
        Netlink::open()?.request(RouteNetlinkMessage::NewQueueDiscipline(message), NLM_F_CREATE | NLM_F_EXCL)
    };
    tried().is_ok()
}

/// Whether the kernel's descriptions of types have the operations of such a discipline.
fn has_bpf_qdisc() -> bool {
    const NAME: &[u8] = b"bpf_struct_ops_Qdisc_ops";
    let types = fs::read("/sys/kernel/btf/vmlinux").unwrap_or_default();
    types.windows(NAME.len()).any(|part| part == NAME)
}
