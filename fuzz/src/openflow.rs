//! OpenFlow: bytes that claim to be messages.

use fastpath_openflow::message::{decode, frame_len};

/// Whatever comes is a message or a refusal with its numbers; what is read can be written and read
/// again.
pub fn openflow(bytes: &[u8]) {
    let mut rest = bytes;
    while let Ok(Some(len)) = frame_len(rest) {
        let Some((message, after)) = rest.split_at_checked(len) else { break };
        match decode(message) {
            Ok((xid, read)) => {
                let mut written = Vec::new();
                read.encode(xid, &mut written);
                assert_eq!(decode(&written), Ok((xid, read)));
            }
            Err(fault) => assert!(fault.numbers().0 <= 13),
        }
        rest = after;
    }
}
