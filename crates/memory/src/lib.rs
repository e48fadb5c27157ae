//! Termination of a program that runs out of memory, and the memory use of a test.
//!
//! By default, Rust prints the size of the failed allocation and aborts. That does not say what to do, and SIGABRT may
//! leave a core dump with the data in it. Stable Rust has no hook for it. So this module wraps the system's
//! allocator with a message and an exit code for failures. It is a crate of its own because an allocator is `unsafe`.
//!
//! The process ends within the allocation. It does not unwind, and runs no destructor or exit handler, as each could
//! need memory, or a lock that this thread holds. So files must not depend on destructors.

use std::alloc::{GlobalAlloc, Layout, System};
#[cfg(all(target_os = "linux", target_env = "gnu"))]
use std::ffi::c_int;
use std::fmt::Arguments;
use std::io::Write;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The exit code of a process that runs out of memory: `EX_OSERR` of `sysexits.h`.
pub const EXIT_CODE: u8 = 71;

/// The system's allocator, for a program's `#[global_allocator]`. If it fails, the process writes a line to standard
/// error and exits with [`EXIT_CODE`]; where the system is not Unix, it aborts.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemOrExit;

// SAFETY: every call goes to `System` with the same arguments, and its result is returned. A call that neither returns
// nor unwinds has no postcondition.
unsafe impl GlobalAlloc for SystemOrExit {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller upholds the conditions of `System`.
        or_exit(unsafe { System.alloc(layout) }, layout.size())
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as in `alloc`.
        or_exit(unsafe { System.alloc_zeroed(layout) }, layout.size())
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: as in `alloc`; `block` came from `System`.
        or_exit(unsafe { System.realloc(block, layout, size) }, size)
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        // SAFETY: as in `realloc`.
        unsafe { System.dealloc(block, layout) }
    }
}

/// Makes blocks of 4 MiB and more return to the system as soon as they are freed, if the system's allocator is glibc's.
/// By default, glibc raises this threshold as such blocks are freed, up to 32 MiB, and keeps smaller blocks: a run over
/// a million items then holds 60 MB of unused memory.
///
/// Up to 8 MiB of free memory at the end of a heap stays with the process. If only the first threshold is fixed, glibc
/// uses 128 KiB for this one, and each frame's memory is returned and fetched again, page by page.
pub fn return_large_blocks() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    {
        const M_TRIM_THRESHOLD: c_int = -1;
        const M_MMAP_THRESHOLD: c_int = -3;
        unsafe extern "C" {
            fn mallopt(parameter: c_int, value: c_int) -> c_int;
        }
        for (parameter, bytes) in [(M_MMAP_THRESHOLD, 4 << 20), (M_TRIM_THRESHOLD, 8 << 20)] {
            // SAFETY: the prototype matches `malloc.h`; the call may be made at any time, and takes no pointers. It
            // returns 0 if it refuses, and then has no effect.
            unsafe { mallopt(parameter, bytes) };
        }
    }
}

/// The system's allocator with a count of the allocated bytes, for the `#[global_allocator]` of a test.
#[derive(Debug, Default)]
pub struct Counting {
    now: AtomicUsize,
    most: AtomicUsize,
}

impl Counting {
    /// Returns an allocator with a count of 0.
    pub const fn new() -> Counting {
        Counting { now: AtomicUsize::new(0), most: AtomicUsize::new(0) }
    }

    /// Returns the number of bytes allocated now, and resets [`Counting::most`] to it.
    pub fn restart(&self) -> usize {
        let now = self.now.load(Ordering::SeqCst);
        self.most.store(now, Ordering::SeqCst);
        now
    }

    /// Returns the maximum number of bytes allocated at any time since the last [`Counting::restart`]. While a block is
    /// reallocated, its old and its new size both count.
    pub fn most(&self) -> usize {
        self.most.load(Ordering::SeqCst)
    }

    fn grow(&self, bytes: usize) {
        let now = self.now.fetch_add(bytes, Ordering::Relaxed) + bytes;
        self.most.fetch_max(now, Ordering::Relaxed);
    }
}

// SAFETY: as for `SystemOrExit`; a null block ends the test anyway.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        self.grow(layout.size());
        // SAFETY: the caller upholds the conditions of `System`.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        self.grow(layout.size());
        // SAFETY: as in `alloc`.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // The old and the new block may both exist while it moves.
        self.grow(size);
        // SAFETY: as in `alloc`; `block` came from `System`.
        let moved = unsafe { System.realloc(block, layout, size) };
        self.now.fetch_sub(layout.size(), Ordering::Relaxed);
        moved
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        self.now.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: as in `realloc`.
        unsafe { System.dealloc(block, layout) }
    }
}

#[inline]
fn or_exit(block: *mut u8, size: usize) -> *mut u8 {
    if block.is_null() {
        exhausted(size);
    }
    block
}

#[cold]
fn exhausted(size: usize) -> ! {
    exit_with(format_args!("{size} more bytes cannot be had"))
}

/// Ends the process as a failed allocation does, for other failures to obtain memory.
pub fn exit(what: &str) -> ! {
    exit_with(format_args!("{what}"))
}

/// Ends the process without allocating or locking.
fn exit_with(what: Arguments) -> ! {
    let mut line = [0; 256];
    let room = line.len();
    let mut rest = &mut line[..];
    // An overlong line is truncated.
    let _ = rest.write_fmt(format_args!(
        "veilset: not enough memory: {what}. Free memory, raise the limit (ulimit -v) or split the input, and run again\n"
    ));
    let used = room - rest.len();
    exit_saying(&line[..used])
}

#[cfg(unix)]
fn exit_saying(message: &[u8]) -> ! {
    // SAFETY: `message` is initialised over its length, and both calls may be made at any time, from any thread.
    unsafe {
        libc::write(2, message.as_ptr().cast(), message.len());
        libc::_exit(i32::from(EXIT_CODE))
    }
}

#[cfg(not(unix))]
fn exit_saying(_: &[u8]) -> ! {
    std::process::abort()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_allocated_is_what_was_asked_for() {
        let layout = Layout::from_size_align(100, 16).unwrap();
        let bigger = Layout::from_size_align(1000, 16).unwrap();
        // SAFETY: the layouts are not empty, blocks are read within their bounds, and freed once with their own layout.
        unsafe {
            let block = SystemOrExit.alloc_zeroed(layout);
            assert!(std::slice::from_raw_parts(block, 100).iter().all(|&byte| byte == 0));
            block.write_bytes(7, 100);
            let block = SystemOrExit.realloc(block, layout, 1000);
            assert!(std::slice::from_raw_parts(block, 100).iter().all(|&byte| byte == 7));
            SystemOrExit.dealloc(block, bigger);
            let block = SystemOrExit.alloc(layout);
            assert_eq!(block as usize % 16, 0);
            SystemOrExit.dealloc(block, layout);
        }
    }
}
