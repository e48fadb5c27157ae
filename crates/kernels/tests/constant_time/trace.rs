//! Single steps: a function runs with the trap flag set, so that the processor raises a signal before every
//! instruction, and the handler records the instruction and the addresses of its memory operands. Inputs that differ
//! only in secrets must give the same trace.
//!
//! The trace has all steps of the function, but only for the inputs tried. These include the special inputs of the
//! kernels: 0, p - 1, points of small order, all ones. In functions outside this executable, which copy and fill
//! memory, it has the instructions and the first three arguments of each call.

use std::alloc::{self, GlobalAlloc, Layout, System};
use std::arch::asm;
use std::cell::{Cell, UnsafeCell};
use std::collections::HashMap;
use std::ffi::{c_char, c_int, c_void};
use std::hint::black_box;
use std::sync::atomic::{AtomicPtr, Ordering};
use std::{mem, ptr};

use aws_lc_sys::CRYPTO_set_mem_functions;

use super::disassembly::{Disassembly, disassemble, divides};
use super::{FOREIGN, LARGE, LEAKS, SUBJECTS, Subject, is_unknown_to_valgrind, random};
use veilset_kernels::Backend;

/// A memory operand, given by the numbers of its registers in a signal's context.
struct Operand {
    base: Option<usize>,
    index: Option<usize>,
    scale: u64,
    offset: u64,
}

/// The handler's action for an instruction.
enum Kind {
    /// Record these operands.
    Plain(Vec<Operand>),
    /// Report the instruction: it divides, or its addresses are in a vector.
    Forbidden,
}

/// An instruction, and a number derived from the addresses of its operands.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Step {
    address: u64,
    operands: u64,
}

struct Tracer {
    disassembly: Disassembly,
    /// The load address of the executable.
    base: u64,
    /// For each byte of the text, the instruction that begins there.
    kinds: Vec<Option<Kind>>,
    /// Calls of functions with fewer than three arguments, and the number of arguments: other registers may hold a
    /// secret.
    few_arguments: Vec<(u64, usize)>,
    /// The trace being taken, never longer than its capacity.
    steps: Vec<Step>,
    overflow: bool,
}

/// The tracer for the handler.
static TRACER: AtomicPtr<Tracer> = AtomicPtr::new(ptr::null_mut());

/// Functions of the system with fewer than three arguments.
const FEW_ARGUMENTS: [(&str, usize); 7] = [
    ("pthread_once", 2),
    ("pthread_getspecific", 1),
    ("pthread_setspecific", 2),
    ("malloc", 1),
    ("free", 1),
    ("calloc", 2),
    ("realloc", 2),
];

/// Maximum length of a trace.
const STEPS: usize = 1 << 22;

impl Tracer {
    fn new() -> Self {
        extern "C" fn first(info: *mut libc::dl_phdr_info, _: usize, base: *mut libc::c_void) -> i32 {
            // SAFETY: both pointers are valid while dl_iterate_phdr runs; the second is the argument it was called
            // with.
            unsafe { *base.cast() = (*info).dlpi_addr };
            1
        }
        let mut base = 0u64;
        // SAFETY: the callback takes these types; the first object is the executable.
        unsafe { libc::dl_iterate_phdr(Some(first), (&raw mut base).cast()) };
        let disassembly = disassemble();
        let last = disassembly.instructions.iter().map(|i| i.address).max().unwrap();
        let mut kinds: Vec<Option<Kind>> = (0..=last).map(|_| None).collect();
        for i in &disassembly.instructions {
            kinds[i.address as usize] = Some(kind(&i.mnemonic, &i.operands));
        }
        let called = |name: &str, operands: &str| operands.ends_with(&format!("<{name}@plt>"));
        let few = |operands: &str| FEW_ARGUMENTS.iter().find(|(name, _)| called(name, operands));
        let few_arguments = disassembly.instructions.iter();
        let few_arguments = few_arguments.filter_map(|i| Some((i.address, few(&i.operands)?.1))).collect();
        Tracer { disassembly, base, kinds, few_arguments, steps: Vec::with_capacity(STEPS), overflow: false }
    }

