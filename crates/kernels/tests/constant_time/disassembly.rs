//! Disassembly of this executable, to check the functions of the curve's AVX-512 path.
//!
//! That path multiplies with `vpmadd52luq` and `vpmadd52huq`, and all field code is inlined into the functions that
//! contain them. So the functions to check are identified by these instructions, not by name.
//!
//! The check proves, for all inputs, that in these functions no vector and no mask goes to the flags or to the
//! addresses of a gather, and no mask goes to a general register. It proves nothing about general registers and memory,
//! which decode and encode elements. That source code is shared by all paths: memcheck checks it on the other paths,
//! and [`crate::trace`] on this one.

use std::arch::x86_64::*;
use std::collections::BTreeMap;
use std::hint::black_box;
use std::process::Command;

/// An instruction in the syntax of objdump.
pub(crate) struct Instruction {
    pub(crate) address: u64,
    /// The index of the function's name.
    pub(crate) function: usize,
    pub(crate) mnemonic: String,
    pub(crate) operands: String,
}

pub(crate) struct Disassembly {
    pub(crate) functions: Vec<String>,
    pub(crate) instructions: Vec<Instruction>,
}

/// Disassembles the running executable.
pub(crate) fn disassemble() -> Disassembly {
    let output = Command::new("objdump")
        .args(["--disassemble", "--no-show-raw-insn", "--wide", "--section=.text"])
        .arg(std::env::current_exe().unwrap())
        .output()
        .expect("these tests need objdump, of the binutils");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let (mut functions, mut instructions) = (Vec::new(), Vec::new());
    for line in String::from_utf8(output.stdout).unwrap().lines() {
        // "0000000000031dc0 <name>:", then lines of "   31dc0:", tab, "mov    0x8(%rax),%rcx        # a remark".
        if let Some((_, name)) = line.split_once(" <").filter(|_| line.ends_with(">:")) {
            functions.push(name.trim_end_matches(">:").to_string());
        } else if let Some((address, text)) = line.split_once(":\t") {
            let text = text.split('#').next().unwrap().trim();
            let (mut mnemonic, mut operands) = text.split_once(' ').unwrap_or((text, ""));
            while ["rep", "repz", "repnz", "lock", "notrack", "bnd", "data16", "cs"].contains(&mnemonic) {
                (mnemonic, operands) = operands.trim_start().split_once(' ').unwrap_or((operands, ""));
            }
            instructions.push(Instruction {
                address: u64::from_str_radix(address.trim(), 16).unwrap(),
                function: functions.len() - 1,
                mnemonic: mnemonic.to_string(),
                operands: operands.trim_start().to_string(),
            });
        }
    }
    assert!(instructions.len() > 10_000, "objdump wrote something else than was expected");
    Disassembly { functions, instructions }
}

/// Returns whether an instruction is a division or a square root, whose time depends on the operands.
pub(crate) fn divides(mnemonic: &str) -> bool {
    ["div", "idiv", "vdiv", "vsqrt", "divs", "divp", "sqrt"].iter().any(|start| mnemonic.starts_with(start))
}

/// Returns whether an instruction may lead from a vector or a mask to a branch or to an address.
fn is_suspect(Instruction { mnemonic, operands, .. }: &Instruction) -> bool {
    // A comparison whose result is a mask may stay among the vectors; only instructions that leave them matter.
    let to_flags = ["vtest", "kortest", "ktest", "vucomi", "ucomi", "vcomi", "comis"];
    let to_register = ["vpmovmsk", "pmovmsk", "vmovmsk", "movmsk"];
    let by_index = ["vgather", "vpgather", "vscatter", "vpscatter"];
    // AT&T syntax: the destination is the last operand.
    let general = |operand: &str| operand.starts_with("%r") || operand.starts_with("%e");
    let from_mask = mnemonic.starts_with("kmov") && operands.rsplit(',').next().is_some_and(general);
    let starts = |list: &[&str]| list.iter().any(|start| mnemonic.starts_with(start));
    ["vptest", "ptest"].contains(&mnemonic.as_str())
        || starts(&to_flags)
        || starts(&to_register)
        || starts(&by_index)
        || from_mask
}

