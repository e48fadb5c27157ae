//! The values of options: how they are typed, and the messages for invalid ones.

use clap::builder::{PossibleValue, PossibleValuesParser, RangedU64ValueParser, TypedValueParser};
use std::ops::RangeInclusive;
use std::str::FromStr;
use std::time::Duration;
use veilset::channel::Network;
use veilset::net::Roster;
use veilset::operations::{self, Operation, Role};
use veilset::params::MAX_SET;
use veilset::planner::Preference;
use veilset::protocols::{self, Protocol, groups};
use veilset::table::Format;

/// Parses the name of an operation.
pub fn one_operation() -> impl TypedValueParser<Value = &'static Operation> {
    PossibleValuesParser::new(operations::ALL.map(|o| o.name)).try_map(|name| name.parse())
}

/// Parses the name of a role.
pub fn role() -> impl TypedValueParser<Value = Role> {
    PossibleValuesParser::new(Role::ALL.map(Role::name)).try_map(|name| name.parse())
}

/// Parses the name of a protocol.
pub fn protocol() -> impl TypedValueParser<Value = &'static Protocol> {
    PossibleValuesParser::new(all_protocols()).try_map(|name| protocols::named(&name))
}

/// Returns the names of all protocols.
fn all_protocols() -> impl Iterator<Item = PossibleValue> {
    let all = protocols::ALL.into_iter().chain(protocols::MULTIPARTY);
    let built = all.map(|p| PossibleValue::new(p.name).help(p.summary));
    // Protocols that are not built are refused with the name of the feature that they need.
    built.chain(protocols::not_built().map(|name| PossibleValue::new(name).hide(true)))
}

/// The requested protocol.
#[derive(Debug, Clone, Copy)]
pub enum Wish {
    /// The best protocol that both sides allow.
    Auto,
    /// A named protocol.
    Named(&'static Protocol),
}

impl Wish {
    /// Returns the protocol, if one is named.
    pub fn named(self) -> Option<&'static Protocol> {
        match self {
            Wish::Auto => None,
            Wish::Named(protocol) => Some(protocol),
        }
    }
}

pub(super) fn protocol_or_auto() -> impl TypedValueParser<Value = Wish> {
    let auto = PossibleValue::new(AUTO).help("the best that both sides allow, as `veilset plan` shows it");
    PossibleValuesParser::new([auto].into_iter().chain(all_protocols())).try_map(|name| match &*name {
        AUTO => Ok(Wish::Auto),
        name => protocols::named(name).map(Wish::Named),
    })
}

const AUTO: &str = "auto";

/// Parses the name of a preference.
pub fn preference() -> impl TypedValueParser<Value = Preference> {
    PossibleValuesParser::new(Preference::ALL.map(Preference::name)).try_map(|name| name.parse())
}

/// Parses one of these names of groups.
pub fn group(names: impl IntoIterator<Item = &'static str>) -> impl TypedValueParser<Value = &'static str> {
    PossibleValuesParser::new(names).try_map(|name| groups::named(&name))
}

/// Parses the name of an encryption for filters.
pub fn cipher() -> impl TypedValueParser<Value = &'static str> {
    PossibleValuesParser::new(groups::CIPHERS.iter().map(|(name, _)| *name))
        .try_map(|name| groups::cipher(&name))
}

/// Lists the groups of each protocol, the default first.
pub(super) fn group_help() -> String {
    let list = protocols::ALL.map(|p| match p.groups {
        [default, others @ ..] if !others.is_empty() => {
            format!("{p} in {default} [default], {}", others.join(", "))
        }
        _ => format!("{p} in {}", p.group()),
    });
    format!("The group that the protocol works in; the same on both sides: {}", list.join("; "))
}

/// Lists the protocols of each operation.
pub(super) fn protocol_help() -> String {
    let by = |operation: &&'static Operation| {
        format!("{operation} by {}", protocols::names(|p| p.computes(operation)))
    };
    let several = operations::ALL.into_iter().filter_map(|operation| {
        protocols::multiparty_for(operation).map(|protocol| format!("{operation} by {protocol}"))
    });
    format!(
        "The protocol: `auto` takes the best of those that both sides allow, and one that is named must be allowed by the \
         peer: {}; with --parties: {} [default: auto]",
        operations::ALL.iter().map(by).collect::<Vec<_>>().join("; "),
        several.collect::<Vec<_>>().join("; ")
    )
}

/// Parses the name of one of these formats.
pub fn format(of: &[Format]) -> impl TypedValueParser<Value = Format> {
    PossibleValuesParser::new(of.iter().map(|format| format.name())).try_map(|name| name.parse())
}

/// Parses a number of items: plain digits, or a large number such as 1e6 or 2^20.
pub fn items(text: &str) -> Result<usize, String> {
    let power = |base: u64, exponent: &str| base.checked_pow(exponent.parse().ok()?);
    let number = match (text.split_once('^'), text.split_once('e')) {
        (Some((base, exponent)), _) => base.parse().ok().and_then(|base| power(base, exponent)),
        (None, Some((digits, zeros))) => {
            let times = |digits: u64| digits.checked_mul(power(10, zeros)?);
            digits.parse().ok().and_then(times)
        }
        (None, None) => text.parse().ok(),
    };
    let number = number.and_then(|n| usize::try_from(n).ok()).filter(|n| *n <= MAX_SET);
    number.ok_or_else(|| format!("a whole number from 0 to {MAX_SET}, like 1000000, 1e6 or 2^20, is needed"))
}

/// Parses a time in seconds, which may have a fraction: 90, 1.5.
pub fn seconds(text: &str) -> Result<Duration, String> {
    const RANGE: RangeInclusive<Duration> = Duration::from_secs(1)..=Duration::from_secs(31_536_000);
    let digits = text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    let seconds = text.parse().ok().filter(|_| digits);
    let time = seconds.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    time.filter(|time| RANGE.contains(time))
        .ok_or_else(|| "a number of seconds from 1 to 31536000, like 90 or 1.5, is needed".into())
}

/// Parses the number of parties in a run of several.
pub fn several() -> RangedU64ValueParser<u8> {
    RangedU64ValueParser::new().range(3..=Roster::MOST as u64)
}

/// An emulated network, and its text as typed.
#[derive(Debug, Clone)]
pub struct Net {
    /// The text as typed.
    pub typed: String,
    /// The network; `None` for no emulation.
    pub link: Option<Network>,
}

impl FromStr for Net {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        let link = if text == "none" { None } else { Some(text.parse()?) };
        Ok(Net { typed: text.into(), link })
    }
}
