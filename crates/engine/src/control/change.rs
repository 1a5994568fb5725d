//! Converts a request into changes of a network. The worker receives only valid changes, whatever a
//! client sends.

use super::{Changes, GroupReport, Setting};
use crate::command::Refusal;
use crate::snapshot::Snapshot;
use crate::worker_group::Current;
use fastpath_link::Change;
use fastpath_net::{BelowLookahead, LinkChange, ScheduleFull};
use fastpath_spec::{self as spec, Direction, LinkId, Start, Topology};
use fastpath_units::{Duration, Time};

/// Most changes of links in one request.
const CHANGES_MAX: usize = 1 << 16;

/// Keys of a link in a spec that are not values.
const FIXED: [&str; 6] = ["between", "name", "mtu", "preset", "trace", "group"];

/// Returns the changes that a request contains, and their time; `None` for now.
pub(super) fn read(
    topology: &Topology,
    changes: &Changes,
) -> Result<(Option<Time>, Vec<LinkChange>), String> {
    let at = match &changes.at {
        None => None,
        Some(text) => {
            let since: Duration =
                text.parse().map_err(|error: fastpath_units::ParseError| error.to_string())?;
            Some(Time::ZERO + since)
        }
    };
    if changes.changes.is_empty() {
        return Err(
            "nothing to change: write for example {\"changes\":[{\"link\":\"a-b\",\"set\":{\"rate\":\"1Mbit\"}}]}"
                .to_owned(),
        );
    }
    let mut found = Vec::new();
    for setting in &changes.changes {
        let (links, direction) = links(topology, setting)?;
        let change = values(setting)?;
        found.extend(links.into_iter().map(|link| (link, direction, change.clone())));
        if found.len() > CHANGES_MAX {
            return Err(format!("more than {CHANGES_MAX} links are changed: make several requests"));
        }
    }
    Ok((at, found))
}

/// Returns the index of a group.
pub(super) fn group(topology: &Topology, name: &str) -> Result<usize, String> {
    topology.group_named(name).ok_or_else(|| {
        let names = topology.groups.iter().map(|group| group.name.as_str());
        format!("no group is called '{name}' (have: {})", several(names))
    })
}

/// Describes the groups.
pub(super) fn groups(topology: &Topology) -> Vec<GroupReport> {
    let start = |start: Start| match start {
        Start::At(at) => format!("at {at}"),
        Start::FirstPacket => "first-packet".to_owned(),
        Start::Command => "command".to_owned(),
    };
    let report = |group: &fastpath_spec::Group| GroupReport {
        name: group.name.clone(),
        start: start(group.start),
        links: group.links.iter().map(|link| topology.link(*link).name.clone()).collect(),
    };
    topology.groups.iter().map(report).collect()
}

/// Returns the link called `name`.
pub(super) fn link(topology: &Topology, name: &str) -> Result<LinkId, String> {
    topology.link_named(name).ok_or_else(|| {
        let names = topology.links.iter().map(|link| link.name.as_str());
        format!("no link is called '{name}' (have: {})", several(names))
    })
}

fn links(topology: &Topology, setting: &Setting) -> Result<(Vec<LinkId>, Direction), String> {
    let id = match (&setting.link, &setting.group) {
        (Some(name), None) => link(topology, name)?,
        (None, Some(name)) => {
            if setting.from.is_some() {
                return Err(format!("group {name}: 'from' applies to a single link: leave it out"));
            }
            let links = &topology.groups[group(topology, name)?].links;
            if links.is_empty() {
                return Err(format!("group {name} has no links, so nothing would change"));
            }
            return Ok((links.clone(), Direction::Both));
        }
        _ => {
            return Err(
                "a change names a link or a group: write \"link\":\"a-b\" or \"group\":\"cell\"".to_owned()
            );
        }
    };
    let ends = topology.link(id).ends.map(|(node, _)| topology.node(node).name.as_str());
    let direction = match &setting.from {
        None => Direction::Both,
        Some(from) if from == ends[0] => Direction::Forward,
        Some(from) if from == ends[1] => Direction::Backward,
        Some(from) => {
            let name = &topology.link(id).name;
            return Err(format!(
                "link {name} does not lead from '{from}' (have: {})",
                several(ends.into_iter())
            ));
        }
    };
    Ok((vec![id], direction))
}