/// The suspect instructions of every function that uses the multipliers of the AVX-512 path.
fn suspects(all: &Disassembly) -> BTreeMap<usize, Vec<String>> {
    let multiplies = |i: &&Instruction| i.mnemonic.starts_with("vpmadd52");
    let mut found: BTreeMap<usize, Vec<String>> =
        all.instructions.iter().filter(multiplies).map(|i| (i.function, Vec::new())).collect();
    for i in all.instructions.iter().filter(|i| is_suspect(i)) {
        if let Some(found) = found.get_mut(&i.function) {
            found.push(format!("{:x}: {} {}", i.address, i.mnemonic, i.operands));
        }
    }
    found
}

#[test]
fn in_the_avx512_path_no_vector_leads_to_a_branch_or_an_address() {
    // Referenced so that the linker keeps them.
    let controls: [unsafe fn(__m512i) -> u64; 3] = [leaking_mask, leaking_test, leaking_gather];
    black_box(controls);
    let all = disassemble();
    let (mut clean, mut noticed) = (Vec::new(), 0);
    for (function, suspects) in suspects(&all) {
        let name = &all.functions[function];
        if name.contains("disassembly") && name.contains("leaking_") {
            assert!(!suspects.is_empty(), "not noticed: {name}");
            noticed += 1;
        } else {
            assert!(suspects.is_empty(), "{name}: {suspects:#?}");
            clean.push(name);
        }
    }
    assert_eq!(noticed, controls.len());
    // The map and the ladder.
    assert!(clean.len() >= 2, "{clean:?}");
    assert!(clean.iter().all(|name| name.contains("veilset_kernels") && name.contains("ifma")), "{clean:?}");
}

#[test]
fn no_kernel_divides() {
    black_box(leaking_division as fn(u64) -> u64);
    let all = disassemble();
    let dividing = |part: &str| {
        let inside = |i: &&Instruction| all.functions[i.function].contains(part);
        let found = all.instructions.iter().filter(|i| divides(&i.mnemonic)).filter(inside);
        found.map(|i| format!("{:x} in {}", i.address, all.functions[i.function])).collect::<Vec<_>>()
    };
    assert_eq!(dividing("veilset_kernels"), Vec::<String>::new());
    assert_ne!(dividing("leaking_division"), Vec::<String>::new());
}

// ---- Leaks that the check must detect. ----

#[inline(never)]
#[target_feature(enable = "avx512f,avx512ifma")]
fn leaking_mask(a: __m512i) -> u64 {
    let mask = _mm512_cmpeq_epi64_mask(_mm512_madd52lo_epu64(a, a, a), a);
    if mask & 4 == 4 { black_box(1) } else { black_box(black_box(2) + 3) }
}

#[inline(never)]
#[target_feature(enable = "avx512f,avx512ifma")]
fn leaking_test(a: __m512i) -> u64 {
    let product = _mm512_castsi512_si256(_mm512_madd52hi_epu64(a, a, a));
    if _mm256_testz_si256(product, product) == 1 { black_box(1) } else { black_box(black_box(2) + 3) }
}

#[inline(never)]
#[target_feature(enable = "avx512f,avx512ifma")]
fn leaking_gather(a: __m512i) -> u64 {
    let table = black_box([5u64; 64]);
    let index = _mm512_srli_epi64::<60>(_mm512_madd52lo_epu64(a, a, a));
    // SAFETY: every index is below 16.
    let found = unsafe { _mm512_i64gather_epi64::<8>(index, table.as_ptr().cast()) };
    _mm512_reduce_or_epi64(found).cast_unsigned()
}

#[inline(never)]
fn leaking_division(a: u64) -> u64 {
    black_box(1 << 60) / (a | 1)
}
