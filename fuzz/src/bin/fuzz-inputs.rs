//! Converts the inputs of the targets to files for libFuzzer, and back: see `fuzz/README.md`.

use std::path::Path;
use veilset_fuzz::{TARGETS, Target, inputs, keep};

const USAGE: &str =
    "usage: fuzz-inputs targets | fuzz-inputs unpack FOLDER | fuzz-inputs keep TARGET FILE...";

fn unpack(target: &Target, folder: &Path) -> std::io::Result<()> {
    let folder = folder.join(target.name);
    std::fs::create_dir_all(&folder)?;
    inputs(target)
        .iter()
        .enumerate()
        .try_for_each(|(i, input)| std::fs::write(folder.join(i.to_string()), &input.bytes))
}

fn main() -> Result<(), String> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match words[..] {
        ["targets"] => TARGETS.iter().for_each(|target| println!("{} {}", target.name, target.longest)),
        ["unpack", folder] => {
            let each = TARGETS.iter().try_for_each(|target| unpack(target, Path::new(folder)));
            each.map_err(|e| format!("{folder}: {e}"))?;
        }
        ["keep", name, ref files @ ..] => {
            let target = veilset_fuzz::target(name).ok_or_else(|| format!("{name} is no target"))?;
            for file in files {
                let bytes = std::fs::read(file).map_err(|e| format!("{file}: {e}"))?;
                keep(target, &bytes).map_err(|e| format!("{file}: {e}"))?;
            }
        }
        _ => return Err(USAGE.into()),
    }
    Ok(())
}
