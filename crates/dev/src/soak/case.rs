//! A random run: two files, two command lines, and the expected results from the plain computation.

use super::People;
use super::cells::{self, Rows};
use super::expected::{Expected, Rules, expected};
use super::how::How;
use std::collections::BTreeSet;
use std::path::Path;
use veilset::error::Result;
use veilset::hashed::Dummies;
use veilset::operations::{self, Announced, Operation, Role, Shape};
use veilset::party::ID_COLUMN;
use veilset::protocols::{self, Protocol};
use veilset::rng::Prng;
use veilset::table::{Encoding, Format};

/// A run to perform. In arrays, the receiver precedes the sender.
pub struct Case {
    /// The words after `veilset`.
    pub words: [Vec<String>; 2],
    /// The words with which a party prepares its half, if it does.
    pub prepare: [Option<Vec<String>>; 2],
    pub expected: [Expected; 2],
    /// Whether the parties pick a protocol themselves.
    pub picks: bool,
    /// The category under which the run is counted.
    pub kind: String,
}

/// The settings that both sides share, and the keys.
pub struct Terms {
    pub operation: &'static Operation,
    pub both: bool,
    /// Whether the sender learns the number of matches.
    pub reveals: bool,
    pub sent: usize,
    pub keys: usize,
    pub encoding: Encoding,
    pub trim: bool,
    pub casefold: bool,
    pub nfc: bool,
    /// Whether rows may have an empty key column, and are then skipped. With `keep` instead, the columns of key 0 are empty,
    /// and it is kept as an ordinary one.
    pub skip: bool,
    pub keep: bool,
    /// Whether the sender's items have values.
    pub valued: bool,
    pub scale: u32,
    /// The keys; element i is the key with number i.
    pub universe: Vec<Vec<Vec<u8>>>,
}

/// A party's file.
pub struct Side {
    pub format: Format,
    pub header: Vec<String>,
    /// For each row, the number of its key (`None` if the row is to be skipped) and its cells.
    pub rows: Vec<(Option<usize>, Vec<Vec<u8>>)>,
    pub values: Vec<i128>,
}

pub fn chance(rng: &mut Prng, one_in: u64) -> bool {
    rng.below(one_in) == 0
}

pub fn pick<T: Clone>(rng: &mut Prng, list: &[T]) -> T {
    list[rng.below(list.len() as u64) as usize].clone()
}

/// Returns a random size, often a small one.
fn size(rng: &mut Prng, most: usize) -> usize {
    let most = pick(rng, &[1, 2, 5, 30, most.max(1)]).min(most.max(1)) as u64;
    rng.below(most + 1) as usize
}

/// Returns a cell that is not a key, with anything that a cell may contain.
fn any_cell(rng: &mut Prng, encoding: Encoding) -> Vec<u8> {
    let parts: [&[u8]; 11] =
        [b"", b"a", b"B7", b" ", b",", b"\"", b"\n", b"\t", "é".as_bytes(), "日本".as_bytes(), b"\r\n"];
    let n = rng.below(4);
    let mut cell: Vec<u8> = (0..n).flat_map(|_| pick(rng, &parts).to_vec()).collect();
    if encoding == Encoding::Bytes && chance(rng, 2) {
        cell.extend([0xff, 0, rng.below(256) as u8]);
    }
    cell
}

