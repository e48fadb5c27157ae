//! The first inputs of every target: recordings of honest runs, and valid examples for the decoders. The library generates
//! them, so they always use the current messages.

use crate::{Data, Input, SCENARIOS, peer};
use veilset::artefact::filter::{FilterDraft, FilterFile, Size, build, export};
use veilset::channel::{Channel, Sink, Wire};
use veilset::compact_set::CompactSet;
use veilset::compact_set::bloom::Bloom;
use veilset::compact_set::golomb::Golomb;
use veilset::context::Context;
use veilset::error::Result;
use veilset::group::curve25519::{Key, map_and_raise};
use veilset::hash::ItemHash;
use veilset::net::Identity;
use veilset::operations::Role;
use veilset::ot::base;
use veilset::protocols::groups;
use veilset::table::{Destination, Format, ReadOptions, Table, write_rows};
use veilset::threads::Threads;
use veilset_core::hazmat::{seeded, session_id};

/// A frame: tag, length, body.
fn frame(tag: u16, body: &[u8]) -> Vec<u8> {
    [&tag.to_le_bytes()[..], &(body.len() as u32).to_le_bytes(), body].concat()
}

/// The frames of a stream: their tags and bodies.
fn frames(mut stream: &[u8]) -> Vec<(u16, Vec<u8>)> {
    let mut out = Vec::new();
    while let Some((head, rest)) = stream.split_at_checked(6) {
        let len = u32::from_le_bytes([head[2], head[3], head[4], head[5]]) as usize;
        out.push((u16::from_le_bytes([head[0], head[1]]), rest[..len].to_vec()));
        stream = &rest[len..];
    }
    out
}

/// The bytes sent by `send`.
fn sent(send: impl FnOnce(&mut Channel)) -> Vec<u8> {
    struct Tap(std::sync::mpsc::Sender<Vec<u8>>);
    impl Sink for Tap {
        fn send(&mut self, frame: Vec<u8>) -> Result<()> {
            let _ = self.0.send(frame);
            Ok(())
        }
    }
    let (tap, frames) = std::sync::mpsc::channel();
    let source = peer(&[]).into_halves().1;
    send(&mut Channel::from_halves(Box::new(Tap(tap)), source));
    frames.iter().flatten().collect()
}

fn points(n: usize) -> Vec<u8> {
    let mut out = Vec::new();
    let mut rng = seeded(&[6; 32]);
    let hashes: Vec<ItemHash> = (0..n).map(|_| ItemHash::random(&mut rng)).collect();
    let points = map_and_raise(&hashes, &Key::random(&mut seeded(&[5; 32]))).unwrap();
    points.iter().for_each(|p| p.put(&mut out));
    out
}

/// The public part of the smallest possible filter.
fn public_filter() -> Vec<u8> {
    let folder = tempfile::tempdir().unwrap();
    let [whole, public] = ["whole", "public"].map(|name| folder.path().join(name));
    let (set, identity) = (["a"].iter().collect(), Identity::generate().unwrap());
    let draft = FilterDraft { set: &set, key_columns: 1, normalisation: "none", threads: Threads::global() };
    let size = Size { cipher: groups::RISTRETTO255, capacity: 1, queries: 1 };
    let to = FilterFile { path: &whole, force: false };
    build(&draft, size, &identity, to, &|_, _| Ok(()), &mut seeded(&[8; 32])).unwrap();
    let mut output = Destination::create("public filter", Some(&public), false).unwrap();
    export(&whole, &identity, &mut output, &|_| Ok(())).unwrap();
    output.commit().unwrap();
    std::fs::read(public).unwrap()
}

