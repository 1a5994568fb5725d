//! Tests of captures: written files are read back, in both byte orders and all resolutions,
//! complete, truncated or damaged.

use super::*;
use proptest::prelude::*;

/// The encoding of a 32-bit word: `u32::to_le_bytes` or `u32::to_be_bytes`.
type Word = fn(u32) -> [u8; 4];

/// A packet with its own copy of the bytes.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Kept {
    ns: Option<u64>,
    orig_len: u32,
    interface: u32,
    link_type: u16,
    data: Vec<u8>,
}

/// Returns all packets of a file and the result at its end.
fn read(file: &[u8]) -> (Vec<Kept>, Result<(), ReadError>) {
    let mut packets = Vec::new();
    let mut reader = match CaptureReader::new(file) {
        Ok(reader) => reader,
        Err(error) => return (packets, Err(error)),
    };
    loop {
        match reader.read_packet() {
            Ok(Some(Packet { ns, orig_len, interface, link_type, data })) => {
                packets.push(Kept { ns, orig_len, interface, link_type, data: data.to_vec() });
            }
            Ok(None) => return (packets, Ok(())),
            Err(error) => {
                assert!(matches!(reader.read_packet(), Ok(None)), "nothing follows an error");
                return (packets, Err(error));
            }
        }
    }
}

/// A pcap file with one packet at 5 s and seven ticks: four captured bytes of six on the wire.
fn classic(word: Word, magic: u32) -> Vec<u8> {
    let version = if word(1)[0] == 1 { 4 << 16 | 2 } else { 2 << 16 | 4 };
    let words = [magic, version, 0, 0, 65535, 1, 5, 7, 4, 6];
    [&words.map(word).concat()[..], &[0xde, 0xad, 0xbe, 0xef]].concat()
}

/// A pcapng block with its lengths.
fn block(word: Word, kind: u32, body: &[u8]) -> Vec<u8> {
    let len = word(body.len() as u32 + 12);
    [&word(kind), &len, body, &len].concat()
}

fn section(word: Word) -> Vec<u8> {
    let version = if word(1)[0] == 1 { 1 } else { 1 << 16 };
    block(word, 0x0a0d_0d0a, &[0x1a2b_3c4d, version, u32::MAX, u32::MAX].map(word).concat())
}

/// An Ethernet interface with raw options.
fn interface(word: Word, options: &[u8]) -> Vec<u8> {
    let link_type = if word(1)[0] == 1 { [1, 0, 0, 0] } else { [0, 1, 0, 0] };
    block(word, 1, &[&link_type[..], &word(0), options].concat())
}

/// A packet `de ad be ef` of six bytes on interface 0.
fn enhanced(word: Word, ticks: u64) -> Vec<u8> {
    let fixed = [0, (ticks >> 32) as u32, ticks as u32, 4, 6].map(word).concat();
    block(word, 6, &[&fixed[..], &[0xde, 0xad, 0xbe, 0xef]].concat())
}

fn only(file: &[u8]) -> Kept {
    let (packets, end) = read(file);
    assert!(end.is_ok() && packets.len() == 1, "{packets:?} {end:?}");
    packets[0].clone()
}

#[test]
fn both_orders_and_resolutions_of_pcap_are_read() {
    for (word, magic, ns) in [
        (u32::to_le_bytes as Word, 0xa1b2_c3d4, 5_000_007_000),
        (u32::to_be_bytes, 0xa1b2_c3d4, 5_000_007_000),
        (u32::to_le_bytes, 0xa1b2_3c4d, 5_000_000_007),
        (u32::to_be_bytes, 0xa1b2_3c4d, 5_000_000_007),
    ] {
        let data = vec![0xde, 0xad, 0xbe, 0xef];
        let packet = Kept { ns: Some(ns), orig_len: 6, interface: 0, link_type: 1, data };
        assert_eq!(only(&classic(word, magic)), packet, "{magic:x}");
    }
}

#[test]
fn every_clock_of_pcapng_is_exact() {
    // if_tsresol, if_tsoffset, ticks → ns
    let table: [(Option<u8>, Option<i64>, u64, u64); 9] = [
        (None, None, 5_000_007, 5_000_007_000),
        (Some(9), None, 1_700_000_000_123_456_789, 1_700_000_000_123_456_789),
        (Some(0), None, 5, 5_000_000_000),
        (Some(12), None, 1_999, 1),
        (Some(127), None, u64::MAX, 0),
        (Some(0x80 | 30), None, 1 << 29, 500_000_000),
        (Some(0x80 | 127), None, u64::MAX, 0),
        (Some(9), Some(1_700_000_000), 7, 1_700_000_000_000_000_007),
        (None, Some(-5), 5_000_007, 7_000),
    ];
    let words: [Word; 2] = [u32::to_le_bytes, u32::to_be_bytes];
    for ((resolution, offset, ticks, ns), word) in
        table.into_iter().flat_map(|row| words.map(|word| (row, word)))
    {
        let little = word(1)[0] == 1;
        let half = |v: u16| if little { v.to_le_bytes() } else { v.to_be_bytes() };
        let mut options = [&half(2)[..], &half(3), b"lo0\0"].concat(); // if_name, padded
        if let Some(resolution) = resolution {
            options.extend([&half(9)[..], &half(1), &[resolution, 0, 0, 0]].concat());
        }
        if let Some(offset) = offset {
            let value = if little { offset.to_le_bytes() } else { offset.to_be_bytes() };
            options.extend([&half(14)[..], &half(8), &value].concat());
        }
        options.extend([0; 4]);
        let file = [section(word), interface(word, &options), enhanced(word, ticks)].concat();
        assert_eq!(only(&file).ns, Some(ns), "{resolution:?} {offset:?} {ticks}");
    }
}

