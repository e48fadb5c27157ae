//! Progress: a bar on a terminal, a line per stage otherwise.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::io::{IsTerminal, Write};
use std::sync::{Mutex, PoisonError};
use veilset::channel::{Observer, Unit};

/// Shows on standard error how far a run is.
pub struct Progress {
    terminal: bool,
    stage: Mutex<Option<(Unit, ProgressBar)>>,
}

impl Progress {
    pub fn new() -> Self {
        Progress { terminal: std::io::stderr().is_terminal(), stage: Mutex::new(None) }
    }

    /// Takes the bar away.
    pub fn end(&self) {
        if let Some((_, bar)) = self.stage.lock().unwrap_or_else(PoisonError::into_inner).take() {
            bar.finish_and_clear();
        }
    }
}

impl Observer for Progress {
    fn stage(&self, name: &'static str, unit: Unit, total: usize) {
        if !self.terminal {
            let unit = if unit == Unit::Items { "items" } else { "bytes" };
            // That nobody reads it is no reason to end a run.
            let _ = writeln!(std::io::stderr(), "{name}: {total} {unit}");
            return;
        }
        self.end();
        let rate = match unit {
            Unit::Items => "{human_pos}/{human_len} items, {per_sec}",
            Unit::Bytes => "{bytes}/{total_bytes}, {bytes_per_sec}",
        };
        let template = format!("{{msg:10}} [{{bar:30}}] {rate}, {{eta}} left");
        let bar = ProgressBar::with_draw_target(Some(total as u64), ProgressDrawTarget::stderr());
        if let Ok(style) = ProgressStyle::with_template(&template) {
            bar.set_style(style.progress_chars("=> "));
        }
        bar.set_message(name);
        *self.stage.lock().unwrap_or_else(PoisonError::into_inner) = Some((unit, bar));
    }

    fn advance(&self, unit: Unit, amount: usize) {
        match &*self.stage.lock().unwrap_or_else(PoisonError::into_inner) {
            Some((of, bar)) if *of == unit => bar.inc(amount as u64),
            _ => {}
        }
    }
}