    /// Traces a call.
    fn trace(&mut self, call: impl Fn()) -> Vec<Step> {
        self.steps.clear();
        self.overflow = false;
        // SAFETY: the handler has this signature, and is installed before a trap is raised. It accesses only the
        // tracer, which this function does not access until the flag is cleared.
        unsafe {
            let mut action: libc::sigaction = mem::zeroed();
            action.sa_sigaction = on_trap as *const () as usize;
            action.sa_flags = libc::SA_SIGINFO;
            assert_eq!(libc::sigaction(libc::SIGTRAP, &action, ptr::null_mut()), 0);
        }
        TRACER.store(self, Ordering::SeqCst);
        USED.set(Some(0));
        // SAFETY: sets the trap flag.
        unsafe { asm!("pushfq", "or qword ptr [rsp], 0x100", "popfq") };
        call();
        // SAFETY: clears the trap flag.
        unsafe { asm!("pushfq", "and qword ptr [rsp], -0x101", "popfq") };
        USED.set(None);
        TRACER.store(ptr::null_mut(), Ordering::SeqCst);
        assert!(!self.overflow, "more than {STEPS} steps");
        self.steps.clone()
    }

    fn kind(&self, address: u64) -> Option<&Kind> {
        self.kinds.get(usize::try_from(address.wrapping_sub(self.base)).ok()?)?.as_ref()
    }

    fn describe(&self, address: u64) -> String {
        let address = address.wrapping_sub(self.base);
        let Some(i) = self.disassembly.instructions.iter().find(|i| i.address == address) else {
            return "an instruction outside the executable".to_string();
        };
        format!("{:x}: {} {} in {}", address, i.mnemonic, i.operands, self.disassembly.functions[i.function])
    }
}

/// Gives the traced code its own memory, the same in each trace: the steps and addresses of the system's allocator
/// depend on all earlier allocations.
struct Arena;

#[global_allocator]
static ARENA: Arena = Arena;

/// The memory of the arena, for all allocations of a trace together.
#[repr(align(4096))]
struct Memory(UnsafeCell<[u8; 1 << 20]>);

// SAFETY: used by the one thread that takes traces.
unsafe impl Sync for Memory {}

static MEMORY: Memory = Memory(UnsafeCell::new([0; 1 << 20]));

thread_local! {
    /// The number of bytes of the arena in use, while this thread takes a trace.
    static USED: Cell<Option<usize>> = const { Cell::new(None) };
}

// SAFETY: an allocation is one of the system's or a part of the arena that was not handed out since the trace began;
// memory allocated in a trace is not used after it.
unsafe impl GlobalAlloc for Arena {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let memory = MEMORY.0.get();
        if let Some(used) = USED.get() {
            let start = (used + layout.align() - 1) & !(layout.align() - 1);
            if layout.align() <= align_of::<Memory>() && start + layout.size() <= size_of::<Memory>() {
                USED.set(Some(start + layout.size()));
                // SAFETY: the block ends within the arena.
                return unsafe { memory.cast::<u8>().add(start) };
            }
        }
        // SAFETY: the caller upholds the conditions of `System`.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // The arena is free again when the next trace begins.
        if (pointer as usize).wrapping_sub(MEMORY.0.get() as usize) >= size_of::<Memory>() {
            // SAFETY: the caller upholds the conditions of `System`.
            unsafe { System.dealloc(pointer, layout) }
        }
    }
}

