//! Continuations as bytes.

use super::*;
use fastpath_switch::{Instructions, port};

#[test]
fn what_is_left_to_do_survives_and_nothing_that_is_changed_is_taken() {
    let inner = vec![Action::ModVlanVid(5), Action::Extension(Arc::new(Extension::Meter(3)))];
    let enqueue = Extension::Enqueue { port: port::LOCAL, queue: 7 };
    let apply = [Action::Extension(Arc::new(Extension::Clone(inner))), Action::ModVlanPcp(2)];
    let apply = [&apply[..], &[Action::Extension(Arc::new(enqueue)), Action::output(2)]].concat();
    let rest = Instructions { goto: Some(4), write: vec![Action::Group(9)], ..Instructions::apply(apply) };
    let flow = FlowName { table_id: 3, cookie: 0x11, is_miss: true };
    let continuation = Continuation {
        queue: 1,
        stack: vec![u128::MAX, 2],
        translated: (4, CtState::NEW),
        set: vec![Action::PopVlan, Action::output(1)],
        steps: vec![PausedStep { flow, rest }, PausedStep::default()],
    };
    let original = FlowTuple { src: 1, dst: 2, src_port: 3, dst_port: 4, protocol: 17, is_v6: true };
    let connection = ConnectionFields { state: CtState::NEW, zone: 5, mark: 6, label: 7, original };
    let fields = PipelineFields { connection, ..PipelineFields::default() };
    let key = RandomState::new();
    let bytes = seal(&key, &fields, &continuation);
    assert_eq!(open(&key, &bytes), Ok((fields, continuation)));
    let len = usize::from(u16::from_be_bytes([bytes[2], bytes[3]]));
    for at in 0..len {
        let mut damaged = bytes.clone();
        damaged[at] ^= 1;
        assert_eq!(open(&key, &damaged), Err(Fault::ContinuationStale), "{at}");
        assert_eq!(open(&key, &bytes[..at]), Err(Fault::ContinuationStale), "{at}");
    }
    assert_eq!(open(&RandomState::new(), &bytes), Err(Fault::ContinuationStale));
}