#[test]
fn a_section_forgets_interfaces_of_earlier_ones_and_unknown_blocks_are_skipped() {
    let (le, be): (Word, Word) = (u32::to_le_bytes, u32::to_be_bytes);
    let simple = block(le, 3, &[&le(3)[..], &[1, 2, 3, 0]].concat());
    let obsolete = block(le, 2, &[&[0, 0, 9, 9][..], &[0, 5, 2, 2].map(le).concat(), &[8, 9, 0, 0]].concat());
    let file = [
        section(be),
        interface(be, &[]),
        enhanced(be, 1),
        section(le),
        interface(le, &[]),
        block(le, 0x0bad, &[0; 4000]),
        enhanced(le, 2),
        simple,
        obsolete,
    ]
    .concat();
    let (packets, end) = read(&file);
    assert!(end.is_ok(), "{end:?}");
    let seen: Vec<_> = packets.iter().map(|p| (p.ns, p.orig_len, p.data.len())).collect();
    assert_eq!(seen, [(Some(1000), 6, 4), (Some(2000), 6, 4), (None, 3, 3), (Some(5000), 2, 2)]);

    let other_section = [section(le), interface(le, &[]), section(le), enhanced(le, 1)].concat();
    assert!(matches!(
        read(&other_section).1,
        Err(ReadError::Damaged { packet: 1, damage: Damage::UnknownInterface(0), .. })
    ));
}

#[test]
fn damage_is_reported_with_its_position() {
    let le: Word = u32::to_le_bytes;
    let start = [section(le), interface(le, &[]), enhanced(le, 1)].concat();
    let at = start.len();
    let last = |more: Vec<u8>| match read(&[start.clone(), more].concat()) {
        (packets, Err(ReadError::Damaged { packet: 2, offset, damage })) if offset == at as u64 => {
            assert_eq!(packets.len(), 1);
            damage
        }
        other => panic!("{other:?}"),
    };
    let mut trailer = enhanced(le, 1);
    let len = trailer.len();
    trailer[len - 4] = 77;
    assert_eq!(last(trailer), Damage::BlockTrailer(len as u32, 77));
    assert_eq!(last([le(6), le(11)].concat()), Damage::BlockLength(11));
    assert_eq!(last([le(6), le(8)].concat()), Damage::BlockLength(8));
    let data_beyond = block(le, 6, &[0, 0, 0, 5, 5, 0].map(le).concat());
    assert!(matches!(last(data_beyond), Damage::BlockLength(_)));
    let huge = [&[6u32, 0xffff_fffc, 0, 0, 0, 0xffff_0000, 0].map(le).concat()[..], &[0; 64]].concat();
    assert_eq!(last(huge), Damage::PacketTooLong(0xffff_0000));
    let offset = [&[14, 0, 8, 0][..], &i64::MIN.to_le_bytes()].concat();
    let before_1970 = [section(le), interface(le, &offset), enhanced(le, 1)].concat();
    assert!(matches!(read(&before_1970).1, Err(ReadError::Damaged { damage: Damage::Timestamp, .. })));
}

#[test]
fn other_files_are_rejected() {
    assert!(matches!(read(b"").1, Err(ReadError::Empty)));
    assert!(matches!(read(&[0xd4, 0xc3]).1, Err(ReadError::CutHeader)));
    let text = read(b"hello, world").1.unwrap_err().to_string();
    assert!(text.contains("not a pcap or pcapng file"), "{text}");
}

