//! The plan that the arguments mean: everything that can be refused without looking at the data.

use crate::args::{
    CommonArgs, CountArgs, DuplicatesArg, EmptyKeysArg, EncodingArg, IntersectArgs, OutputArgs, SumArgs,
    UnionArgs,
};
use std::path::PathBuf;
use std::time::Duration;
use veilset::channel::Timeouts;
use veilset::error::{Error, Result};
use veilset::operations::sum::{Modulus, Terms};
use veilset::operations::{Operation, Role};
use veilset::session::{Endpoint, Fingerprint};
use veilset::table::{Duplicates, EmptyKeys, Encoding, Format, LIST_COLUMN, Normalise, ReadOptions};

/// What one party is to do.
#[derive(Debug)]
pub struct Plan {
    pub operation: Operation,
    pub role: Role,
    pub input: PathBuf,
    pub read: ReadOptions,
    pub key: Vec<String>,
    pub normalise: Normalise,
    pub empty_keys: EmptyKeys,
    pub duplicates: Duplicates,
    /// The column of values, for the sender of sum.
    pub values: Option<String>,
    pub value_scale: u32,
    pub terms: Terms,
    pub max_row: usize,
    pub max_peer_items: usize,
    /// Where the result goes; `None` is standard output.
    pub output: Option<PathBuf>,
    pub output_format: Option<Format>,
    pub force: bool,
    pub report: Option<PathBuf>,
    pub quiet: bool,
    pub threads: usize,
    pub endpoint: Endpoint,
    pub protection: Protection,
    pub timeouts: Timeouts,
}

/// How the connection is to be protected.
#[derive(Debug)]
pub enum Protection {
    Tls { identity: Option<PathBuf>, peer: Fingerprint },
    InsecurePlaintext,
}

pub fn intersect(a: IntersectArgs) -> Result<Plan> {
    common(Operation::Intersect, a.common, a.output)
}

pub fn union(a: UnionArgs) -> Result<Plan> {
    let mut plan = common(Operation::Union, a.common, a.output)?;
    plan.max_row = a.max_row as usize;
    Ok(plan)
}

pub fn count(a: CountArgs) -> Result<Plan> {
    common(Operation::Count, a.common, a.output)
}

pub fn sum(a: SumArgs) -> Result<Plan> {
    let mut plan = common(Operation::Sum, a.common, a.output)?;
    match (plan.role, &a.values) {
        (Role::Sender, None) => {
            return Err(Error::Usage(
                "the sender of sum has the values: name their column with --values COL".into(),
            ));
        }
        (Role::Receiver, Some(_)) => {
            return Err(Error::Usage(
                "--values is the sender's: the receiver of sum has no values. Leave it away, or use --role sender"
                    .into(),
            ));
        }
        _ => {}
    }
    plan.values = a.values;
    plan.value_scale = a.scale;
    plan.terms = Terms {
        modulus: if a.modulus == "128" { Modulus::Bits128 } else { Modulus::Bits64 },
        min_count: a.min_count,
    };
    Ok(plan)
}

fn common(operation: Operation, a: CommonArgs, output: OutputArgs) -> Result<Plan> {
    let role = a.role;
    let format = a.format.unwrap_or_else(|| Format::of_input(&a.input));
    let key = match (format, a.key) {
        (Format::List, key) if key.is_empty() => vec![LIST_COLUMN.into()],
        (_, key) if key.is_empty() => {
            return Err(Error::Usage(
                "--key is missing: name the columns whose values are compared, for instance --key email (an example is in \
                 --help). Only a list (--format list) has no need of it"
                    .into(),
            ));
        }
        (_, key) => key,
    };
    if role == Role::Sender && operation != Operation::Sum && output.output.is_some() {
        return Err(Error::Usage(format!(
            "the sender of {operation} learns nothing, so there is nothing for --output. Leave it away, or use --role \
             receiver"
        )));
    }
    let has_result = role == Role::Receiver || operation == Operation::Sum;
    let result = output.output.unwrap_or("-".into());
    if has_result && a.report.as_ref() == Some(&result) {
        return Err(Error::Usage(format!(
            "result and report would both go to {}. Give --output and --report a file each",
            result.display()
        )));
    }
    let has_values = operation == Operation::Sum && role == Role::Sender;
    let duplicates = match a.duplicates {
        // To leave values out in silence would give a wrong sum.
        None if has_values => Duplicates::Error,
        None | Some(DuplicatesArg::First) => Duplicates::First,
        Some(DuplicatesArg::Error) => Duplicates::Error,
        Some(DuplicatesArg::Add) if has_values => Duplicates::Add,
        Some(DuplicatesArg::Add) => {
            return Err(Error::Usage(
                "--duplicates add is for the sender of sum, who has values to add. Use first or error".into(),
            ));
        }
    };
    let protection = match a.peer {
        Some(peer) => Protection::Tls { identity: a.identity, peer: fingerprint(&peer)? },
        None => Protection::InsecurePlaintext,
    };
    let endpoint = match (a.listen, a.connect) {
        (Some(address), None) => Endpoint::Listen(address),
        (None, Some(address)) => Endpoint::Connect(address),
        _ => return Err(Error::Usage("give one of --listen and --connect".into())),
    };
    let threads =
        a.threads.map_or_else(|| std::thread::available_parallelism().map_or(1, usize::from), usize::from);
    let read = ReadOptions {
        format: Some(format),
        delimiter: a.delimiter.as_deref().map(delimiter).transpose()?,
        encoding: match a.encoding {
            EncodingArg::Utf8 => Encoding::Utf8,
            EncodingArg::Bytes => Encoding::Bytes,
        },
    };
    let normalise: Normalise = a.normalize.as_deref().map(str::parse).transpose()?.unwrap_or_default();
    normalise.check(read.encoding)?;
    Ok(Plan {
        operation,
        role,
        input: a.input,
        read,
        key,
        normalise,
        empty_keys: match a.empty_keys {
            EmptyKeysArg::Error => EmptyKeys::Error,
            EmptyKeysArg::Skip => EmptyKeys::Skip,
            EmptyKeysArg::Keep => EmptyKeys::Keep,
        },
        duplicates,
        values: None,
        value_scale: 0,
        terms: Terms { modulus: Modulus::Bits64, min_count: 0 },
        max_row: 0,
        max_peer_items: a.max_peer_items,
        output: Some(result).filter(|path| path.as_os_str() != "-"),
        output_format: output.output_format,
        force: a.force,
        report: a.report,
        quiet: a.quiet,
        threads,
        endpoint,
        protection,
        timeouts: Timeouts {
            connect: Duration::from_secs(a.connect_timeout),
            idle: Duration::from_secs(a.idle_timeout),
        },
    })
}

fn fingerprint(text: &str) -> Result<Fingerprint> {
    text.parse().map_err(|e| Error::Usage(format!("--peer is not a fingerprint: {e}")))
}

fn delimiter(text: &str) -> Result<u8> {
    match text.as_bytes() {
        b"tab" | b"\\t" => Ok(b'\t'),
        [b'"' | b'\r' | b'\n'] => Err(Error::Usage(
            "--delimiter cannot be a quote or a line end. Use one character, for instance ; or tab".into(),
        )),
        [byte] => Ok(*byte),
        _ => Err(Error::Usage(format!(
            "--delimiter \"{text}\" is not one ASCII character. Use for instance ; or tab"
        ))),
    }
}
