//! The state that a run's thread and Python share: progress, messages, and the request to stop.

use crate::errors::as_python;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use veilset::channel::{Canceller, Observer, Unit};
use veilset::course::{Course, Left};
use veilset::party::Phase;
use veilset_app::front::Front;

/// The time that a stopped run may take alone, when it ends at its next step.
const ALONE: Duration = Duration::from_secs(1);
/// The time that a stopped run may take with others, who must be notified.
const WITH_OTHERS: Duration = Duration::from_secs(10);

/// The link between a run's thread and Python; `T` is the outcome. Clones share the state.
pub(crate) struct Link<T>(Arc<Shared<T>>);

struct Shared<T> {
    stopped: Arc<AtomicBool>,
    state: Mutex<State<T>>,
    ended: Condvar,
}

struct State<T> {
    /// The canceller of the run with the others, during that run.
    run: Option<Canceller>,
    /// Whether a frame is being read, which then must not be closed.
    reading: bool,
    /// The pending messages: the kind and the text of each.
    said: VecDeque<(&'static str, String)>,
    doing: Doing,
    /// The start of the run, the bytes transferred so far, and the estimator of its remaining time.
    left: Option<(Instant, u64, Left)>,
    over: bool,
    outcome: Option<T>,
}

/// The current progress.
#[derive(Clone, Default)]
pub(crate) struct Doing {
    pub(crate) what: String,
    /// The number of the stage of the run, from 1; 0 before the run.
    pub(crate) stage: usize,
    /// The number of stages; 0 if unknown.
    pub(crate) stages: usize,
    pub(crate) done: u64,
    /// The total amount in `unit`; 0 if unknown.
    pub(crate) total: u64,
    pub(crate) unit: &'static str,
    /// The remaining seconds of the run, if they can be estimated.
    pub(crate) left: Option<f64>,
}

impl<T> Clone for Link<T> {
    fn clone(&self) -> Link<T> {
        Link(self.0.clone())
    }
}

impl<T> Link<T> {
    pub(crate) fn new() -> Link<T> {
        let doing = Doing { unit: "bytes", ..Doing::default() };
        let state = State {
            run: None,
            reading: false,
            said: VecDeque::new(),
            doing,
            left: None,
            over: false,
            outcome: None,
        };
        Link(Arc::new(Shared { stopped: Arc::default(), state: Mutex::new(state), ended: Condvar::new() }))
    }

    /// Locks the state. Code that holds the lock must be quick and must not need Python.
    fn now(&self) -> MutexGuard<'_, State<T>> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Asks the run to stop, and notifies the other parties.
    pub(crate) fn cancel(&self) {
        self.0.stopped.store(true, Ordering::SeqCst);
        let run = self.now().run.clone();
        run.iter().for_each(Canceller::cancel);
    }

    /// Returns how long to wait for a run that was asked to stop.
    pub(crate) fn patience(&self) -> Duration {
        match *self.now() {
            State { reading: true, .. } => Duration::MAX,
            State { run: Some(_), .. } => WITH_OTHERS,
            State { run: None, .. } => ALONE,
        }
    }

    /// Returns whether the run is to stop.
    pub(crate) fn is_stopped(&self) -> bool {
        self.0.stopped.load(Ordering::SeqCst)
    }

    /// Marks whether a frame is being read.
    pub(crate) fn reading(&self, reading: bool) {
        self.now().reading = reading;
    }

    /// Ends the run with this outcome.
    pub(crate) fn end(&self, outcome: T) {
        let mut state = self.now();
        (state.run, state.over, state.outcome) = (None, true, Some(outcome));
        self.0.ended.notify_all();
    }

    /// Waits for the end, for `at_most` at the longest. Returns whether the run is over.
    pub(crate) fn wait(&self, at_most: Duration) -> bool {
        let waited = self.0.ended.wait_timeout_while(self.now(), at_most, |state| !state.over);
        waited.unwrap_or_else(PoisonError::into_inner).0.over
    }

    /// Takes the outcome; `None` before the end, and after it was taken.
    pub(crate) fn outcome(&self) -> Option<T> {
        self.now().outcome.take()
    }

    /// Returns the messages since the last call.
    pub(crate) fn said(&self) -> Vec<(&'static str, String)> {
        self.now().said.drain(..).collect()
    }

    pub(crate) fn doing(&self) -> Doing {
        let mut state = self.now();
        let left = state.left.as_mut().and_then(|(began, moved, left)| left.at(began.elapsed(), *moved));
        Doing { left: left.map(|left| left.as_secs_f64()), ..state.doing.clone() }
    }

    fn begin(&self, what: impl Into<String>) {
        self.now().doing = Doing { what: what.into(), unit: "bytes", ..Doing::default() };
    }
}

impl<T: Send + 'static> Front for Link<T> {
    fn stop(&self) -> Arc<dyn Fn() -> bool + Send + Sync> {
        let stopped = self.0.stopped.clone();
        Arc::new(move || stopped.load(Ordering::SeqCst))
    }

    fn phase(&self, phase: Option<Phase>) {
        match phase {
            Some(Phase::Reading) => self.begin("reading the table"),
            Some(Phase::Sorting) => self.begin("sorting the keys"),
            Some(_) => self.begin("preparing the keys"),
            None => {}
        }
    }

    fn read(&self, bytes: u64) {
        self.now().doing.done = bytes;
    }

    fn say(&self, line: &str) {
        self.now().said.push_back(("info", as_python(line)));
    }

    fn warn(&self, line: &str) {
        self.now().said.push_back(("warning", as_python(line)));
    }

    fn waits(&self) {
        self.begin("waiting for the other party");
    }

    fn begins(&self, canceller: Canceller) {
        self.now().run = Some(canceller.clone());
        // An earlier request to stop found no run to cancel.
        if self.0.stopped.load(Ordering::SeqCst) {
            canceller.cancel();
        }
    }

    fn observer(&self) -> Option<Arc<dyn Observer>> {
        Some(Arc::new(self.clone()))
    }

    fn together(&self, others: usize) {
        self.begin(format!("computing with {others} others"));
    }

    fn ends(&self, _: bool) {
        self.now().run = None;
    }
}

impl<T: Send> Observer for Link<T> {
    fn begins(&self, stages: usize, course: &Course) {
        let mut state = self.now();
        state.doing.stages = stages;
        state.left = Some((Instant::now(), 0, Left::of(course.clone())));
    }

    fn stage(&self, name: &'static str, unit: Unit, total: usize) {
        let mut state = self.now();
        let (stage, stages) = (state.doing.stage + 1, state.doing.stages);
        let (what, unit, total) = (name.into(), name_of(unit), total as u64);
        state.doing = Doing { what, stage, stages: stages.max(stage), done: 0, total, unit, left: None };
    }

    fn advance(&self, unit: Unit, amount: usize, bytes: usize) {
        let mut state = self.now();
        if let Some((_, moved, _)) = &mut state.left {
            *moved += bytes as u64;
        }
        let doing = &mut state.doing;
        if doing.unit == name_of(unit) {
            doing.done += amount as u64;
        }
    }
}

fn name_of(unit: Unit) -> &'static str {
    if unit == Unit::Items { "items" } else { "bytes" }
}