/// Makes aws-lc allocate from the arena too: in the system's heap, the address of a block depends on the order in which
/// earlier ones were freed. Must be called before the library allocates.
fn arena_for_aws_lc() {
    const HEADER: usize = 16;
    fn layout(size: usize) -> Layout {
        Layout::from_size_align(size + HEADER, HEADER).expect("a size")
    }
    unsafe extern "C" fn allocate(size: usize, _: *const c_char, _: c_int) -> *mut c_void {
        // SAFETY: the layout is not empty, and the header is within it.
        unsafe {
            let block = alloc::alloc(layout(size));
            if block.is_null() {
                alloc::handle_alloc_error(layout(size));
            }
            block.cast::<usize>().write(size);
            block.add(HEADER).cast()
        }
    }
    unsafe extern "C" fn free(pointer: *mut c_void, _: *const c_char, _: c_int) {
        // SAFETY: the pointer is from `allocate`, which wrote the size before it.
        unsafe {
            let block = pointer.cast::<u8>().sub(HEADER);
            alloc::dealloc(block, layout(block.cast::<usize>().read()));
        }
    }
    unsafe extern "C" fn reallocate(
        pointer: *mut c_void,
        size: usize,
        file: *const c_char,
        line: c_int,
    ) -> *mut c_void {
        // SAFETY: as in `free`; both blocks have at least the number of bytes that are copied.
        unsafe {
            let other = allocate(size, file, line);
            let before = pointer.cast::<u8>().sub(HEADER).cast::<usize>().read();
            ptr::copy_nonoverlapping(pointer.cast::<u8>(), other.cast(), before.min(size));
            free(pointer, file, line);
            other
        }
    }
    // SAFETY: together the three functions are an allocator, and nothing has been allocated yet.
    let done = unsafe { CRYPTO_set_mem_functions(Some(allocate), Some(reallocate), Some(free)) };
    assert_eq!(done, 1, "aws-lc has not allocated yet");
}

/// Records a step. It runs between any two instructions of the traced code, and so must not allocate.
extern "C" fn on_trap(_: i32, _: *mut libc::siginfo_t, context: *mut libc::ucontext_t) {
    // SAFETY: the tracer exists while the flag is set, and the traced function does not touch it.
    let Some(tracer) = (unsafe { TRACER.load(Ordering::SeqCst).as_mut() }) else { return };
    // SAFETY: the kernel gives a valid context.
    let registers = unsafe { (*context).uc_mcontext.gregs }.map(i64::cast_unsigned);
    let address = registers[libc::REG_RIP as usize];
    let mut operands = 0u64;
    let mut note = |address: u64| operands = (operands ^ address).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    match tracer.kind(address) {
        Some(Kind::Plain(list)) => {
            for o in list {
                let register = |r: Option<usize>| r.map_or(0, |r| registers[r]);
                let index = register(o.index).wrapping_mul(o.scale);
                note(register(o.base).wrapping_add(index).wrapping_add(o.offset));
            }
        }
        Some(Kind::Forbidden) => operands = FORBIDDEN,
        None if tracer.steps.last().is_some_and(|last| tracer.kind(last.address).is_some()) => {
            let call = tracer.steps.last().map_or(0, |last| last.address);
            let few = tracer.few_arguments.iter().find(|(at, _)| *at == call.wrapping_sub(tracer.base));
            let arguments = [libc::REG_RDI, libc::REG_RSI, libc::REG_RDX];
            for argument in &arguments[..few.map_or(3, |few| few.1)] {
                note(registers[*argument as usize]);
            }
        }
        None => {}
    }
    if tracer.steps.len() < tracer.steps.capacity() {
        tracer.steps.push(Step { address, operands });
    } else {
        tracer.overflow = true;
    }
}

/// Marks the step of a forbidden instruction.
const FORBIDDEN: u64 = 0xbad;

