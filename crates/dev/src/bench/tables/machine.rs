//! The machine on which figures were measured.

use serde::{Deserialize, Serialize};
use std::time::SystemTime;
use veilset::session::report::rfc3339;
use veilset::speed::this_machine;
use veilset_kernels::{Backend, aes, band, curve25519, gf128, polynomial, transpose};

/// A machine, and the kernels that the program uses on it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Machine {
    pub processor: String,
    pub cores: usize,
    /// The path that each kernel takes on this machine.
    pub paths: Vec<String>,
    pub memory_gb: f64,
    pub system: String,
}

impl Machine {
    /// Describes this machine.
    pub fn this() -> Machine {
        let read = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
        let memory = read("/proc/meminfo");
        let kilobytes = memory
            .lines()
            .find_map(|line| line.strip_prefix("MemTotal:")?.split_whitespace().next()?.parse().ok());
        let release = read("/etc/os-release");
        let name = release.lines().find_map(|line| line.strip_prefix("PRETTY_NAME=")).unwrap_or_default();
        let kernel =
            ["ostype", "osrelease"].map(|name| read(&format!("/proc/sys/kernel/{name}")).trim().to_string());
        let system = [name.trim_matches('"').to_string(), kernel.join(" ").trim().to_string()];
        let system: Vec<String> = system.into_iter().filter(|part| !part.is_empty()).collect();
        Machine {
            processor: this_machine(),
            cores: std::thread::available_parallelism().map_or(1, usize::from),
            paths: paths(),
            memory_gb: (kilobytes.unwrap_or(0.0_f64) * 1024.0 / 1e8).round() / 10.0,
            system: if system.is_empty() { std::env::consts::OS.into() } else { system.join(", ") },
        }
    }

    /// Returns whether figures of both can be compared. A system update does not make another machine.
    pub fn is(&self, other: &Machine) -> bool {
        self.processor == other.processor && self.cores == other.cores && self.paths == other.paths
    }

    /// Returns the machine in words.
    pub fn text(&self) -> String {
        format!("{} with {} cores, {}", self.processor, self.cores, self.vectors())
    }

    /// Says whether any kernel takes an AVX-512 path.
    pub fn vectors(&self) -> &'static str {
        let wide = self.paths.iter().any(|path| path.contains("512"));
        if wide { "with AVX-512" } else { "without AVX-512" }
    }
}

fn paths() -> Vec<String> {
    let kernels: [(&str, &[Backend]); 6] = [
        ("curves", curve25519::BACKENDS),
        ("AES", aes::BACKENDS),
        ("GF(2^128)", gf128::BACKENDS),
        ("polynomials", polynomial::BACKENDS),
        ("band matrices", band::BACKENDS),
        ("transposition", transpose::BACKENDS),
    ];
    let path =
        |list: &[Backend]| list.iter().copied().find(|path| path.is_available()).unwrap_or(Backend::Portable);
    kernels.map(|(kernel, list)| format!("{kernel}: {:?}", path(list))).into()
}

/// Returns today's date in UTC.
pub fn today() -> String {
    rfc3339(SystemTime::now()).split('T').next().unwrap_or_default().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_processor_and_another_build_are_other_machines() {
        let this = Machine::this();
        assert!(!this.processor.is_empty() && this.cores > 0 && this.paths.len() == 6);
        assert!(this.is(&Machine { system: "updated".into(), ..this.clone() }));
        assert!(!this.is(&Machine { processor: "another".into(), ..this.clone() }));
        assert!(!this.is(&Machine { paths: vec!["curves: Portable".into()], ..this.clone() }));
    }
}
