//! Captures: pcap and pcapng.

use fastpath_wire::pcap::{CaptureReader, LINKTYPE_ETHERNET, PACKET_BYTES_MAX, Writer};

/// A capture from anywhere: its packets come out whole, and written again they are the same.
pub fn pcap(file: &[u8]) {
    let Ok(mut reader) = CaptureReader::new(file) else { return };
    let mut writer = Writer::new(Vec::new(), LINKTYPE_ETHERNET).expect("memory takes any header");
    let mut written = Vec::new();
    while let Ok(Some(packet)) = reader.read_packet() {
        assert!(
            packet.data.len() <= PACKET_BYTES_MAX as usize && packet.orig_len as usize >= packet.data.len()
        );
        assert!(packet.data.len() <= file.len(), "more bytes than the file has");
        let ns = packet.ns.unwrap_or(0);
        if writer.write_packet(ns, packet.orig_len, packet.data).is_ok() {
            written.push((ns, packet.orig_len, packet.data.to_vec()));
        }
    }
    let again = writer.finish().expect("memory takes any packet");
    let mut reader = CaptureReader::new(&again[..]).expect("our own header");
    for (ns, orig_len, data) in written {
        let packet = reader.read_packet().expect("our own packet").expect("as many as were written");
        assert_eq!((packet.ns, packet.orig_len, packet.data), (Some(ns), orig_len, &data[..]));
    }
    assert!(matches!(reader.read_packet(), Ok(None)));
}