/// Parses an instruction in AT&T syntax.
fn kind(mnemonic: &str, operands: &str) -> Kind {
    if divides(mnemonic) {
        return Kind::Forbidden;
    }
    // These do not access their operand in memory.
    if mnemonic.starts_with("lea") || mnemonic.starts_with("nop") || mnemonic.starts_with("prefetch") {
        return Kind::Plain(Vec::new());
    }
    // "%rax", "$0x8", "*0x10(%rbx)", "-0x8(%rbp,%rcx,8)", "%fs:0x28", "0x10(%rax){1to8}".
    let mut list = Vec::new();
    let mut before = operands;
    while let Some((offset, rest)) = before.split_once('(') {
        let (inside, after) = rest.split_once(')').expect("a closing parenthesis");
        let offset = offset.rsplit([',', ':', '*', ' ']).next().unwrap();
        let (negative, digits) = offset.strip_prefix('-').map_or((false, offset), |d| (true, d));
        let size = u64::from_str_radix(digits.trim_start_matches("0x"), 16).unwrap_or(0);
        let mut parts = inside.split(',');
        let mut register = || match parts.next().map(|r| r.trim()) {
            None | Some("" | "%rip" | "%eip" | "%riz" | "%eiz") => Ok(None),
            Some(name) => register(name).map(Some).ok_or(()),
        };
        let (Ok(base), Ok(index)) = (register(), register()) else { return Kind::Forbidden };
        let scale = parts.next().map_or(1, |scale| scale.parse().expect("a scale"));
        let offset = if negative { size.wrapping_neg() } else { size };
        list.push(Operand { base, index, scale, offset });
        before = after;
    }
    Kind::Plain(list)
}

/// The index of a 64-bit register in the context.
fn register(name: &str) -> Option<usize> {
    let place = match name {
        "%rax" => libc::REG_RAX,
        "%rbx" => libc::REG_RBX,
        "%rcx" => libc::REG_RCX,
        "%rdx" => libc::REG_RDX,
        "%rsi" => libc::REG_RSI,
        "%rdi" => libc::REG_RDI,
        "%rbp" => libc::REG_RBP,
        "%rsp" => libc::REG_RSP,
        "%r8" => libc::REG_R8,
        "%r9" => libc::REG_R9,
        "%r10" => libc::REG_R10,
        "%r11" => libc::REG_R11,
        "%r12" => libc::REG_R12,
        "%r13" => libc::REG_R13,
        "%r14" => libc::REG_R14,
        "%r15" => libc::REG_R15,
        _ => return None,
    };
    usize::try_from(place).ok()
}

/// Traces several secrets, and returns the length of the trace. An error describes a difference, or a forbidden
/// instruction.
fn compare(tracer: &mut Tracer, subject: &Subject, backend: Backend, n: usize) -> Result<usize, String> {
    let mut special = [[0; 32]; 7];
    special[1][0] = 1;
    special[2] = [0xff; 32];
    // p - 1, p, p + 1, and a point of order 8.
    for (u, low) in special[3..].iter_mut().zip([0xec, 0xed, 0xee]) {
        *u = [0xff; 32];
        (u[0], u[31]) = (low, 0x7f);
    }
    special[6] = [
        0xe0, 0xeb, 0x7a, 0x7c, 0x3b, 0x41, 0xb8, 0xae, 0x16, 0x56, 0xe3, 0xfa, 0xf1, 0x9f, 0xc4, 0x6a, 0xda,
        0x09, 0x8d, 0xeb, 0x9c, 0x32, 0xb1, 0xfd, 0x86, 0x62, 0x05, 0x16, 0x5f, 0x49, 0xb8, 0x00,
    ];
    let (mut key, mut data, mut out) = ([[0; 32]], vec![[0; 32]; n], vec![[0; 32]; n]);
    let mut first: Option<Vec<Step>> = None;
    for round in 0..3 {
        random(round, &mut key);
        random(round + 100, &mut data);
        match round {
            1 => {
                key = [[0; 32]];
                data.iter_mut().zip(special.iter().cycle()).for_each(|(data, special)| *data = *special);
            }
            2 => {
                key = [[0xff; 32]];
                data[0] = special[6];
            }
            _ => {}
        }
        let out = std::cell::RefCell::new(&mut out);
        let call = || {
            let ran = (subject.run)(black_box(backend), &key[0], &data, &mut out.borrow_mut());
            assert_eq!(ran, backend, "the path that was forced is the one that ran");
        };
        if first.is_none() {
            // One-time work, such as feature detection.
            call();
        }
        let steps = tracer.trace(call);
        if let Some(step) = steps.iter().find(|step| step.operands == FORBIDDEN) {
            return Err(format!("not constant-time: {}", tracer.describe(step.address)));
        }
        let first = first.get_or_insert_with(|| steps.clone());
        if let Some(i) = (0..first.len().max(steps.len())).find(|&i| first.get(i) != steps.get(i)) {
            let said = [&*first, &steps].map(|s| s.get(i).map(|s| tracer.describe(s.address)));
            let before = tracer.describe(steps[i.saturating_sub(1)].address);
            return Err(format!("step {i}, after {before}: {said:#?}"));
        }
    }
    Ok(first.map_or(0, |steps| steps.len()))
}

