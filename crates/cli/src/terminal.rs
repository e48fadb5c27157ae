//! The program as a front end.

use crate::interrupt::Interrupt;
use crate::party::printer;
use crate::progress::{Life, Progress};
use std::io::Write;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use veilset::channel::{Canceller, Observer};
use veilset::party::{InputTable, Phase};
use veilset_app::front::Front;
use veilset_app::words::{as_options, of_phase};

/// Shows progress on standard error, and stops at signals.
pub struct Terminal<'a> {
    quiet: bool,
    /// The description of the table that is read.
    input: String,
    interrupt: &'a Interrupt,
    life: Mutex<Option<Life>>,
    bar: Mutex<Option<Arc<Progress>>>,
}

/// Prints a warning, even with --quiet, so that unattended runs show it.
pub fn warn(line: &str) {
    // Standard error may have no reader.
    let _ = writeln!(std::io::stderr(), "warning: {}", as_options(line));
}

fn locked<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

impl<'a> Terminal<'a> {
    pub fn new(quiet: bool, source: Option<&InputTable>, interrupt: &'a Interrupt) -> Terminal<'a> {
        let input = source.map(InputTable::name).unwrap_or_default();
        Terminal { quiet, input, interrupt, life: Mutex::default(), bar: Mutex::default() }
    }

    fn live(&self, what: Option<String>) {
        let mut life = locked(&self.life);
        match (&*life, what) {
            (Some(life), Some(what)) => life.next(what),
            (None, Some(what)) => *life = Some(Life::begin(self.quiet, what)),
            (_, None) => *life = None,
        }
    }
}

impl Front for Terminal<'_> {
    fn stop(&self) -> Arc<dyn Fn() -> bool + Send + Sync> {
        let interrupt = self.interrupt.clone();
        Arc::new(move || interrupt.happened())
    }

    fn phase(&self, phase: Option<Phase>) {
        self.live(phase.map(|phase| of_phase(phase, &self.input)));
    }

    fn read(&self, bytes: u64) {
        locked(&self.life).iter().for_each(|life| life.read(bytes));
    }

    fn say(&self, line: &str) {
        printer(self.quiet)(line);
    }

    fn warn(&self, line: &str) {
        warn(line);
    }

    fn begins(&self, canceller: Canceller) {
        self.interrupt.run_begins(canceller);
    }

    fn observer(&self) -> Option<Arc<dyn Observer>> {
        let progress = Arc::new(Progress::new());
        *locked(&self.bar) = Some(progress.clone());
        (!self.quiet).then_some(progress as Arc<_>)
    }

    fn together(&self, others: usize) {
        self.live(Some(format!(
            "computing with {others} other part{}",
            if others == 1 { "y" } else { "ies" }
        )));
    }

    fn ends(&self, all: bool) {
        self.live(None);
        locked(&self.bar).take().iter().for_each(|bar| bar.end(all));
        if all {
            self.interrupt.run_ends();
        }
    }

    fn done(&self, what: String) {
        self.interrupt.done(0, what);
    }
}
