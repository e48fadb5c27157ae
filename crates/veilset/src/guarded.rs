//! Calls into third-party decoders, which may panic on damaged input.

use std::any::Any;
use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind, set_hook, take_hook};
use std::sync::Once;

thread_local! {
    /// Whether a panic on this thread will be caught and must not be printed.
    static GUARDED: Cell<bool> = const { Cell::new(false) };
}

/// Runs a step that may panic on damaged input. Returns `None` if it panics; the caller reports an error, and nothing about the
/// panic, which might quote the data, is written to standard error.
///
/// The first call sets a panic hook in front of the program's. The hook suppresses only such panics, on the thread that runs
/// the step. It suppresses none in a program built with `panic = "abort"`, which would otherwise end without a message.
pub fn guarded<T>(step: impl FnOnce() -> T) -> Option<T> {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let told = take_hook();
        set_hook(Box::new(move |panic| {
            if !GUARDED.get() || cfg!(panic = "abort") {
                told(panic);
            }
        }));
    });
    let before = GUARDED.replace(true);
    // Unwind-safe: state touched by a step that panicked is not used again.
    let done = catch_unwind(AssertUnwindSafe(step)).map_err(|_: Box<dyn Any + Send>| ());
    GUARDED.set(before);
    done.ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    /// Run by the other test, in a process of its own.
    #[test]
    fn panics_guarded_and_not() {
        assert_eq!(guarded(|| 7), Some(7));
        assert_eq!(guarded(|| -> i32 { panic!("a cell") }), None);
        let nested = || {
            assert_eq!(guarded(|| -> i32 { panic!("inner") }), None);
            panic!("outer")
        };
        assert_eq!(guarded(nested), None::<i32>);
        assert!(catch_unwind(|| panic!("a fault of ours")).is_err());
        assert!(std::thread::spawn(|| panic!("of another thread")).join().is_err());
    }

    #[test]
    fn only_what_is_guarded_is_silent() {
        let test = "guarded::tests::panics_guarded_and_not";
        let ran =
            Command::new(std::env::current_exe().unwrap()).args(["--exact", "--nocapture", test]).output();
        let ran = ran.unwrap();
        let said = String::from_utf8_lossy(&ran.stderr);
        assert!(ran.status.success(), "{said}");
        assert!(String::from_utf8_lossy(&ran.stdout).contains("1 passed"));
        for (words, heard) in [
            ("a cell", false),
            ("inner", false),
            ("outer", false),
            ("a fault of ours", true),
            ("of another thread", true),
        ] {
            assert_eq!(said.contains(words), heard, "{words}: {said}");
        }
    }
}
