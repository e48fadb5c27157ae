//! The expected course of a run, and an estimate of its remaining time.

use std::time::Duration;

/// The share of the expected course after which the observed pace weighs as much as the expected one.
const TRUST: f64 = 0.05;
/// The share of a leg that may count as done by elapsed time alone, while nothing is sent.
const UNSEEN: f64 = 0.8;
/// The share of a run's bytes that must have moved before an estimate is made: by then the link has shown its pace.
const ENOUGH: f64 = 0.1;
/// The share of a leg's bytes that may be missing at its end: the lengths of coded tags are not exact.
const INEXACT: f64 = 0.005;

/// The expected course of a run: its legs in order, each with the bytes that both parties send and its duration.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Course {
    /// The legs of one run.
    legs: Vec<Leg>,
    /// The number of consecutive runs.
    runs: usize,
    /// Bytes, in both directions, that must have moved before an estimate is made.
    enough: f64,
}

/// One leg of a run.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
struct Leg {
    /// Bytes in both directions.
    bytes: f64,
    /// Expected duration in seconds.
    seconds: f64,
}

impl Course {
    /// Returns the course of a run with these legs, each given as its seconds and its bytes in both directions.
    pub fn new(legs: impl IntoIterator<Item = (f64, u64)>) -> Course {
        let leg = |(seconds, bytes)| Leg { seconds, bytes: bytes as f64 };
        let legs: Vec<Leg> = legs.into_iter().map(leg).collect();
        let enough = ENOUGH * legs.iter().map(|leg| leg.bytes).sum::<f64>();
        Course { legs, runs: 1, enough }
    }

    /// Returns the course of `times` such runs, one after the other.
    #[must_use]
    pub fn repeated(&self, times: usize) -> Course {
        Course { runs: self.runs * times, ..self.clone() }
    }

    /// Returns the number of legs of all runs together.
    fn count(&self) -> usize {
        self.legs.len() * self.runs
    }

    /// Returns the expected duration of all runs together in seconds.
    fn seconds(&self) -> f64 {
        self.legs.iter().map(|leg| leg.seconds).sum::<f64>() * self.runs as f64
    }
}

/// Estimates the rest of a run from its expected course and the bytes moved. It reads no clock.
///
/// Machines differ from the expectation, but mostly by the same factor throughout the run. So the bytes moved show how
/// much of the expected course is over, and the rest is assumed to continue at the pace so far. A link that is slower
/// than all computing is noticed late; in recorded runs, the remaining time is then up to four times the estimate.
#[derive(Debug, Clone)]
pub struct Left {
    course: Course,
    /// The number of the current leg, and the bytes and expected seconds of the legs before it.
    leg: usize,
    before: Leg,
    /// The start of the leg in seconds, and the pace by then.
    began: f64,
    pace: f64,
}

impl Left {
    /// Returns the estimator at the start of this course.
    pub fn of(course: Course) -> Left {
        Left { course, leg: 0, before: Leg::default(), began: 0.0, pace: 1.0 }
    }

    /// Returns the time left until the end of the protocol, given the time since it began and the bytes moved in both
    /// directions. Neither may decrease from one call to the next. `None` if too few bytes have moved, if the course is
    /// empty, or if the time does not fit a [`Duration`].
    pub fn at(&mut self, elapsed: Duration, moved: u64) -> Option<Duration> {
        let (now, moved) = (elapsed.as_secs_f64(), moved as f64);
        let (legs, count, all) = (&self.course.legs, self.course.count(), self.course.seconds());
        if count == 0 {
            return None;
        }
        let trust = TRUST * all;
        while self.leg + 1 < count {
            let leg = legs[self.leg % legs.len()];
            let end = self.before.bytes + leg.bytes;
            // A leg without traffic is over once anything is sent.
            let goes_on = if leg.bytes == 0.0 { moved <= end } else { moved < end - INEXACT * leg.bytes };
            if goes_on {
                break;
            }
            self.before = Leg { bytes: end, seconds: self.before.seconds + leg.seconds };
            self.leg += 1;
            self.began = now;
            self.pace = pace(now, self.before.seconds, trust);
        }
        let leg = legs[self.leg % legs.len()];
        let part = match (moved - self.before.bytes) / leg.bytes.max(1.0) {
            by_bytes if by_bytes > 0.0 => by_bytes.min(1.0),
            _ => ((now - self.began) / (leg.seconds * self.pace).max(1e-9)).min(UNSEEN),
        };
        let done = self.before.seconds + part * leg.seconds;
        let left = Duration::try_from_secs_f64((all - done).max(0.0) * pace(now, done, trust)).ok()?;
        (moved > 0.0 && moved >= self.course.enough).then_some(left)
    }
}

/// Actual seconds per expected second: `expected` seconds took `seconds`, and the course is trusted for `trust` more.
fn pace(seconds: f64, expected: f64, trust: f64) -> f64 {
    (seconds + trust) / (expected + trust).max(1e-9)
}