/// Why links are not changed. They are as before.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ChangeError {
    /// The engine has ended.
    #[error("the engine has ended")]
    Ended,
    /// A trace that is active sets one of the values.
    #[error("{0}")]
    Traced(String),
    /// The time has passed.
    #[error("at: that time has passed: the engine has run for {:.3}s", now.as_secs_f64())]
    Past {
        /// The current time.
        now: Time,
    },
    /// Too many changes wait for their time.
    #[error(transparent)]
    Full(#[from] ScheduleFull),
    /// A link where the network is cut for several workers would become too short.
    #[error(transparent)]
    BelowLookahead(#[from] BelowLookahead),
}

/// Makes the changes, all at one instant. Returns it.
pub(crate) fn make(
    current: &Current<'_>,
    at: Option<Time>,
    changes: Vec<LinkChange>,
) -> Result<Time, ChangeError> {
    let topology = current.topology();
    if !topology.tracks.is_empty() {
        let snapshot = current.snapshot().ok_or(ChangeError::Ended)?;
        check(topology, &snapshot, at.unwrap_or(snapshot.at), &changes).map_err(ChangeError::Traced)?;
    }
    current.change(at, changes).ok_or(ChangeError::Ended)?.map_err(|refusal| match refusal {
        Refusal::Past { now } => ChangeError::Past { now },
        Refusal::Full(full) => full.into(),
        Refusal::BelowLookahead(below) => below.into(),
    })
}

/// Returns the changes that give `links` the values of the topology again. What an active trace
/// sets stays.
pub(super) fn restored(topology: &Topology, snapshot: &Snapshot, links: &[LinkId]) -> Vec<LinkChange> {
    let pipes = links.iter().flat_map(|&link| [(link, 0), (link, 1)]);
    let change = |(link, pipe): (LinkId, usize)| {
        let now = &snapshot.pipes[2 * link.0 as usize + pipe];
        let mut values = spec::difference(Some(&now.spec), &topology.link(link).pipes[pipe]);
        let read = |values: &_| spec::change_of_json(values).ok();
        let starts = now.trace_starts.iter().copied();
        for traced in topology.traced((link, pipe), &read(&values)?, snapshot.at, starts) {
            values.remove(traced.key);
        }
        let direction = if pipe == 0 { Direction::Forward } else { Direction::Backward };
        Some((link, direction, read(&values).filter(|_| !values.is_empty())?))
    };
    pipes.filter_map(change).collect()
}

/// Returns a change as a request has it.
pub(super) fn setting(topology: &Topology, (link, direction, change): &LinkChange) -> Setting {
    let link = topology.link(*link);
    let start = |end: usize| Some(topology.node(link.ends[end].0).name.clone());
    let from = match direction {
        Direction::Both => None,
        Direction::Forward => start(0),
        Direction::Backward => start(1),
    };
    Setting { link: Some(link.name.clone()), group: None, from, set: spec::change_to_json(change) }
}

/// Refuses a change that a trace active at `at` would undo or make meaningless.
fn check(topology: &Topology, snapshot: &Snapshot, at: Time, changes: &[LinkChange]) -> Result<(), String> {
    for (link, direction, change) in changes {
        for pipe in direction.pipes() {
            let starts = &snapshot.pipes[2 * link.0 as usize + pipe].trace_starts;
            if let Some(traced) = topology.traced((*link, pipe), change, at, starts.iter().copied()).first() {
                return Err(format!("{traced}: {}", traced.instead()));
            }
        }
    }
    Ok(())
}

/// Reads the values as those of a link in a spec.
fn values(setting: &Setting) -> Result<Change, String> {
    if setting.set.is_empty() {
        return Err("nothing to set: write for example \"set\":{\"rate\":\"1Mbit\"}".to_owned());
    }
    if let Some(key) = setting.set.keys().find(|key| FIXED.contains(&key.as_str())) {
        return Err(format!(
            "the {key} of a link is fixed when the network starts: write it in the spec, or change one of {}",
            spec::keys().join(", ")
        ));
    }
    if let Some(key) = setting.set.keys().find(|key| !spec::is_key(key)) {
        return Err(format!(
            "a link has no value '{}': write one of {}",
            key.escape_debug(),
            spec::keys().join(", ")
        ));
    }
    if let Some((key, _)) = setting.set.iter().find(|(_, value)| value.is_null()) {
        return Err(format!("{key} is null: leave it out"));
    }
    spec::change_of_json(&setting.set).map_err(|mistakes| {
        let said = mistakes.iter().map(|mistake| format!("{}; {}", mistake.what, mistake.instead));
        said.collect::<Vec<_>>().join("\n")
    })
}

/// Joins the first names of a list.
fn several<'n>(names: impl Iterator<Item = &'n str>) -> String {
    const SHOWN: usize = 20;
    let names: Vec<&str> = names.collect();
    match names.len() {
        0 => "none".to_owned(),
        1..=SHOWN => names.join(", "),
        more => format!("{} and {} more", names[..SHOWN].join(", "), more - SHOWN),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fastpath_link::{CodelSpec, Limit, LossSpec, QueueSpec};
    use fastpath_units::{Bytes, Probability, Rate};

    fn topology() -> Topology {
        let text = "[host.a]\n[host.b]\n[host.c]\n[switch.s]\n[[link]]\nbetween = [\"a\", \"b\"]\n\
                    [[link]]\nbetween = [\"b\", \"s\"]\ngroup = \"cell\"\n[[link]]\nbetween = [\"c\", \"s\"]\ngroup = \"cell\"\n";
        spec::parse(text).unwrap().0
    }

    fn read(json: &str) -> Result<(Option<Time>, Vec<LinkChange>), String> {
        super::read(&topology(), &serde_json::from_str(json).unwrap())
    }

    fn one(setting: &str) -> Result<LinkChange, String> {
        read(&format!("{{\"changes\":[{setting}]}}")).map(|(_, mut changes)| changes.remove(0))
    }

    /// One word of a request is changed, misspelled or removed: other changes, or a refusal.
    #[test]
    fn every_word_of_a_request_counts() {
        use fastpath_text::mutation::lexical::mutation;
        let requests = [
            r#"{"changes":[{"link":"a-b","from":"b","set":{"rate":"15Mbit","delay":"1.5ms","loss":"1%"}}]}"#,
            r#"{"at":"12.5s","changes":[{"group":"cell","set":{"queue":{"kind":"codel","limit":"90p"}}}]}"#,
            r#"{"changes":[{"link":"b-s","set":{"jitter":{"law":"normal","sd":"2ms"},"overhead":24}},
                {"link":"c-s","set":{"slots":{"min":"1ms","max":"2ms"},"corrupt":"2%","state":"down"}}]}"#,
        ];
        let read = |text: &str| {
            let request = serde_json::from_str(text).map_err(|error| error.to_string())?;
            super::read(&topology(), &request)
        };
        let mut random = fastpath_units::Rng::new(33);
        let (mut differ, mut refused) = (0, 0);
        for turn in 0..6000 {
            let text = requests[turn % requests.len()];
            let mutation = mutation(text, &mut random).expect("there are words");
            match read(&mutation.text) {
                Err(_) => refused += 1,
                Ok(changes) => {
                    assert_ne!(Ok(changes), read(text), "{mutation}");
                    differ += 1;
                }
            }
        }
        assert!(differ > 200 && refused > 200, "{differ} differ, {refused} are refused");
    }

    #[test]
    fn values_are_read_with_the_units_of_the_spec() {
        let all = r#"{"link":"a-b","from":"b","set":{"rate":"unlimited","delay":"1.5ms","loss":"1%","queue":"50p","overhead":"ethernet"}}"#;
        let change = Change {
            rate: Some(None),
            overhead: Some(24),
            framing: Some(None),
            delay: Some(Duration::from_us(1500)),
            loss: Some(LossSpec::Uniform(Probability::new(0.01).unwrap())),
            queue: Some(QueueSpec::DropTail(Limit::Packets(50))),
            ..Change::default()
        };
        assert_eq!(one(all), Ok((LinkId(0), Direction::Backward, change)));
        let (_, direction, change) = one(r#"{"link":"a-b","set":{"rate":"1Mbit","queue":"64KiB"}}"#).unwrap();
        assert_eq!((direction, change.rate), (Direction::Both, Some(Rate::from_bps(1_000_000))));
        assert_eq!(change.queue, Some(QueueSpec::DropTail(Limit::Bytes(Bytes(65536)))));
        let (_, _, change) =
            one(r#"{"link":"a-b","set":{"queue":"{ kind = 'codel' }","loss":"0.01"}}"#).unwrap();
        assert_eq!(change.queue, Some(QueueSpec::Codel(CodelSpec::default())));
    }

    #[test]
    fn values_may_be_json_as_well_as_text() {
        let json = r#"{"link":"a-b","set":{"queue":{"kind":"codel","limit":"9p","ecn":true},"overhead":-14,"loss":0.01,
                     "jitter":{"law":"table","values":["1ms","2ms"]}}}"#;
        let text = r#"{"link":"a-b","set":{"queue":"{ kind = 'codel', limit = '9p', ecn = true }","overhead":"-14",
                     "loss":"1%","jitter":"{ law = 'table', values = ['1ms', '2ms'] }"}}"#;
        assert_eq!(one(json), one(text));
        let (.., change) = one(json).unwrap();
        let codel =
            CodelSpec { limit: Limit::Packets(9), ecn: fastpath_link::Ecn::Mark, ..CodelSpec::default() };
        assert_eq!(change.queue, Some(QueueSpec::Codel(codel)));
        assert!(one(r#"{"link":"a-b","set":{"rate":5}}"#).unwrap_err().contains("5Mbit"));
        let null = one(r#"{"link":"a-b","set":{"rate":null}}"#).unwrap_err();
        assert!(null.starts_with("rate is null: leave it out"), "{null}");
        let two = one(r#"{"link":"a-b","set":{"queue":"{ kind = 'codel' }\nrate = '1Mbit'"}}"#).unwrap_err();
        assert_eq!(two, "queue is not a single value; write one value");
    }

    #[test]
    fn several_links_and_groups_change_in_one_request_at_a_time() {
        let json = r#"{"at":"12.5s","changes":[{"link":"a-b","set":{"rate":"1Mbit"}},{"group":"cell","set":{"delay":"5ms"}}]}"#;
        let (at, changes) = read(json).unwrap();
        assert_eq!(at, Some(Time::ZERO + Duration::from_ms(12_500)));
        let links: Vec<u32> = changes.iter().map(|(link, ..)| link.0).collect();
        assert_eq!(links, [0, 1, 2]);
        assert_eq!(changes[1].2.delay, Some(Duration::from_ms(5)));
    }

    #[test]
    fn a_wrong_change_says_what_to_write() {
        for (setting, part) in [
            (r#"{"link":"x","set":{"rate":"1Mbit"}}"#, "no link is called 'x' (have: a-b, b-s, c-s)"),
            (r#"{"group":"x","set":{"rate":"1Mbit"}}"#, "no group is called 'x' (have: cell)"),
            (r#"{"set":{"rate":"1Mbit"}}"#, "write \"link\":\"a-b\" or \"group\":\"cell\""),
            (r#"{"group":"cell","from":"b","set":{"rate":"1Mbit"}}"#, "'from' applies to a single link"),
            (r#"{"link":"a-b","from":"c","set":{"rate":"1Mbit"}}"#, "(have: a, b)"),
            (r#"{"link":"a-b","set":{}}"#, "nothing to set"),
            (r#"{"link":"a-b","set":{"dleay":"1ms"}}"#, "a link has no value 'dleay': write one of rate, "),
            (r#"{"link":"a-b","set":{"rate = '1Mbit'\nx":"1ms"}}"#, "a link has no value 'rate = "),
            (r#"{"link":"a-b","set":{"rate":"1"}}"#, "the unit is missing"),
            (r#"{"link":"a-b","set":{"rate":"0bit"}}"#, "not a rate"),
            (r#"{"link":"a-b","set":{"delay":"-1ms"}}"#, "negative"),
            (r#"{"link":"a-b","set":{"loss":"101%"}}"#, "0 … 100 %"),
            (r#"{"link":"a-b","set":{"queue":"0p"}}"#, "write queue = \"50p\""),
            (r#"{"link":"a-b","set":{"queue":"{ kind = 'codle' }"}}"#, "write \"codel\""),
            (r#"{"link":"a-b","set":{"jitter":"{ law = 'normal' }"}}"#, "jitter has no sd"),
        ] {
            let error = one(setting).unwrap_err();
            assert!(error.contains(part), "{setting}: {error}");
        }
        assert!(read(r#"{"changes":[]}"#).unwrap_err().starts_with("nothing to change"));
        assert!(read(r#"{"at":"soon","changes":[]}"#).unwrap_err().contains("'soon' is not a duration"));
    }
}
