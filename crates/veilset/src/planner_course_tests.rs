use crate::channel::Network;
use crate::course::*;
use crate::operations::{self, Announced, Terms, cost::Deal};
use crate::planner::{self, Prices, Setting};
use crate::protocols;
use crate::speed::Speeds;
use serde::Deserialize;
use std::collections::BTreeSet;
use std::time::Duration;

/// The recorded course of a run (`benches/course.rs`).
#[derive(Debug, Deserialize)]
struct Recorded {
    operation: String,
    protocol: String,
    /// Number of items of each party.
    items: usize,
    link: String,
    /// Milliseconds, and the bytes moved by then.
    progress: Vec<(u64, u64)>,
}

impl Recorded {
    /// The predicted course on a processor with AVX-512, as in the recording. The link was not known.
    fn course(&self) -> Course {
        let operation = operations::ALL.iter().find(|operation| operation.name == self.operation).unwrap();
        let protocol = protocols::named(&self.protocol).unwrap();
        let size = Announced { size: self.items, padded: false };
        let terms = Terms { max_row: 64, ..Terms::default() };
        let deal = Deal { operation, terms, group: protocol.group(), receiver: size, sender: size };
        let speeds = [Speeds::of_kind(veilset_kernels::Backend::Ifma512, 1); 2];
        let setting = Setting { speeds, link: Network::NONE, prices: Prices::default(), shared: None };
        planner::course(&protocol.cost(&deal).unwrap(), &setting)
    }
}

fn all() -> Vec<Recorded> {
    serde_json::from_str(include_str!("course_recorded.json")).unwrap()
}

/// The displayed remaining time is between half and twice the actual one, from the third second on until a sixth of the run is
/// left. If the link is the slowest part, it is at least a quarter of the actual one.
#[test]
fn what_is_left_of_recorded_runs_is_told_within_a_factor_of_two() {
    let runs = all();
    let pairs = runs.iter().filter(|run| run.link.is_empty());
    let pairs: BTreeSet<_> = pairs.map(|run| (&run.operation, &run.protocol)).collect();
    assert_eq!(pairs.len(), 9, "{pairs:?}");
    for run in &runs {
        let (origin, sent_before) = run.progress[0];
        let end = Duration::from_millis(run.progress.last().unwrap().0 - origin);
        let mut left = Left::of(run.course());
        let (mut said, mut seen) = (0, run.progress.iter().peekable());
        let mut moved = 0;
        // As often as a terminal updates it.
        for tick in 0.. {
            let now = Duration::from_millis(200 * tick);
            let before = |at: &(u64, u64)| Duration::from_millis(at.0 - origin) <= now;
            while let Some(at) = seen.next_if(|at| before(at)) {
                moved = at.1 - sent_before;
            }
            let Some(remains) = end.checked_sub(now).filter(|remains| *remains >= end / 6) else { break };
            let Some(told) = left.at(now, moved).filter(|_| now >= Duration::from_secs(3)) else { continue };
            said += 1;
            let ratio = told.as_secs_f64() / remains.as_secs_f64();
            let least = if run.link.is_empty() { 0.5 } else { 0.25 };
            let of = (&run.operation, &run.protocol, &run.link);
            assert!((least..=2.0).contains(&ratio), "{of:?} at {now:?}: {told:?} of {remains:?}");
        }
        assert!(said >= 20, "{} {}: {said}", run.operation, run.protocol);
    }
}

fn seconds(n: f64) -> Duration {
    Duration::from_secs_f64(n)
}

#[test]
fn what_is_left_follows_the_pace_of_what_is_done() {
    // Twice as slow as expected throughout: 4 seconds and 100 bytes, 6 seconds without any, 10 seconds and 100 bytes.
    let mut left = Left::of(Course::new([(2.0, 100), (3.0, 0), (5.0, 100)]));
    // Before a tenth of the bytes has moved, there is no estimate.
    assert_eq!(left.at(seconds(0.5), 12), None);
    let mut about = |now, moved, right: f64| {
        let told = left.at(seconds(now), moved).unwrap().as_secs_f64();
        assert!((told / right - 1.0).abs() < 0.25, "{now}: {told}, not {right}");
    };
    about(2.0, 50, 18.0);
    about(4.0, 100, 16.0);
    // Nothing moves for a while, but time passes.
    about(7.0, 100, 13.0);
    about(8.5, 100, 11.5);
    about(15.0, 150, 5.0);
    // The tags are a little shorter than expected, so nothing is left at the end.
    assert!(left.at(seconds(20.0), 199).unwrap() < seconds(0.3));
    assert_eq!(left.at(seconds(21.0), 200), Some(Duration::ZERO));
}

#[test]
fn a_job_is_its_shards_one_after_the_other() {
    let one = Course::new([(1.0, 1000), (1.0, 0)]);
    let mut left = Left::of(one.repeated(10));
    assert_eq!(left.at(seconds(0.1), 99), None);
    // The minimum for an estimate is a share of one run, not of the job.
    assert!(left.at(seconds(0.2), 200).is_some());
    let told = left.at(seconds(4.0), 2001).unwrap();
    assert!((15.0..17.5).contains(&told.as_secs_f64()), "{told:?}");
    assert_eq!(Left::of(Course::default()).at(seconds(5.0), 5), None);
    assert_eq!(Left::of(one.repeated(0)).at(seconds(5.0), 5), None);
}
