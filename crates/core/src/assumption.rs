//! The hardness assumptions of the protocols.

use std::fmt;
use std::str::FromStr;

/// A hardness assumption of a protocol. All protocols also rest on BLAKE3 and AES.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Assumption {
    /// Decisional Diffie-Hellman, or a related problem, in an elliptic-curve group.
    Ddh,
    /// Learning parity with noise.
    Lpn,
    /// Ring learning with errors.
    Rlwe,
    /// Decisional composite residuosity.
    Dcr,
}

impl Assumption {
    /// All assumptions, in order of declaration.
    pub const ALL: [Assumption; 4] = [Assumption::Ddh, Assumption::Lpn, Assumption::Rlwe, Assumption::Dcr];

    /// The name as typed by users.
    pub fn name(self) -> &'static str {
        match self {
            Assumption::Ddh => "ddh",
            Assumption::Lpn => "lpn",
            Assumption::Rlwe => "rlwe",
            Assumption::Dcr => "dcr",
        }
    }
}

impl fmt::Display for Assumption {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Assumption {
    type Err = String;
    fn from_str(name: &str) -> Result<Assumption, String> {
        let found = Assumption::ALL.into_iter().find(|assumption| assumption.name() == name);
        let all = || Assumption::ALL.map(Assumption::name).join(", ");
        found.ok_or_else(|| format!("\"{name}\" is not an assumption: {}", all()))
    }
}