impl Terms {
    fn random(rng: &mut Prng, most: usize) -> Terms {
        let operation = pick(rng, &operations::ALL);
        let rows = operation.uses.rows != operations::Rows::None;
        let revealing = |p: &Protocol| p.offer(operation).is_some_and(|offer| offer.reveals_count);
        let reveals = protocols::ALL.into_iter().any(revealing) && chance(rng, 3);
        let encoding = if chance(rng, 6) { Encoding::Bytes } else { Encoding::Utf8 };
        let text = encoding == Encoding::Utf8;
        let mut terms = Terms {
            operation,
            both: !reveals && operation.uses.both && chance(rng, 3),
            reveals,
            sent: if rows && chance(rng, 2) { 1 + rng.below(2) as usize } else { 0 },
            keys: if chance(rng, 3) { 1 + rng.below(3) as usize } else { 1 },
            encoding,
            trim: text && chance(rng, 3),
            casefold: text && chance(rng, 3),
            nfc: text && chance(rng, 3),
            skip: chance(rng, 5),
            keep: chance(rng, 5),
            valued: operation.uses.values || operation.uses.shares && chance(rng, 2),
            scale: rng.below(4) as u32,
            universe: Vec::new(),
        };
        terms.keep &= !terms.skip;
        terms.universe = (0..2 * most + 8).map(|i| terms.key(i)).collect();
        terms
    }

    /// Returns the form of a party's result.
    pub fn shape(&self, role: Role) -> Shape {
        let Terms { both, reveals: reveal_count, .. } = *self;
        (self.operation.result)(role, &operations::Terms { both, reveal_count, ..Default::default() })
    }

    /// Returns the key with this number, in a form that normalisation leaves unchanged.
    fn key(&self, i: usize) -> Vec<Vec<u8>> {
        let numbers = match self.keys {
            1 => vec![i],
            2 => vec![i / 3, i % 3],
            _ => vec![i % 2, i / 2, 0],
        };
        match self.keep && i == 0 {
            true => vec![Vec::new(); self.keys],
            false => numbers.into_iter().map(|n| self.text(n)).collect(),
        }
    }

    /// Returns the text for a number in a key; the same number always gives the same text.
    fn text(&self, n: usize) -> Vec<u8> {
        let style = ["", "x", "ss", "é", "ж,", "\"q\"", "a\nb", "日本", "1,5"][n % 9];
        let mut text = format!("{n}{style}");
        if n % 13 == 5 {
            text.push_str(&"long".repeat(20));
        }
        // Parts that a normalisation step would change are present only without that step.
        if !self.trim && n % 5 == 1 {
            text.insert(0, ' ');
        }
        if !self.casefold && n % 5 == 2 {
            text.push('A');
        }
        if !self.nfc && n % 5 == 3 {
            text.push_str("e\u{301}");
        }
        let mut text = text.into_bytes();
        if self.encoding == Encoding::Bytes && n % 5 == 4 {
            text.extend([0xff, 0x00, 0xfe]);
        }
        text
    }

    /// Returns a random spelling that the agreed steps normalise to the same text.
    fn spell(&self, rng: &mut Prng, text: &[u8]) -> Vec<u8> {
        let Ok(text) = std::str::from_utf8(text) else { return text.to_vec() };
        let mut spelled = String::new();
        for c in text.chars() {
            match c {
                'é' if self.nfc && chance(rng, 2) => spelled.push_str("e\u{301}"),
                c if self.casefold && chance(rng, 2) => spelled.extend(c.to_uppercase()),
                c => spelled.push(c),
            }
        }
        if self.casefold && chance(rng, 2) {
            spelled = spelled.replace("SS", "ß");
        }
        if self.trim {
            let mut space = || pick(rng, &["", " ", "\t", "\u{a0}", "  "]);
            spelled = format!("{}{spelled}{}", space(), space());
        }
        spelled.into_bytes()
    }