/// The seeds of all targets.
pub(crate) fn all() -> Vec<Input> {
    let mut all = Vec::new();
    let mut write = |target: &'static str, name: &str, bytes: &[u8]| {
        all.push(Input { target, name: name.into(), bytes: bytes.to_vec() });
    };
    let data = Data::default();
    for scenario in SCENARIOS.iter() {
        for role in Role::ALL {
            let name = scenario.name();
            for (of, stream) in data.recordings(*scenario, role) {
                let target = if role == Role::Receiver { "run_receiver" } else { "run_sender" };
                write(target, &format!("{name}{of}"), &stream);
                // In runs of several parties, all hellos are the same.
                if !scenario.of_several() {
                    let hello = &frames(&stream[2..])[1].1;
                    write("hello", &format!("{name}-{role}"), &[&[1], &hello[..]].concat());
                }
            }
        }
    }
    let union = SCENARIOS.iter().find(|scenario| scenario.name() == "union-dh-bare").unwrap();
    let hello = frames(&data.recorded(*union, Role::Receiver)[2..]);
    let stream: Vec<u8> = hello[..3].iter().flat_map(|(tag, body)| frame(*tag, body)).collect();
    write("hello", "stream", &[&[0], &stream[..]].concat());

    let expected = [1, 9, 2, 2, 3, 2, 4, 2];
    let said = [
        frame(0xff00, &[]),
        frame(0x11, b"plain"),
        frame(0x12, &[7; 16]),
        frame(0x13, &points(2)),
        frame(0x14, &[1; 6]),
    ];
    write("filter", "smallest", &public_filter());

    write("frames", "all", &[&expected[..], &said.concat()].concat());
    write("frames", "abort", &[&expected[..], &frame(0xff01, &[4])].concat());
    write("frames", "last-words", &[&expected[..], &frame(0x33, &[4; 50]), &frame(0xff01, &[2])].concat());

    write("elements", "points", &[&[0, 0], &points(5)[..]].concat());
    let (choices, session) = ([true, false, true], session_id([7; 32]));
    let session = &session;
    let (mut a, mut b) = Channel::pair();
    let mut r = Vec::new();
    std::thread::scope(|s| {
        let r = &mut r;
        s.spawn(move || {
            let (sink, source) = b.into_halves();
            let (tap, frames) = std::sync::mpsc::channel();
            struct Both(Box<dyn Sink>, std::sync::mpsc::Sender<Vec<u8>>);
            impl Sink for Both {
                fn send(&mut self, frame: Vec<u8>) -> Result<()> {
                    let _ = self.1.send(frame.clone());
                    self.0.send(frame)
                }
            }
            b = Channel::from_halves(Box::new(Both(sink, tap)), source);
            base::receiver(&mut Context::new(&mut b, session, &mut seeded(&[3; 32])), "fuzz", &choices)
                .unwrap();
            drop(b);
            *r = frames.iter().flatten().collect();
        });
        base::sender(&mut Context::new(&mut a, session, &mut seeded(&[4; 32])), "fuzz", 3).unwrap();
    });
    write("elements", "base-ot-r", &[&[1, 3], &r[..]].concat());
    let b = sent(|ch| {
        let (_, source) = peer(&r).into_halves();
        let (sink, _) = std::mem::replace(ch, peer(&[])).into_halves();
        *ch = Channel::from_halves(sink, source);
        base::sender(&mut Context::new(ch, session, &mut seeded(&[4; 32])), "fuzz", 3).unwrap();
    });
    write("elements", "base-ot-b", &[&[2, 3], &b[..]].concat());

    let digests = |n: u32, bits: u32| (0..n).map(|i| u128::from(3 * i) << (128 - bits)).collect::<Vec<_>>();
    let few = sent(|ch| {
        Golomb::new(4, 1, 5).unwrap().send(&mut ch.tx, Threads::global(), digests(5, 7).into()).unwrap()
    });
    write("compact_set", "few-bits", &[&[0, 5, 0, 0], &few[..]].concat());
    let tags = sent(|ch| {
        Golomb::new(40, 3, 8).unwrap().send(&mut ch.tx, Threads::global(), digests(8, 40).into()).unwrap()
    });
    write("compact_set", "tags", &[&[1, 40, 40, 3], &tags[..]].concat());
    let bloom =
        sent(|ch| Bloom::new(20, 3, 4).send(&mut ch.tx, Threads::global(), digests(4, 90).into()).unwrap());
    write("compact_set", "bloom", &[&[2, 4, 20, 3], &bloom[..]].concat());

    let pem = "-----BEGIN PRIVATE KEY-----\n\
               MC4CAQAwBQYDK2VwBCIEINTuctv5E1hK1bbY8fdp+K06/nwoy/HU++CXqI9EdVhC\n\
               -----END PRIVATE KEY-----\n";
    let texts: [(&str, u8, u8, &[u8]); 8] = [
        ("key", 0, 2, b"\x05smith\x03ann"),
        ("fingerprint", 1, 0, b"a5dwh-2s9e4-w3tmf-xa39z-z8ttd-ch6ws-jjk7s-2y6j3"),
        ("identity", 2, 0, pem.as_bytes()),
        ("network", 3, 0, b"400Mbps,80ms"),
        ("network-units", 3, 0, b"1.5Gbps,20us"),
        ("decimal", 4, 2, b" -1234.50 "),
        ("decimal-no-fraction", 4, 0, b"+7."),
        ("decimal-least", 4, 0, b"-170141183460469231731687303715884105728"),
    ];
    for (name, kind, n, text) in texts {
        write("text", name, &[&[kind, n], text].concat());
    }

    let tables: [(&str, [u8; 4], &[u8]); 7] = [
        ("list", [32, 0, 0, 0], b"a@example.org\nb,\n\n \"c\"\r\na@example.org"),
        ("plain", [0, 0, 0, 0], b"id,name,value\n1,ann,5\n2,bob,-7.5\n1,ann,6\n"),
        ("quotes", [2, 0, 1, 1], b"\xef\xbb\xbfa;\"b;c\"\r\n\"x\"\"y\";\"line\r\nend\"\r\n\r\n;z\r\n"),
        ("one-column", [0, 0, 0, 2], b"mail\n\"\"\na@example.org\n"),
        ("tabs", [16, 0, 0x21, 3], b"a\tb\tc\nx\ty\tz\nx\tY\tz\n"),
        ("bytes", [14, 0xff, 1, 6], b"a\xffb\n\x80\xff\xfe\n"),
        ("returns", [0, 0, 0x10, 8], b"a,b\r1,2\r1,2\r"),
    ];
    for (name, how, csv) in tables {
        write("csv", name, &[&how, csv].concat());
        if let Ok(table) = Table::from_reader("f.csv", csv, &ReadOptions::default(), None) {
            let mut out = vec![0];
            let rows: Vec<usize> = (0..table.rows()).collect();
            write_rows(&table, &rows, None, (Format::Parquet, &mut out)).unwrap();
            write("parquet", name, &out);
            let mut out = vec![0];
            write_rows(&table, &rows, None, (Format::Arrow, &mut out)).unwrap();
            write("arrow", name, &out);
        }
    }
    all
}
