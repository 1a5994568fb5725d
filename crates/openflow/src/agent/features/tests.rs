//! The features of tables and requests for them.

use super::*;

#[test]
fn the_last_table_has_no_goto_and_every_action_has_its_bit() {
    let limits = Limits { tables: 3, ..Limits::default() };
    let goes_on = |id| {
        of_table(Version::V13, &limits, id)
            .properties
            .iter()
            .any(|p| matches!(p, Property::Instructions(_, list) if list.contains(&1)))
    };
    assert_eq!([0, 1, 2].map(goes_on), [true, true, false]);
    assert_eq!(action_bits(Version::V13), 0x0fff_9801);
}

#[test]
fn a_request_for_fewer_features_succeeds_and_for_more_is_refused() {
    let ours = of_table(Version::V13, &Limits { tables: 3, flows: 1000, ..Limits::default() }, 1);
    let with = |property| TableFeatures { properties: vec![property], ..ours.clone() };
    let (flows, miss) = (For::Flows, For::Miss);
    let masked = FIELDS.iter().find(|info| info.field.is_maskable()).expect("one").field;
    let unsettable = FIELDS.iter().find(|info| !info.field.is_settable()).expect("one").field;
    let exact = FIELDS.iter().find(|info| !info.field.is_maskable()).expect("one").field;
    for less in [
        ours.clone(),
        TableFeatures { entries: 10, metadata_match: 0xff, name: "acl".to_owned(), ..ours.clone() },
        TableFeatures { properties: Vec::new(), config: 3, ..ours.clone() },
        with(Property::Instructions(flows, vec![4, 1])),
        with(Property::NextTables(miss, vec![2])),
        with(Property::ApplyActions(miss, vec![0])),
        with(Property::Match(vec![(masked, true), (exact, false)])),
        with(Property::ApplySetField(flows, Vec::new())),
    ] {
        assert_eq!(check(&ours, &less), Ok(()), "{less:?}");
    }
    for more in [
        TableFeatures { entries: 1001, ..ours.clone() },
        TableFeatures { config: 4, ..ours.clone() },
        with(Property::Instructions(flows, vec![7])),
        with(Property::NextTables(flows, vec![0])),
        with(Property::WriteActions(flows, vec![0, 28])),
        with(Property::Match(vec![(exact, true)])),
        with(Property::WriteSetField(flows, vec![(unsettable, false)])),
    ] {
        assert_eq!(check(&ours, &more), Err(Fault::TableFeaturesBadArgument), "{more:?}");
    }
}
