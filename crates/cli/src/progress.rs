//! Progress: a bar on a terminal, otherwise one line per stage.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::io::{IsTerminal, Write};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{Builder, JoinHandle};
use std::time::Duration;
use veilset::channel::{Observer, Unit};

/// Shorter work needs no sign of life.
const NOTICED: Duration = Duration::from_secs(2);
/// How often a sign of life is updated on a terminal.
const RENEWED: Duration = Duration::from_millis(200);

/// Shows a run's progress on standard error.
pub struct Progress {
    terminal: bool,
    stage: Mutex<Stage>,
}

#[derive(Default)]
struct Stage {
    /// How many there are; 0 until it is known.
    all: usize,
    /// The number of the stage, starting at 1.
    number: usize,
    bar: Option<(Unit, ProgressBar)>,
}

impl Progress {
    /// Creates the display.
    pub fn new() -> Self {
        let terminal = std::io::stderr().is_terminal();
        Progress { terminal, stage: Mutex::default() }
    }

    /// Marks the end of the run: it is complete, or it was aborted here.
    pub fn end(&self, all: bool) {
        match self.now().bar.take() {
            Some((_, bar)) if all => bar.finish(),
            Some((_, bar)) => bar.abandon(),
            None => {}
        }
    }

    fn now(&self) -> MutexGuard<'_, Stage> {
        self.stage.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Observer for Progress {
    fn begins(&self, stages: usize) {
        self.now().all = stages;
    }

    fn stage(&self, name: &'static str, unit: Unit, total: usize) {
        let mut stage = self.now();
        stage.number += 1;
        let name = match stage.all {
            0 | 1 => name.to_string(),
            all => format!("step {} of {}, {name}", stage.number, all.max(stage.number)),
        };
        // A later stage shows that this one is done, even if slightly less was transferred than expected.
        if let Some((_, bar)) = stage.bar.take() {
            bar.finish();
        }
        if !self.terminal {
            // The run continues even if nobody reads this.
            let _ = writeln!(std::io::stderr(), "{name}");
            return;
        }
        let rate = match unit {
            Unit::Items => "{human_pos}/{human_len} items, {per_sec}",
            Unit::Bytes => "{bytes}/{total_bytes}, {bytes_per_sec}",
        };
        let template = format!("{{msg:23}} [{{bar:30}}] {rate}, {{eta}} left");
        let bar = ProgressBar::with_draw_target(Some(total as u64), ProgressDrawTarget::stderr());
        if let Ok(style) = ProgressStyle::with_template(&template) {
            bar.set_style(style.progress_chars("=> "));
        }
        bar.set_message(name);
        stage.bar = Some((unit, bar));
    }

    fn advance(&self, unit: Unit, amount: usize) {
        match &self.now().bar {
            Some((of, bar)) if *of == unit => bar.inc(amount as u64),
            _ => {}
        }
    }
}

/// A sign of life on standard error during long work of unknown length: reading a file, hashing its keys. On a
/// terminal it is a line that is updated and finally cleared; otherwise one line per piece of long work.
pub struct Life {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Default)]
struct Shared {
    doing: Mutex<Doing>,
    changed: Condvar,
    bytes: AtomicU64,
}

#[derive(Default)]
struct Doing {
    /// The current work; `None` at the end.
    what: Option<String>,
    /// The number of completed pieces of work.
    number: usize,
}

impl Life {
    /// Starts with this piece of work.
    pub fn begin(quiet: bool, what: String) -> Life {
        let shared = Arc::new(Shared::default());
        shared.now().what = Some(what);
        let shows = shared.clone();
        let thread =
            if quiet { None } else { Builder::new().name("life".into()).spawn(move || shows.show()).ok() };
        Life { shared, thread }
    }

    /// Sets the number of bytes read so far.
    pub fn read(&self, bytes: u64) {
        self.shared.bytes.store(bytes, Ordering::Relaxed);
    }

    /// Continues with this piece of work.
    pub fn next(&self, what: String) {
        self.shared.change(Some(what));
    }
}

impl Drop for Life {
    fn drop(&mut self) {
        self.shared.change(None);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl Shared {
    fn now(&self) -> MutexGuard<'_, Doing> {
        self.doing.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn change(&self, what: Option<String>) {
        let mut doing = self.now();
        self.bytes.store(0, Ordering::Relaxed);
        *doing = Doing { what, number: doing.number + 1 };
        self.changed.notify_all();
    }

    /// Waits until this piece of work is over, at most for `at_most`. Returns whether it is over.
    fn over(&self, number: usize, at_most: Duration) -> bool {
        let same = |doing: &mut Doing| doing.number == number;
        let waited = self.changed.wait_timeout_while(self.now(), at_most, same);
        let (doing, _) = waited.unwrap_or_else(PoisonError::into_inner);
        doing.number != number
    }

    fn show(&self) {
        let terminal = std::io::stderr().is_terminal();
        loop {
            let (what, number) = match &*self.now() {
                Doing { what: Some(what), number } => (what.clone(), *number),
                Doing { what: None, .. } => return,
            };
            if self.over(number, NOTICED) {
                continue;
            }
            if terminal {
                let line = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
                if let Ok(style) = ProgressStyle::with_template("{spinner} {msg}") {
                    line.set_style(style);
                }
                while !self.over(number, RENEWED) {
                    line.set_message(self.line(&what));
                    line.tick();
                }
                line.finish_and_clear();
            } else {
                // The run continues even if nobody reads this.
                let _ = writeln!(std::io::stderr(), "{}", self.line(&what));
                while !self.over(number, NOTICED) {}
            }
        }
    }

    fn line(&self, what: &str) -> String {
        match self.bytes.load(Ordering::Relaxed) {
            0 => format!("{what} ..."),
            bytes => format!("{what}: {} MB so far ...", bytes / 1_000_000),
        }
    }
}
