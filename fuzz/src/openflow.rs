//! OpenFlow: bytes that claim to be messages.

use fastpath_openflow::message::{Codec, FlowFormat, Message, Nicira, PacketInFormat, frame_len};
use fastpath_switch::Version;

/// Whatever comes is a message or a refusal with its numbers; what is read can be written and read
/// again.
pub fn openflow(bytes: &[u8]) {
    let version = bytes.first().and_then(|number| Version::from_number(*number));
    let mut codec = Codec::new(version.unwrap_or_default());
    let mut rest = bytes;
    while let Ok(Some(len)) = frame_len(rest) {
        let Some((message, after)) = rest.split_at_checked(len) else { break };
        match codec.decode(message) {
            // Since OpenFlow 1.4, properties may be left out that are always written.
            Ok(_) if codec.version() >= Version::V14 && len > LEN_MAX => {}
            Ok((xid, read)) => {
                let mut written = Vec::new();
                writer_of(codec, message).encode(xid, &read, &mut written);
                assert_eq!(codec.decode(&written), Ok((xid, read)));
            }
            Err(fault) => assert!(fault.numbers().0 <= 17 && codec.error(&fault, message).data.len() >= len),
        }
        rest = after;
    }
}

/// Messages with properties that are written again: with them they fit 64 KiB.
const LEN_MAX: usize = 16 << 10;
/// OFPT_VENDOR.
const VENDOR: u8 = 4;

/// Returns the codec that writes what `codec` has read of `message` without a loss: an `ofp_match`
/// cannot say what messages of Nicira do.
fn writer_of(codec: Codec, message: &[u8]) -> Codec {
    let mut writer = codec;
    if message.get(1) == Some(&VENDOR) {
        writer.note(&Message::Nicira(Nicira::SetFlowFormat(FlowFormat::Nxm)));
        writer.note(&Message::Nicira(Nicira::SetPacketInFormat(PacketInFormat::Nxt)));
    }
    writer
}
