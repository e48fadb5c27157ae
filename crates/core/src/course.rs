//! How a run is expected to go, and what is left of it.

use std::time::Duration;

/// The part of the expected course that is believed as much as the run that is seen, which shows its pace by then.
const TRUST: f64 = 0.05;
/// The part of a leg that is taken for done by its time alone, while nothing is sent in it.
const UNSEEN: f64 = 0.8;
/// The part of a run's bytes that must have moved before anything is said of what is left: the link shows its pace by then.
const ENOUGH: f64 = 0.1;
/// The part of a leg's bytes that may be missing at its end: the lengths of coded tags are not exact.
const INEXACT: f64 = 0.005;

/// The expected course of a run: its legs, one after the other, each with what both parties send in it and how long it takes.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Course {
    /// The legs of one run.
    legs: Vec<Leg>,
    /// The number of runs, one after the other.
    runs: usize,
    /// Bytes, both ways together, that must have moved before anything is said.
    enough: f64,
}

/// A part of a run.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
struct Leg {
    /// Bytes, both ways together.
    bytes: f64,
    /// Seconds that it is expected to take.
    seconds: f64,
}

impl Course {
    /// The course of a run whose legs take so many seconds, and send so many bytes, both ways together.
    pub fn new(legs: impl IntoIterator<Item = (f64, u64)>) -> Course {
        let leg = |(seconds, bytes)| Leg { seconds, bytes: bytes as f64 };
        let legs: Vec<Leg> = legs.into_iter().map(leg).collect();
        let enough = ENOUGH * legs.iter().map(|leg| leg.bytes).sum::<f64>();
        Course { legs, runs: 1, enough }
    }

    /// The same so many times, one after the other.
    #[must_use]
    pub fn repeated(&self, times: usize) -> Course {
        Course { runs: self.runs * times, ..self.clone() }
    }

    /// The number of legs of all runs together.
    fn count(&self) -> usize {
        self.legs.len() * self.runs
    }

    /// Seconds that all runs together are expected to take.
    fn seconds(&self) -> f64 {
        self.legs.iter().map(|leg| leg.seconds).sum::<f64>() * self.runs as f64
    }
}

/// What is left of a run, by its expected course and the bytes that have moved. It knows no clock.
///
/// Machines are other than expected, but mostly by the same factor throughout the run. So what has moved tells how much of the
/// expected course is over, and what is left goes on at the pace of that. A link that is slower than all computing is noticed late,
/// and what is left is then up to four times as much as is said.
#[derive(Debug, Clone)]
pub struct Left {
    course: Course,
    /// The number of the leg that goes on, and the bytes and expected seconds of those before it.
    leg: usize,
    before: Leg,
    /// When it began, in seconds, and at what pace.
    began: f64,
    pace: f64,
}

impl Left {
    /// All of it.
    pub fn of(course: Course) -> Left {
        Left { course, leg: 0, before: Leg::default(), began: 0.0, pace: 1.0 }
    }

    /// What is left until the end of the protocol, once so much time has passed since it began, and so many bytes have moved, both
    /// ways together. Neither may decrease from one call to the next. `None` if it cannot be told yet, or nothing is expected.
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
            // A leg in which nothing is sent is over once something is.
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

/// Seconds for each expected one, if so many were expected in this time, and besides the course is trusted for so many.
fn pace(seconds: f64, expected: f64, trust: f64) -> f64 {
    (seconds + trust) / (expected + trust).max(1e-9)
}