#[test]
fn a_truncated_file_gives_its_complete_packets_and_the_position() {
    let mut classic = Writer::new(Vec::new(), LINKTYPE_ETHERNET).unwrap();
    let mut ng = NgWriter::new(Vec::new(), "fastpath").unwrap();
    let lan = Interface { link_type: LINKTYPE_ETHERNET, name: "lan0", description: "" };
    ng.add_interface(&lan).unwrap();
    for i in 1u8..4 {
        let data = vec![i; usize::from(i) * 3];
        classic.write_packet(i.into(), 100, &data).unwrap();
        ng.write_packet(0, i.into(), 100, &data, "why").unwrap();
    }
    for file in [classic.finish().unwrap(), ng.finish().unwrap()] {
        let (whole, end) = read(&file);
        assert!(end.is_ok() && whole.len() == 3);
        for len in 0..file.len() {
            let (packets, end) = read(&file[..len]);
            assert_eq!(packets, whole[..packets.len()]);
            match end {
                // A file that ends between two records is a valid file.
                Ok(()) | Err(ReadError::Empty | ReadError::CutHeader) => {}
                Err(ReadError::Cut { packet, offset }) => {
                    assert_eq!(packet, packets.len() as u64 + 1);
                    assert!((offset as usize) < len);
                }
                Err(other) => panic!("cut at {len}: {other}"),
            }
        }
        let error = read(&file[..file.len() - 1]).1.unwrap_err().to_string();
        assert!(error.starts_with("file is cut in the middle of packet 3 (offset "), "{error}");
    }
}

#[test]
fn times_beyond_the_range_of_pcap_are_rejected() {
    let mut writer = Writer::new(Vec::new(), LINKTYPE_ETHERNET).unwrap();
    assert!(writer.write_packet(u64::MAX, 0, &[]).is_err());
    assert!(writer.write_packet(0xffff_ffff * 1_000_000_000, 0, &[]).is_ok());
}

#[test]
fn a_written_pcapng_has_exactly_these_bytes() {
    let mut ng = NgWriter::new(Vec::new(), "fp").unwrap();
    let lan = Interface { link_type: LINKTYPE_ETHERNET, name: "a", description: "b" };
    ng.add_interface(&lan).unwrap();
    ng.write_packet(0, 0x1_0000_0002, 9, &[0xaa, 0xbb, 0xcc], "lost").unwrap();
    #[rustfmt::skip]
    let golden = [
        0x0a, 0x0d, 0x0d, 0x0a, 40, 0, 0, 0, 0x4d, 0x3c, 0x2b, 0x1a, 1, 0, 0, 0,
        0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 4, 0, 2, 0, b'f', b'p', 0, 0, 0, 0, 0, 0, 40, 0, 0, 0,
        1, 0, 0, 0, 48, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 2, 0, 1, 0, b'a', 0, 0, 0,
        3, 0, 1, 0, b'b', 0, 0, 0, 9, 0, 1, 0, 9, 0, 0, 0, 0, 0, 0, 0, 48, 0, 0, 0,
        6, 0, 0, 0, 48, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0, 3, 0, 0, 0, 9, 0, 0, 0,
        0xaa, 0xbb, 0xcc, 0, 1, 0, 4, 0, b'l', b'o', b's', b't', 0, 0, 0, 0, 48, 0, 0, 0,
    ];
    assert_eq!(ng.finish().unwrap(), golden);
}

proptest! {
    #[test]
    fn written_packets_are_read_back(packets in prop::collection::vec((any::<u64>(), any::<u32>(), prop::collection::vec(any::<u8>(), 0..90)), 0..8)) {
        let mut classic = Writer::new(Vec::new(), LINKTYPE_ETHERNET).unwrap();
        let mut ng = NgWriter::new(Vec::new(), "").unwrap();
        let lan = Interface { link_type: LINKTYPE_ETHERNET, name: "", description: "" };
        ng.add_interface(&lan).unwrap();
        let interface = ng.add_interface(&lan).unwrap();
        let mut expected = Vec::new();
        for (ns, orig_len, data) in &packets {
            let ns = ns % ((1 << 32) * 1_000_000_000);
            classic.write_packet(ns, *orig_len, data).unwrap();
            ng.write_packet(interface, ns, *orig_len, data, "comment").unwrap();
            let orig_len = (*orig_len).max(data.len() as u32);
            expected.push(Kept { ns: Some(ns), orig_len, interface: 0, link_type: 1, data: data.clone() });
        }
        let (read_back, end) = read(&classic.finish().unwrap());
        prop_assert!(end.is_ok());
        prop_assert_eq!(&read_back, &expected);
        let (read_back, end) = read(&ng.finish().unwrap());
        prop_assert!(end.is_ok());
        expected.iter_mut().for_each(|packet| packet.interface = interface);
        prop_assert_eq!(read_back, expected);
    }

    #[test]
    fn random_bytes_after_a_valid_start_never_panic(which in 0usize..4, bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        let le: Word = u32::to_le_bytes;
        let start = match which {
            0 => Vec::new(),
            1 => classic(le, 0xa1b2_c3d4),
            2 => section(le),
            _ => [section(le), interface(le, &[]), enhanced(le, 1)].concat(),
        };
        let _whatever = read(&[start, bytes].concat());
    }

    #[test]
    fn a_flipped_byte_never_panics(at in any::<prop::sample::Index>(), byte: u8) {
        let le: Word = u32::to_le_bytes;
        let mut file = [section(le), interface(le, &[9, 0, 1, 0, 9, 0, 0, 0]), enhanced(le, 1), enhanced(le, 2)].concat();
        let at = at.index(file.len());
        file[at] = byte;
        let _whatever = read(&file);
    }
}