/// A single test, because there is only one handler.
#[test]
fn no_branch_and_no_address_depends_on_the_secrets_tried() {
    arena_for_aws_lc();
    let mut tracer = Tracer::new();
    // Leaks that it must detect.
    for (subject, said) in LEAKS.iter().zip(["leaking_branch", "leaking_look_up"]) {
        let result = compare(&mut tracer, subject, Backend::Portable, 1);
        assert!(result.as_ref().is_err_and(|e| e.contains(said)), "{}: {result:?}", subject.name);
    }
    let mut counts = HashMap::new();
    for subject in &SUBJECTS {
        for &backend in subject.backends.iter().filter(|b| is_unknown_to_valgrind(**b)) {
            if !backend.is_available() {
                println!("not traced, for this processor does not have it: {} {backend:?}", subject.name);
                continue;
            }
            // Steps are slow: one vector of the ladder. It is full, because empty lanes are 0, a point of small order.
            let n = if subject.name == "ladder" { 8 } else { 19 };
            match compare(&mut tracer, subject, backend, n) {
                Ok(steps) => counts.insert(subject.name, steps),
                Err(e) => panic!("{} {backend:?}: {e}", subject.name),
            };
        }
    }
    // Arithmetic of aws-lc, on every processor.
    for subject in &FOREIGN {
        match compare(&mut tracer, subject, Backend::Portable, 2) {
            Ok(steps) => counts.insert(subject.name, steps),
            Err(e) => panic!("{}: {e}", subject.name),
        };
    }
    println!("instructions traced: {counts:?}");
    // Two points, with 256 doublings of about ten multiplications each.
    assert!(counts["P-256 multiply"] > 2 * 256 * 10 * 25);
    // A ladder has 255 steps, each of ten multiplications.
    assert!(counts.get("ladder").is_none_or(|n| *n > 255 * 10 * 25));
}

/// Must not run with the other test, because there is only one handler.
#[test]
#[ignore = "takes minutes: run it alone, with --release"]
fn nor_do_those_of_paillier() {
    arena_for_aws_lc();
    let mut tracer = Tracer::new();
    let mut counts = HashMap::new();
    for subject in &LARGE {
        match compare(&mut tracer, subject, Backend::Portable, 2) {
            Ok(steps) => counts.insert(subject.name, steps),
            Err(e) => panic!("{}: {e}", subject.name),
        };
    }
    println!("instructions traced: {counts:?}");
    // At least 512 squarings of 16 words, 74 multiplications of 8 for each of five ciphertexts, and 512 squarings of 8.
    assert!(counts["Paillier combine"] > 512 * 16 * 16);
    assert!(counts["Paillier encrypt"] > 5 * 74 * 8 * 8 * 2);
    assert!(counts["Paillier decrypt"] > 512 * 8 * 8);
}