    /// Returns a party's file. In some files keys are repeated.
    fn side(&self, rng: &mut Prng, receiver: bool, numbers: &[usize]) -> Side {
        let mut columns: Vec<String> =
            (0..self.keys).map(|i| format!("{}{i}", if receiver { "k" } else { "s" })).collect();
        match receiver {
            true => columns.extend((0..rng.below(3)).map(|i| format!("r{i}"))),
            false => columns.extend((0..self.sent).map(|i| format!("p{i}"))),
        }
        if !receiver && self.valued {
            columns.push("v".into());
        }
        if !receiver && chance(rng, 3) {
            columns.push("z".into());
        }
        let mut numbers: Vec<Option<usize>> = numbers.iter().copied().map(Some).collect();
        if chance(rng, 2) && !numbers.is_empty() {
            (0..1 + rng.below(3)).for_each(|_| numbers.push(pick(rng, &numbers)));
        }
        if self.skip {
            (0..rng.below(3)).for_each(|_| numbers.push(None));
        }
        shuffle(rng, &mut numbers);
        let mut values = Vec::new();
        let rows = numbers.into_iter().map(|number| {
            let mut cells: Vec<Vec<u8>> = match number {
                Some(i) => self.universe[i].iter().map(|text| self.spell(rng, text)).collect(),
                None => (0..self.keys).map(|i| self.spell(rng, if i == 0 { b"" } else { b"x" })).collect(),
            };
            for name in &columns[self.keys..] {
                cells.push(match name.as_str() {
                    "v" => {
                        let value = i128::from(rng.below(2_000_001)) - 1_000_000;
                        values.push(value);
                        decimal(value, self.scale).into_bytes()
                    }
                    _ => any_cell(rng, self.encoding),
                });
            }
            (number, cells)
        });
        let mut rows: Vec<_> = rows.collect();
        // The columns are in random order.
        let mut order: Vec<usize> = (0..columns.len()).collect();
        shuffle(rng, &mut order);
        for (_, cells) in &mut rows {
            *cells = order.iter().map(|&i| cells[i].clone()).collect();
        }
        let header: Vec<String> = order.iter().map(|&i| columns[i].clone()).collect();
        let line = |cell: &Vec<u8>| !cell.is_empty() && !cell.iter().any(|b| b"\r\n".contains(b));
        let list = header.len() == 1 && rows.iter().all(|(_, cells)| line(&cells[0]));
        // JSON is text. A JSON file without any line names no columns, so it is for parties whose result has no rows or items.
        let text = rows.iter().flat_map(|(_, cells)| cells).all(|cell| std::str::from_utf8(cell).is_ok());
        let role = if receiver { Role::Receiver } else { Role::Sender };
        let json = text && (!rows.is_empty() || !self.shape(role).has_items());
        let mut formats = vec![Format::Csv, Format::Csv, Format::Parquet, Format::Arrow];
        formats.extend(json.then_some(Format::JsonLines));
        formats.extend(list.then_some(Format::List));
        formats.retain(|format| Format::ALL.contains(format));
        let format = pick(rng, &formats);
        let header = if format == Format::List { vec!["item".into()] } else { header };
        Side { format, header, rows, values }
    }
}

fn shuffle<T: Clone>(rng: &mut Prng, list: &mut Vec<T>) {
    *list = rng.permutation(list.len()).iter().map(|&i| list[i as usize].clone()).collect();
}

/// Formats `value` units of 10^-`scale`.
pub fn decimal(value: i128, scale: u32) -> String {
    let unit = 10i128.pow(scale);
    let sign = if value < 0 { "-" } else { "" };
    match scale {
        0 => value.to_string(),
        scale => {
            format!("{sign}{}.{:0>width$}", value.abs() / unit, value.abs() % unit, width = scale as usize)
        }
    }
}

impl Side {
    /// Returns the names of the key columns, in key order.
    pub fn key(&self, receiver: bool, keys: usize) -> Vec<String> {
        match self.format {
            Format::List => vec!["item".into()],
            _ => (0..keys).map(|i| format!("{}{i}", if receiver { "k" } else { "s" })).collect(),
        }
    }

    /// Returns, for each key, its number and the position of its first row, in row order.
    pub fn firsts(&self) -> Vec<(usize, usize)> {
        let mut seen = BTreeSet::new();
        let keyed = self.rows.iter().enumerate().filter_map(|(row, (number, _))| Some(((*number)?, row)));
        keyed.filter(|(number, _)| seen.insert(*number)).collect()
    }

