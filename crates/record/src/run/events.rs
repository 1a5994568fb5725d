//! The events of a run as texts with their times: those of the spec, and the changes made while it
//! ran.

use fastpath_units::Duration;
use serde_json::Value;

/// Returns the events of a spec in the canonical form and of a list of changes (`GET /changes`) up
/// to a time of the run, in their order.
pub(super) fn events(spec: &Value, changes: &Value, until_s: f64) -> Vec<(f64, String)> {
    let planned = spec["events"].as_array().into_iter().flatten();
    let made = changes["changes"].as_array().into_iter().flatten();
    let mut events: Vec<(f64, String)> =
        planned.chain(made).filter_map(event).filter(|(at, _)| *at <= until_s).collect();
    events.sort_by(|a, b| a.0.total_cmp(&b.0));
    events
}

fn event(event: &Value) -> Option<(f64, String)> {
    let at: Duration = event["at"].as_str()?.parse().ok()?;
    let object = event.as_object()?;
    if let Some(group) = object.get("started") {
        return Some((at.as_secs_f64(), format!("{}: traces start", plain(group))));
    }
    let subject = ["link", "links", "group", "host"].into_iter().filter_map(|key| {
        let value = object.get(key).filter(|value| !value.is_null())?;
        Some(plain(value))
    });
    let subject: Vec<String> = subject.collect();
    let from = ["from", "direction"].into_iter().filter_map(|key| object.get(key));
    let from = from.filter(|value| !value.is_null()).map(|value| format!(" ({})", plain(value)));
    let is_place = |key: &str| ["at", "link", "links", "group", "host", "from", "direction"].contains(&key);
    let set = object.get("set").and_then(Value::as_object).unwrap_or(object);
    let values = set
        .iter()
        .filter(|(key, value)| !is_place(key) && !value.is_null())
        .map(|(key, value)| format!("{key} {}", plain(value)));
    let values: Vec<String> = values.collect();
    let place = subject.join(", ") + &from.collect::<String>();
    Some((at.as_secs_f64(), format!("{place}: {}", values.join(", "))))
}

/// Returns a value as a person writes it.
fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Array(all) => all.iter().map(plain).collect::<Vec<_>>().join(", "),
        Value::Object(table) => match table.get("kind").and_then(Value::as_str) {
            Some(kind) => kind.to_owned(),
            None => value.to_string(),
        },
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn planned_events_and_changes_are_texts_in_the_order_of_time() {
        let topology = fastpath_spec::parse(
            "[host.a]\n[host.b]\n[[link]]\nbetween = ['a', 'b']\n[[event]]\nat = '2s'\nlink = 'a-b'\n\
             direction = 'forward'\nrate = '5Mbit'\n[[event]]\nat = '99s'\nlink = 'a-b'\ndelay = '1ms'\n",
        )
        .unwrap()
        .0;
        let changes = json!({ "changes": [
            { "at": "1500ms", "link": "a-b", "group": null, "from": "b",
              "set": { "delay": "20ms", "queue": { "kind": "codel" } } },
            { "at": "1s", "started": "cell" },
        ] });
        let spec = fastpath_spec::describe(&topology).to_json();
        let texts: Vec<String> =
            events(&spec, &changes, 10.0).into_iter().map(|(at, text)| format!("{at} {text}")).collect();
        assert_eq!(texts.len(), 3, "{texts:?} of {spec}");
        assert_eq!(texts[0], "1 cell: traces start");
        assert_eq!(texts[1], "1.5 a-b (b): delay 20ms, queue codel");
        assert!(texts[2].starts_with("2 a-b") && texts[2].ends_with("rate 5Mbit"), "{texts:?}");
    }
}
