//! The hard problems that protocols rest on.

use std::fmt;
use std::str::FromStr;

/// A hard problem that a protocol rests on. Beside it all rest on BLAKE3 and AES.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Assumption {
    /// Decisional Diffie-Hellman, or a problem of that kind, in a group of an elliptic curve.
    Ddh,
    /// Learning parity with noise.
    Lpn,
    /// Ring learning with errors.
    Rlwe,
    /// Decisional composite residuosity.
    Dcr,
}

impl Assumption {
    /// All of them.
    pub const ALL: [Assumption; 4] = [Assumption::Ddh, Assumption::Lpn, Assumption::Rlwe, Assumption::Dcr];

    /// As it is typed.
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
