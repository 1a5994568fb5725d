//! The changes of a run: listed, and as events of a spec that repeat them.

use super::Setting;
use fastpath_link::{Limit, QueueSpec};
use fastpath_spec::{LinkId, Topology, TraceAction, difference, inline};
use fastpath_units::Time;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::fmt::Write;

/// Changes that are kept. Later ones are counted only.
const CHANGES_MAX: usize = 10_000;

/// The changes of a run, in the order in which they were made.
#[derive(Debug, Default)]
pub(super) struct History {
    changes: Vec<(Time, Made)>,
    omitted: usize,
}

/// A change.
#[derive(Clone, Debug)]
pub(super) enum Made {
    /// New values.
    Set(Setting),
    /// The traces of this group started or stopped.
    Traces(String, TraceAction),
    /// The network became that of another description: the number of differences.
    Applied(usize),
}

impl History {
    /// Adds a change that happens at `at`.
    pub(super) fn add(&mut self, at: Time, made: Made) {
        if self.changes.len() < CHANGES_MAX {
            self.changes.push((at, made));
        } else {
            self.omitted += 1;
        }
    }

    /// Returns the number of changes, including those not kept.
    pub(super) fn len(&self) -> usize {
        self.changes.len() + self.omitted
    }

    /// Returns the changes as the answer to `GET /changes`.
    pub(super) fn to_json(&self) -> Value {
        let change = |(at, made): &(Time, Made)| {
            let (at_s, at) = (at.as_secs_f64(), at.since(Time::ZERO).to_string());
            match made {
                Made::Set(Setting { link, group, from, set }) => {
                    json!({ "at": at, "at_s": at_s, "link": link, "group": group, "from": from, "set": set })
                }
                Made::Traces(group, TraceAction::Start) => {
                    json!({ "at": at, "at_s": at_s, "started": group })
                }
                Made::Traces(group, TraceAction::Stop) => {
                    json!({ "at": at, "at_s": at_s, "stopped": group })
                }
                Made::Applied(differences) => json!({ "at": at, "at_s": at_s, "applied": differences }),
            }
        };
        json!({ "changes": self.changes.iter().map(change).collect::<Vec<_>>(), "omitted": self.omitted })
    }

    /// Returns the changes as events of a spec of `topology`, the one that runs now. Changes of
    /// what it does not have are comments.
    pub(super) fn to_toml(&self, topology: &Topology) -> String {
        let text = |text: &str| inline(&Value::from(text));
        let mut out = self.queues(topology);
        for (at, made) in &self.changes {
            let at = at.since(Time::ZERO);
            match made {
                Made::Traces(group, _) if topology.group_named(group).is_none() => {
                    let name = text(group);
                    _ = writeln!(
                        out,
                        "# at {at}: traces of group {name} started or stopped, which was removed later\n"
                    );
                }
                Made::Traces(group, action) => {
                    let word = if *action == TraceAction::Start { "start" } else { "stop" };
                    let name = text(group);
                    _ = writeln!(out, "[[event]]\nat = \"{at}\"\ngroup = {name}\ntraces = \"{word}\"\n");
                }
                Made::Applied(differences) => {
                    _ = writeln!(
                        out,
                        "# at {at}: another description was applied, {differences} differences\n"
                    );
                }
                Made::Set(Setting { link: Some(link), .. }) if topology.link_named(link).is_none() => {
                    _ = writeln!(out, "# at {at}: link {} changed, which was removed later\n", text(link));
                }
                Made::Set(Setting { group: Some(group), .. }) if topology.group_named(group).is_none() => {
                    _ = writeln!(out, "# at {at}: group {} changed, which was removed later\n", text(group));
                }
                Made::Set(Setting { link, group, from, set }) => {
                    _ = writeln!(out, "[[event]]\nat = \"{at}\"");
                    for (key, name) in [("link", link), ("group", group)] {
                        if let Some(name) = name {
                            _ = writeln!(out, "{key} = {}", text(name));
                        }
                    }
                    if let (Some(link), Some(from)) = (link, from) {
                        let first = topology.link_named(link).map(|id| topology.link(id).ends[0].0);
                        let is_first = first.is_some_and(|node| topology.node(node).name == *from);
                        _ = writeln!(
                            out,
                            "direction = \"{}\"",
                            if is_first { "forward" } else { "backward" }
                        );
                    }
                    for (key, value) in set {
                        _ = writeln!(out, "{key} = {}", inline(value));
                    }
                    out.push('\n');
                }
            }
        }
        if self.omitted > 0 {
            _ = writeln!(out, "# {} later changes were not kept", self.omitted);
        }
        out
    }
}

