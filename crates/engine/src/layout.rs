//! Which worker runs what: parts of a network that exchange no frames, or a network that is cut.

use crate::Notice;
use crate::worker_group::CurrentParts;
use fastpath_net::{Part, Partition};
use fastpath_spec::{Topology, Workers};
use std::num::NonZeroUsize;

/// Links named in the notice of a cut.
const NAMED: usize = 3;

/// What else a run asks of its workers.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct LayoutNeeds {
    /// Each worker needs the numbers of the whole topology, for a log.
    pub(crate) is_whole: bool,
    /// Nodes and links may be added later. A cut would refuse some, so it is made only on request.
    pub(crate) may_change: bool,
}

/// Distributes a topology over at most `cores` workers.
pub(crate) fn layout(
    topology: Topology,
    cores: usize,
    workers: Option<&Workers>,
    LayoutNeeds { is_whole, may_change }: LayoutNeeds,
    notice: &Notice,
) -> CurrentParts {
    let most = NonZeroUsize::new(cores).unwrap_or(NonZeroUsize::MIN);
    let asked = workers.and_then(Workers::asked);
    let parts = Part::split(&topology, if is_whole { NonZeroUsize::MIN } else { most });
    let cut = (parts.len() < most.get())
        .then(|| Partition::with_lookahead(&topology, most, Partition::REAL_TIME_LOOKAHEAD))
        .filter(|cut| cut.count() > parts.len())
        .filter(|cut| asked.is_some() || !may_change && cut.expected_speedup() >= Partition::PAYS_OFF);
    let count = cut.as_ref().map_or(parts.len(), Partition::count);
    if let Some(asked) = asked.filter(|asked| count < *asked) {
        notice.send(&format!(
            "{count} of the {asked} requested workers run: links with a delay below {}, with `reorder` \
             or with late copies keep their ends on one worker, as does a group that starts with the first packet",
            Partition::REAL_TIME_LOOKAHEAD
        ));
    }
    match cut {
        None => CurrentParts { topology, parts, partition: None },
        Some(partition) => {
            if asked.is_none() {
                notice.send(&described(&topology, &partition));
            }
            CurrentParts::cut(topology, partition)
        }
    }
}

/// Says that a network is cut, and where.
fn described(topology: &Topology, partition: &Partition) -> String {
    let name = |cut: &fastpath_net::Cut| topology.link(cut.link).name.clone();
    let mut names: Vec<String> = partition.cuts().iter().take(NAMED).map(name).collect();
    if partition.cuts().len() > NAMED {
        names.push("…".to_owned());
    }
    let place = if names.is_empty() { String::new() } else { format!(", cut at {}", names.join(", ")) };
    format!("{} workers run the network{place}: --workers 1 runs it on one", partition.count())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::{Arc, Mutex};

    const ROW: &str = "[router.r1]\n[router.r2]\n[host.a]\n[host.b]\n[[link]]\nbetween = ['a', 'r1']\n\
        [[link]]\nbetween = ['r2', 'b']\n[[link]]\nbetween = ['r1', 'r2']\n";

    /// The parts, whether it is cut, and the notices.
    fn laid_out(
        text: &str,
        cores: usize,
        workers: Option<Workers>,
        needs: LayoutNeeds,
    ) -> (usize, bool, String) {
        let (topology, _) = fastpath_spec::parse(text).expect("a valid spec");
        let said = Arc::new(Mutex::new(String::new()));
        let copy = Arc::clone(&said);
        let notice = Notice::new(move |text| copy.lock().unwrap().push_str(text));
        let layout = layout(topology, cores, workers.as_ref(), needs, &notice);
        let said = said.lock().unwrap().clone();
        (layout.parts.len(), layout.partition.is_some(), said)
    }

    const PLAIN: LayoutNeeds = LayoutNeeds { is_whole: false, may_change: false };

    fn asked(count: usize) -> Option<Workers> {
        NonZeroUsize::new(count).map(Workers::Count)
    }

    #[test]
    fn a_network_is_cut_where_its_delays_allow_it_and_says_so() {
        let long = format!("{ROW}delay = '1ms'\n");
        assert_eq!(laid_out(&long, 2, asked(2), PLAIN), (2, true, String::new()));
        assert_eq!(laid_out(&long, 1, asked(1), PLAIN), (1, false, String::new()));
        let (parts, is_cut, said) = laid_out(&long, 2, None, PLAIN);
        assert!(
            (parts, is_cut) == (2, true) && said.contains("2 workers run the network, cut at r1-r2"),
            "{said}"
        );
        let changing = LayoutNeeds { may_change: true, ..PLAIN };
        assert_eq!(laid_out(&long, 2, None, changing), (1, false, String::new()), "only on request");
        assert_eq!(laid_out(&long, 2, asked(2), changing), (2, true, String::new()));
        let (parts, is_cut, said) = laid_out(&format!("{ROW}delay = '99us'\n"), 2, asked(2), PLAIN);
        assert!((parts, is_cut) == (1, false) && said.contains("1 of the 2 requested"), "{said}");
        let (parts, _, said) = laid_out(&long, 8, asked(8), PLAIN);
        assert!(parts == 2 && said.contains("2 of the 8 requested"), "{said}");
    }

    #[test]
    fn networks_that_exchange_no_frames_are_split_and_cut_only_for_a_log() {
        let pairs = "[host.a]\n[host.b]\n[host.c]\n[host.d]\n[[link]]\nbetween = ['a', 'b']\n\
            [[link]]\nbetween = ['c', 'd']\n";
        assert_eq!(laid_out(pairs, 2, asked(2), PLAIN), (2, false, String::new()));
        assert_eq!(
            laid_out(pairs, 2, asked(2), LayoutNeeds { is_whole: true, ..PLAIN }),
            (2, true, String::new())
        );
    }
}
