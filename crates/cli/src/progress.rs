//! Progress: a bar on a terminal, otherwise one line per stage, or two if the time left is known only later.

use indicatif::{HumanCount, ProgressBar, ProgressDrawTarget, ProgressState, ProgressStyle};
use std::fmt;
use std::io::{IsTerminal, Write};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{Builder, JoinHandle};
use std::time::{Duration, Instant};
use veilset::channel::{Observer, Unit};
use veilset::course::{Course, Left};

/// Work that is shorter than this needs no sign of life.
const NOTICED: Duration = Duration::from_secs(2);
/// The interval between updates of the display on a terminal.
const RENEWED: Duration = Duration::from_millis(200);

/// The duration of a run before its remaining time is shown.
const SHOWN: Duration = Duration::from_secs(3);
/// The shortest remaining time that is shown.
const WORTH: Duration = Duration::from_secs(1);

/// Shows a run's progress on standard error.
pub struct Progress {
    terminal: bool,
    stage: Mutex<Stage>,
    left: Arc<WhatIsLeft>,
}

/// The remaining time of the current run.
#[derive(Default)]
struct WhatIsLeft {
    moved: AtomicU64,
    run: Mutex<Option<(Instant, Left)>>,
}

impl WhatIsLeft {
    fn run(&self) -> MutexGuard<'_, Option<(Instant, Left)>> {
        self.run.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the remaining time as a part of a sentence: ", about 40 s left". Empty if it is unknown or short, or the run has
    /// just begun.
    fn words(&self, now: Instant) -> String {
        let mut run = self.run();
        let Some((began, left)) = &mut *run else { return String::new() };
        let elapsed = now.saturating_duration_since(*began);
        match left.at(elapsed, self.moved.load(Ordering::Relaxed)) {
            Some(left) if elapsed >= SHOWN && left >= WORTH => format!(", about {} left", rounded(left)),
            _ => String::new(),
        }
    }
}

/// Formats a time in a suitable unit: 47 s, 12 min, 3 h.
fn rounded(time: Duration) -> String {
    let seconds = time.as_secs_f64();
    let (unit, of) =
        [("s", 1.0), ("min", 60.0)].into_iter().find(|(_, of)| seconds < 99.5 * of).unwrap_or(("h", 3600.0));
    format!("{:.0} {unit}", seconds / of)
}

#[derive(Default)]
struct Stage {
    /// The number of stages; 0 until it is known.
    all: usize,
    /// The number of the stage, starting at 1.
    number: usize,
    /// Whether the remaining time was shown in this stage. In a log, it is shown once per stage.
    said: bool,
    bar: Option<(Unit, ProgressBar)>,
}

impl Progress {
    /// Creates the display.
    pub fn new() -> Self {
        let terminal = std::io::stderr().is_terminal();
        Progress { terminal, stage: Mutex::default(), left: Arc::default() }
    }

    /// Marks the end of the run; `all` tells whether it is complete or was aborted.
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
    fn begins(&self, stages: usize, course: &Course) {
        self.now().all = stages;
        self.left.moved.store(0, Ordering::Relaxed);
        *self.left.run() = Some((Instant::now(), Left::of(course.clone())));
    }

    fn stage(&self, name: &'static str, unit: Unit, total: usize) {
        let mut stage = self.now();
        stage.number += 1;
        let name = match stage.all {
            0 | 1 => name.to_string(),
            all => format!("step {} of {}, {name}", stage.number, all.max(stage.number)),
        };
        // A new stage shows that the one before is done, even if slightly less was transferred than expected.
        if let Some((_, bar)) = stage.bar.take() {
            bar.finish();
        }
        if !self.terminal {
            // The run continues even if this cannot be printed.
            let left = self.left.words(Instant::now());
            stage.said = !left.is_empty();
            let _ = writeln!(std::io::stderr(), "{name}{left}");
            return;
        }
        let rate = match unit {
            Unit::Items => "{human_pos}/{human_len} items, {rate}",
            Unit::Bytes => "{bytes}/{total_bytes}, {bytes_per_sec}",
        };
        let template = format!("{{msg:23}} [{{bar:30}}] {rate}{{left}}");
        let bar = ProgressBar::with_draw_target(Some(total as u64), ProgressDrawTarget::stderr());
        if let Ok(style) = ProgressStyle::with_template(&template) {
            let left = self.left.clone();
            let write = move |_: &ProgressState, out: &mut dyn fmt::Write| {
                let _ = out.write_str(&left.words(Instant::now()));
            };
            let rate = |state: &ProgressState, out: &mut dyn fmt::Write| {
                let _ = write!(out, "{}/s", HumanCount(state.per_sec() as u64));
            };
            bar.set_style(style.progress_chars("=> ").with_key("left", write).with_key("rate", rate));
        }
        bar.set_message(name);
        // The remaining time changes even while nothing is sent.
        bar.enable_steady_tick(RENEWED);
        stage.bar = Some((unit, bar));
    }

    fn advance(&self, unit: Unit, amount: usize, bytes: usize) {
        self.left.moved.fetch_add(bytes as u64, Ordering::Relaxed);
        let mut stage = self.now();
        match &stage.bar {
            Some((of, bar)) if *of == unit => bar.inc(amount as u64),
            _ => {}
        }
        if !self.terminal && !stage.said {
            let left = self.left.words(Instant::now());
            if let Some(left) = left.strip_prefix(", ") {
                stage.said = true;
                let _ = writeln!(std::io::stderr(), "{left}");
            }
        }
    }
}

/// A sign of life on standard error during long work of unknown length: reading a file, hashing its keys. It is a line that is
/// updated and finally cleared on a terminal, and otherwise one line per piece of long work.
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
    /// Starts the display with this piece of work. If `quiet`, or if no thread can be started, it shows nothing.
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

    /// Continues the display with this piece of work.
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

    /// Waits until this piece of work is over, for `at_most` at the longest. Returns whether it is over.
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
                // The run continues even if this cannot be printed.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_is_said_from_the_third_second_on() {
        let began = Instant::now();
        let left = WhatIsLeft::default();
        assert_eq!(left.words(began), "");
        let course = Course::new([(100.0, 1000)]);
        *left.run() = Some((began, Left::of(course)));
        left.moved.store(250, Ordering::Relaxed);
        let after = |seconds: f64| left.words(began + Duration::from_secs_f64(seconds));
        assert_eq!(after(2.9), "");
        assert_eq!(after(25.0), ", about 75 s left");
        left.moved.store(995, Ordering::Relaxed);
        assert_eq!(after(99.5), "");
    }

    #[test]
    fn times_are_in_the_unit_that_suits_them() {
        let cases = [
            (1.2, "1 s"),
            (99.4, "99 s"),
            (99.6, "2 min"),
            (3600.0, "60 min"),
            (9000.0, "2 h"),
            (1e6, "278 h"),
        ];
        for (seconds, said) in cases {
            assert_eq!(rounded(Duration::from_secs_f64(seconds)), said);
        }
    }
}