    pub fn column(&self, name: &str) -> Option<usize> {
        self.header.iter().position(|h| h == name)
    }

    fn file(&self) -> Rows {
        let header = self.header.iter().map(|h| h.clone().into_bytes()).collect();
        std::iter::once(header).chain(self.rows.iter().map(|(_, cells)| cells.clone())).collect()
    }
}

impl Case {
    /// Writes the files of a random run to the folder.
    pub fn random(
        rng: &mut Prng,
        folder: &Path,
        most: usize,
        people: &People,
        over_tls: bool,
    ) -> Result<Case> {
        let terms = Terms::random(rng, most);
        let [n_r, n_s] = [size(rng, most), size(rng, most)];
        let common = rng.below(n_r.min(n_s) as u64 + 1) as usize;
        let mut all: Vec<usize> = (0..terms.universe.len()).collect();
        shuffle(rng, &mut all);
        let sides = [
            terms.side(rng, true, &all[..n_r]),
            terms.side(rng, false, &all[n_r - common..n_r - common + n_s]),
        ];
        let pads = [n_r, n_s].map(|n| chance(rng, 3).then(|| n + rng.below(20) as usize));
        let add = terms.valued && chance(rng, 2);
        let min_count = if chance(rng, 3) { rng.below(common as u64 + 3) as usize } else { 0 };
        let (max_row, rename) = (700 + rng.below(200), chance(rng, 2));
        let sizes =
            [0, 1].map(|i| Announced { size: pads[i].unwrap_or([n_r, n_s][i]), padded: pads[i].is_some() });
        let how = How::random(rng, &terms, sizes);
        let secure = over_tls || how.prepares != [false; 2];

        let mut words = [Vec::new(), Vec::new()];
        let mut prepare = [None, None];
        for (i, side) in sides.iter().enumerate() {
            let receiver = i == 0;
            let extension = match side.format {
                Format::Csv => pick(rng, &["csv", "tsv"]),
                Format::Parquet => "parquet",
                Format::Arrow => "arrow",
                Format::JsonLines => "jsonl",
                Format::List => "txt",
            };
            let path = folder.join(format!("{}.{extension}", if receiver { "ours" } else { "theirs" }));
            cells::write(rng, &path, side.format, terms.encoding, &side.file())?;
            // The options that define our set, as in `prepare`.
            let mut set = vec![path.display().to_string()];
            if side.format != Format::List {
                set.push(format!("--key={}", side.key(receiver, terms.keys).join(",")));
            }
            if side.format == Format::Csv {
                set.push("--multiline-keys".into());
            }
            if terms.encoding == Encoding::Bytes {
                set.push("--encoding=bytes".into());
            }
            let steps = [(terms.nfc, "nfc"), (terms.trim, "trim"), (terms.casefold, "casefold")];
            let mut steps: Vec<&str> = steps.into_iter().filter(|s| s.0).map(|s| s.1).collect();
            shuffle(rng, &mut steps);
            if !steps.is_empty() {
                set.push(format!("--normalize={}", steps.join(",")));
            }
            if terms.skip || terms.keep {
                set.push(format!("--empty-keys={}", if terms.skip { "skip" } else { "keep" }));
            }
            if let Some(to) = pads[i] {
                set.push(format!("--pad-to={to}"));
            }
            let role = if receiver { Role::Receiver } else { Role::Sender };
            let file = |name: String| folder.join(name).display().to_string();
            let mut say = |word: String| words[i].push(word);
            say(terms.operation.name.into());
            set.iter().for_each(|word| say(word.clone()));
            say(format!("--role={role}"));
            say(if receiver { "--listen=127.0.0.1:0" } else { "--connect=127.0.0.1:1" }.into());
            let identity = format!("--identity={}", people.files[i].display());
            if secure {
                say(format!("--peer={}", people.identities[1 - i].fingerprint()));
                say(identity.clone());
            } else {
                say("--insecure-plaintext".into());
            }
            for (name, empty) in [("book", "none.toml"), ("policy", "policy.toml")] {
                say(format!("--{name}={}", file(empty.into())));
            }
            say("--audit-log=none".into());
            how.words(i).into_iter().for_each(&mut say);
            if how.prepares[i] {
                let half = file(format!("{role}.half"));
                let ledger = format!("--prepared-ledger={}", file("ledger".into()));
                say(format!("--prepared={half}"));
                say(ledger.clone());
                let mut all = [vec!["prepare".into()], set, vec![ledger, identity]].concat();
                all.push(format!("--output={half}"));
                all.push(format!("--group={}", how.group_of_half()));
                all.push("--threads=1".into());
                if pads[i].is_some() && terms.operation.dummies(role) == Dummies::Listed {
                    all.push("--union-sender".into());
                }
                prepare[i] = Some(all);
            }
            if terms.reveals {
                say("--reveal-count-to-sender".into());
            }
            if terms.both {
                say("--both".into());
            }
            if terms.sent > 0 {
                let names = (0..terms.sent).map(|n| match rename && receiver {
                    true => format!("p{n}=their {n}"),
                    false => format!("p{n}"),
                });
                let option = if receiver { "receive" } else { "send" };
                say(format!("--{option}-columns={}", names.collect::<Vec<_>>().join(",")));
            }
            if terms.operation.uses.rows != operations::Rows::None {
                say(format!("--max-row={max_row}"));
            }
            if terms.operation.uses.values {
                say(format!("--min-count={min_count}"));
            }
            if terms.operation.uses.shares {
                say(format!("--max-row={max_row}"));
            }
            if terms.valued {
                say(format!("--scale={}", terms.scale));
                if !receiver {
                    say("--values=v".into());
                    say(format!("--duplicates={}", if add { "add" } else { "first" }));
                }
            }
            let shape = terms.shape(role);
            if shape != Shape::Nothing {
                let rows = shape.has_items();
                let mut extensions = vec!["csv", "tsv", "parquet"];
                extensions.extend((side.format != Format::List).then_some(extension));
                extensions
                    .retain(|name| Format::WRITTEN.contains(&Format::of_input(format!("x.{name}").as_ref())));
                let extension = if rows { pick(rng, &extensions) } else { "csv" };
                let name = format!("result of {}.{extension}", if receiver { "ours" } else { "theirs" });
                say(format!("--output={}", folder.join(name).display()));
                if shape == Shape::Shares && !receiver {
                    say(format!("--map={}", folder.join("map.csv").display()));
                }
                if shape == Shape::Identifiers {
                    let column = if rename { "number" } else { ID_COLUMN };
                    say(format!("--id-column={column}"));
                    let name = format!("ids of {}", if receiver { "ours" } else { "theirs" });
                    let extension = pick(rng, &["txt", "csv", "parquet"]);
                    say(format!("--ids={}", folder.join(format!("{name}.{extension}")).display()));
                }
            }
        }
        for file in ["none.toml", "policy.toml"] {
            let unusable = |e: std::io::Error| veilset::error::Error::output(e.to_string());
            std::fs::write(folder.join(file), "").map_err(unusable)?;
        }
        let expected =
            expected(&terms, &sides, pads, Rules { add, min_count, rename, max_row: max_row as usize });
        let mut kind = format!("{} {}", terms.operation, how.name());
        for (is, what) in [
            (terms.both, " both"),
            (terms.reveals, " revealed"),
            (terms.sent > 0, " columns"),
            (pads != [None, None], " padded"),
            (how.prepares != [false; 2], " prepared"),
        ] {
            kind += if is { what } else { "" };
        }
        Ok(Case { words, prepare, expected, picks: how.protocol.is_none(), kind })
    }
}
