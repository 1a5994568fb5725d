//! Groups and meters: the lines of `add-groups` and `add-meters`.

use crate::actions::parse_actions;
use crate::fields::{Meaning, port_number};
use crate::{PortNames, SeenSettings, Wrong, value, words, wrong};
use fastpath_switch::group::{Bucket, GroupCommand, GroupKind, GroupMod};
use fastpath_switch::meter::{self, Band, BandKind, MeterCommand, MeterMod};

/// The settings of a bucket before its actions.
const BUCKET_SETTINGS: [&str; 4] = ["weight", "watch_port", "watch_group", "bucket_id"];

/// Parses `group_id=N,type=KIND,bucket=…,bucket=…`. A bucket is
/// `[weight:N,][watch_port:P,][watch_group:N,][actions=]ACTION,…`.
pub(crate) fn parse_group(line: &str, ports: &PortNames) -> Result<GroupMod, Wrong> {
    let mut pieces = line.split("bucket=");
    let (mut id, mut kind) = (None, None);
    let mut seen = SeenSettings::default();
    for word in words(pieces.next().unwrap_or_default()) {
        seen.once(word.split('=').next().unwrap_or(word))?;
        match word.split_once('=') {
            Some(("group_id", text)) => id = Some(value::number("group_id", text, 0xffff_ff00)? as u32),
            Some(("type", "all")) => kind = Some(GroupKind::All),
            Some(("type", "select")) => kind = Some(GroupKind::Select),
            Some(("type", "indirect")) => kind = Some(GroupKind::Indirect),
            Some(("type", "ff" | "fast_failover")) => kind = Some(GroupKind::FastFailover),
            Some(("type", other)) => {
                return wrong(
                    format!("unknown group type '{other}'"),
                    "write type=all, select, indirect or ff",
                );
            }
            _ => {
                return wrong(
                    format!("'{word}' is not part of a group"),
                    "write group_id=N,type=KIND,bucket=ACTIONS",
                );
            }
        }
    }
    let (Some(id), Some(kind)) = (id, kind) else {
        return wrong("a group needs a number and a type", "write group_id=N,type=KIND,bucket=ACTIONS");
    };
    let buckets = pieces.enumerate().map(|(number, piece)| parse_bucket(piece, (number, kind), ports));
    let buckets = buckets.collect::<Result<_, _>>()?;
    Ok(GroupMod { command: GroupCommand::Add, id, kind, buckets })
}

/// Parses the bucket of this number in its group.
fn parse_bucket(text: &str, (place, kind): (usize, GroupKind), ports: &PortNames) -> Result<Bucket, Wrong> {
    // As in ovs-ofctl, the default weight is 1 in select groups and 0 in others.
    let mut bucket = Bucket { weight: u16::from(kind == GroupKind::Select), ..Bucket::new([]) };
    let mut rest = text.trim();
    let mut seen = SeenSettings::default();
    loop {
        rest = rest.trim_start_matches([',', ' ', '\t']);
        let end = rest.find([',', ' ', '\t']).unwrap_or(rest.len());
        let (word, after) = rest.split_at(end);
        let setting = word.split_once([':', '=']);
        if let Some((key, _)) = setting.filter(|(key, _)| BUCKET_SETTINGS.contains(key)) {
            seen.once(key)?;
        }
        match setting {
            Some(("weight", number)) => bucket.weight = value::number("weight", number, 0xffff)? as u16,
            Some(("watch_port", port)) => bucket.watch_port = port_number(port, ports)?,
            Some(("watch_group", id)) => {
                bucket.watch_group = value::number("watch_group", id, 0xffff_ff00)? as u32
            }
            // OpenFlow 1.3 has no such number. Dumps of later versions count from 0.
            Some(("bucket_id", id)) if value::number("bucket_id", id, 0xffff_ff00)? != place as u64 => {
                return wrong(
                    format!("bucket_id:{id} is of OpenFlow 1.5, and this is bucket {place} of its group"),
                    "remove it: buckets are known by their place",
                );
            }
            Some(("bucket_id", _)) => {}
            _ => break,
        }
        rest = after;
    }
    let list = rest.strip_prefix("actions=").unwrap_or(rest);
    bucket.actions = parse_actions(list, ports, Meaning::default())?;
    Ok(bucket)
}

/// Parses `meter=N,kbps|pktps[,burst][,stats],bands=type=drop,rate=N[,burst_size=N]…`.
pub(crate) fn parse_meter(line: &str) -> Result<MeterMod, Wrong> {
    const FORM: &str = "write meter=N,kbps,bands=type=drop,rate=N";
    let mut request = MeterMod { command: MeterCommand::Add, id: 0, flags: 0, bands: Vec::new() };
    // A band begins at "type="; "band=" and "bands=" before it are ignored.
    let line = line.replace("bands=", " ").replace("band=", " ");
    let mut seen = SeenSettings::default();
    for word in words(&line) {
        let (key, text) = word.split_once(['=', ':']).unwrap_or((word, ""));
        // Each band has its own values.
        if key == "type" {
            seen = SeenSettings::default();
        } else {
            seen.once(key)?;
        }
        if matches!(key, "kbps" | "pktps" | "burst" | "stats") && word != key {
            return wrong(format!("{key} has no value"), format!("write {key}"));
        }
        let last = request.bands.last_mut();
        match (key, last) {
            ("meter", _) => request.id = value::number(key, text, 0xffff_0000)? as u32,
            ("kbps", _) => request.flags |= meter::flags::KBPS,
            ("pktps", _) => request.flags |= meter::flags::PKTPS,
            ("burst", _) => request.flags |= meter::flags::BURST,
            ("stats", _) => request.flags |= meter::flags::STATS,
            ("type", _) => request.bands.push(match text {
                "drop" => Band { kind: BandKind::Drop, rate: 0, burst: 0 },
                "dscp_remark" => Band { kind: BandKind::DscpRemark(1), rate: 0, burst: 0 },
                _ => {
                    return wrong(
                        format!("unknown band type '{text}'"),
                        "write type=drop or type=dscp_remark",
                    );
                }
            }),
            ("rate", Some(band)) => band.rate = value::number(key, text, u32::MAX.into())? as u32,
            ("burst_size", Some(band)) => band.burst = value::number(key, text, u32::MAX.into())? as u32,
            ("prec_level", Some(Band { kind: BandKind::DscpRemark(levels), .. })) => {
                *levels = value::number(key, text, 255)? as u8;
            }
            _ => return wrong(format!("'{word}' is not part of a meter, or in the wrong place"), FORM),
        }
    }
    if request.bands.is_empty() {
        return wrong("a meter needs a band", FORM);
    }
    if request.flags & meter::flags::BURST == 0 && request.bands.iter().any(|band| band.burst > 0) {
        return wrong("burst_size has no effect without burst", "write meter=N,kbps,burst,bands=…");
    }
    Ok(request)
}