impl History {
    /// Returns events that give links the queues of this run. A description gives a link without a
    /// queue one by its rates and delays, those of events included: in a repetition it would be
    /// another one.
    fn queues(&self, topology: &Topology) -> String {
        let mut touched: BTreeSet<(LinkId, usize)> = BTreeSet::new();
        for (_, made) in &self.changes {
            let Made::Set(Setting { link, group, from, set }) = made else { continue };
            if !set.contains_key("rate") && !set.contains_key("delay") {
                continue;
            }
            let of_group = group.as_ref().and_then(|name| topology.group_named(name));
            let of_group = of_group.into_iter().flat_map(|group| &topology.groups[group].links).copied();
            let named = link.as_ref().and_then(|name| topology.link_named(name));
            for link in named.into_iter().chain(of_group) {
                let start = |end: usize| &topology.node(topology.link(link).ends[end].0).name;
                let ends = (0..2).filter(|end| from.as_ref().is_none_or(|from| from == start(*end)));
                touched.extend(ends.map(|end| (link, end)));
            }
        }
        let mut out = String::new();
        for (link, end) in touched {
            let pipe = &topology.link(link).pipes[end];
            // A description gives a queue of this kind by itself, or none.
            if !matches!(pipe.queue, QueueSpec::DropTail(Limit::Packets(_)))
                && pipe.queue != QueueSpec::default()
            {
                continue;
            }
            let name = inline(&Value::from(topology.link(link).name.as_str()));
            let queue = difference(None, pipe).get("queue").map(inline).unwrap_or_default();
            let direction = ["forward", "backward"][end];
            _ = writeln!(
                out,
                "[[event]]\nat = \"0s\"\nlink = {name}\ndirection = \"{direction}\"\nqueue = {queue}\n"
            );
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fastpath_units::Duration;

    const SPEC: &str = "[host.a]\n[host.b]\n[[link]]\nbetween = [\"a\", \"b\"]\nname = \"access.1\"\n";

    #[test]
    fn starts_and_stops_of_traces_are_events_too() {
        let trace = "duration_s,rate_mbps\n1000,3\n";
        let spec = "[host.a]\n[host.b]\n[group.cell]\nstart = \"command\"\n[[link]]\nbetween = [\"a\", \"b\"]\n\
                    group = \"cell\"\ntrace = \"t.csv\"\n";
        let read = |text: &str| fastpath_spec::read(text, &|_| Ok(trace.to_owned())).unwrap().0.topology;
        let mut history = History::default();
        let at = |seconds: u64| Time::ZERO + Duration::from_ms(1000 * seconds);
        history.add(at(2), Made::Traces("cell".to_owned(), TraceAction::Start));
        history.add(at(5), Made::Traces("cell".to_owned(), TraceAction::Stop));
        history.add(at(6), Made::Traces("gone".to_owned(), TraceAction::Stop));
        let text = history.to_toml(&read(spec));
        let events = read(&format!("{spec}{text}")).trace_events;
        let found: Vec<_> = events.iter().map(|event| (event.at, event.group, event.action)).collect();
        assert_eq!(found, [(at(2), 0, TraceAction::Start), (at(5), 0, TraceAction::Stop)], "{text}");
    }

    #[test]
    fn the_changes_are_events_that_a_spec_accepts_with_the_same_values() {
        let topology = fastpath_spec::parse(SPEC).unwrap().0;
        let set = |json: Value| json.as_object().unwrap().clone();
        let change = |from: Option<&str>, values: Value| {
            let link = Some(topology.links[0].name.clone());
            Made::Set(Setting { link, group: None, from: from.map(str::to_owned), set: set(values) })
        };
        let mut history = History::default();
        let at = Time::ZERO + Duration::from_ps(1_234_567_890_123);
        history.add(at, change(None, json!({ "delay": "25ms", "rate": "5Mbit" })));
        history
            .add(at, change(Some("b"), json!({ "queue": { "kind": "codel", "ecn": true }, "loss": 0.01 })));
        // A removal by another description is not an event.
        history.add(at, Made::Applied(1));
        let gone = Setting {
            link: Some("gone".to_owned()),
            group: None,
            from: None,
            set: set(json!({ "loss": 1 })),
        };
        history.add(at, Made::Set(gone));
        let text = history.to_toml(&topology);
        let spec = format!("{SPEC}{text}");
        let (with_events, _) =
            fastpath_spec::parse(&spec).unwrap_or_else(|wrong| panic!("{wrong:?}: {spec}"));
        let made: Vec<_> = with_events.events.iter().filter(|event| event.at > Time::ZERO).collect();
        assert_eq!(made.len(), 2, "{text}");
        assert!(made.iter().all(|event| event.at == at), "{text}");
        // The link has no queue, and would get one for its rate.
        let queues: Vec<_> = with_events.events.iter().filter(|event| event.at == Time::ZERO).collect();
        assert_eq!(queues.len(), 2, "{text}");
        assert!(queues.iter().all(|event| event.change.queue == Some(QueueSpec::default())), "{text}");
        assert!(text.contains("direction = \"backward\""), "{text}");
        let changes = history.to_json()["changes"].clone();
        assert_eq!((&changes[0]["set"]["delay"], &changes[2]["applied"]), (&json!("25ms"), &json!(1)));
    }

    #[test]
    fn changes_beyond_the_limit_are_counted() {
        let mut history = History::default();
        (0..=CHANGES_MAX)
            .for_each(|_| history.add(Time::ZERO, Made::Traces("g".to_owned(), TraceAction::Start)));
        assert_eq!((history.len(), history.changes.len()), (CHANGES_MAX + 1, CHANGES_MAX));
    }
}
