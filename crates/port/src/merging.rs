//! Receive offloads that merge packets: switched off while a port is open, and restored.

use fastpath_sys::interface;
use std::os::fd::BorrowedFd;

/// The settings of the interface before the port was opened.
pub(super) struct Merging {
    gro: Option<u32>,
    flags: Option<u32>,
}

impl Merging {
    /// Switches the offloads off. A device that refuses keeps its settings, and its super-packets
    /// are cut.
    pub(super) fn switch_off(socket: BorrowedFd<'_>, name: &str) -> Merging {
        let gro = interface::gro(socket, name).ok().filter(|&on| on != 0);
        let flags = interface::flags(socket, name).ok().filter(|&flags| flags & interface::FLAG_LRO != 0);
        Merging {
            gro: gro.filter(|_| interface::set_gro(socket, name, 0).is_ok()),
            flags: flags
                .filter(|&flags| interface::set_flags(socket, name, flags & !interface::FLAG_LRO).is_ok()),
        }
    }

    /// Undoes [`Merging::switch_off`]. It fails only if the interface was removed; then there is
    /// nothing to undo.
    pub(super) fn restore(&self, socket: BorrowedFd<'_>, name: &str) {
        if let Some(gro) = self.gro {
            let _ = interface::set_gro(socket, name, gro);
        }
        if let Some(flags) = self.flags {
            let _ = interface::set_flags(socket, name, flags);
        }
    }
}
