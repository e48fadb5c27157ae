//! Calls into decoders of other projects, which may panic on what is damaged.

use std::any::Any;
use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind, set_hook, take_hook};
use std::sync::Once;

thread_local! {
    /// Whether a panic of this thread is caught, and is for nobody to read.
    static GUARDED: Cell<bool> = const { Cell::new(false) };
}

/// Runs a step that may panic on what is damaged. `None` if it does: an error says so, and standard error has no word of the
/// panic, which might quote the data.
///
/// The first call sets a panic hook in front of the program's. It only keeps silent about such steps, on the thread that runs
/// them; and not at all in a program that ends with a panic (`panic = "abort"`), which would end without a word.
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
    // Unwind-safe: nobody uses again what a step that panicked has worked on.
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
