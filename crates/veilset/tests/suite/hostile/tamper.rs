//! The ways in which a hostile peer tampers with a frame.

use super::{ABORT, HEADER, HEARTBEAT, Kind};
use std::borrow::Cow;
use std::collections::BTreeSet;
use veilset::protocols::groups;
use veilset_core::hazmat;

/// One step of the script. At the end of the script, the peer closes its sending half.
#[derive(Clone)]
pub(crate) enum Act<'a> {
    /// Sends this frame. Only tampered frames are copied, to save memory over all cases.
    Send(Cow<'a, [u8]>),
    /// Sends the first bytes, then the others this many times.
    Repeat(Vec<u8>, &'static [u8], usize),
    /// Sends nothing more, but stays.
    Stall,
    /// Sends only heartbeats.
    Live,
    /// Closes both halves.
    Leave,
}

/// Abscissae on Curve25519 and encodings of ristretto255 that must be refused.
const ELEMENTS: [(&str, [u8; 32]); 8] = {
    /// p + low, or low itself; little-endian.
    const fn number(low: u8, and_p: bool) -> [u8; 32] {
        let mut n = if and_p { [0xff; 32] } else { [0; 32] };
        if and_p {
            (n[0], n[31]) = (0xed + low, 0x7f);
        } else {
            n[0] = low;
        }
        n
    }
    const fn minus_one() -> [u8; 32] {
        let mut n = number(0, true);
        n[0] -= 1;
        n
    }
    const fn high_bit(mut n: [u8; 32]) -> [u8; 32] {
        n[31] |= 0x80;
        n
    }
    [
        ("0: of order 2, or the identity", number(0, false)),
        ("1: of order 4, or negative", number(1, false)),
        ("-1: of order 4 on the twist, or no element", minus_one()),
        ("p", number(0, true)),
        ("p + 1", number(1, true)),
        ("p + 9, the base point but not canonical", number(9, true)),
        ("9 with its highest bit set", high_bit(number(9, false))),
        ("all ones", [0xff; 32]),
    ]
};

/// Abscissae of order 8 on Curve25519.
const ORDER_8: [&str; 2] = [
    "e0eb7a7c3b41b8ae1656e3faf19fc46ada098deb9c32b1fd866205165f49b800",
    "5f9c95bca3508c24b1d0b1559c83ef5b04445cc4581c8e86d8224eddd09f1157",
];

/// Coordinates that points of P-256 must not have, big-endian. Abscissae 0 and 5 belong to points.
const P256: [(&str, &str); 5] = [
    ("1, of the twist", "0000000000000000000000000000000000000000000000000000000000000001"),
    ("4, of the twist", "0000000000000000000000000000000000000000000000000000000000000004"),
    ("p", "ffffffff00000001000000000000000000000000ffffffffffffffffffffffff"),
    ("p + 5", "ffffffff00000001000000000000000000000001000000000000000000000004"),
    ("all ones", "ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff"),
];

fn hex(hex: &str) -> [u8; 32] {
    std::array::from_fn(|i| u8::from_str_radix(&hex[2 * i..2 * i + 2], 16).unwrap())
}

/// The elements that must be refused, in the given group, or else in the protocol's first one.
fn elements(group: Option<&str>) -> Vec<(&'static str, [u8; 32], Kind)> {
    match group {
        Some(groups::P256 | groups::P256_COMPRESSED) => {
            P256.map(|(name, number)| (name, hex(number), Kind::Illegal)).to_vec()
        }
        other => {
            let elements = ELEMENTS.map(|(name, element)| (name, element, Kind::Illegal));
            // They are valid encodings of ristretto255.
            let kind = if other == Some(groups::RISTRETTO255) { Kind::Value } else { Kind::LowOrder };
            let order_8 = ORDER_8.map(|number| ("of order 8", hex(number), kind));
            elements.into_iter().chain(order_8).collect()
        }
    }
}

/// Length of an element in bytes, if elements are ciphertexts.
const ELEMENT: usize = 64;

pub(crate) fn tag(frame: &[u8]) -> u16 {
    u16::from_le_bytes([frame[0], frame[1]])
}

fn frame(tag: u16, body: &[u8]) -> Vec<u8> {
    [&tag.to_le_bytes()[..], &(body.len() as u32).to_le_bytes(), body].concat()
}

/// A run against a script that tampers with one frame.
pub(crate) struct Case<'a> {
    pub(crate) name: String,
    pub(crate) kind: Kind,
    pub(crate) acts: Vec<Act<'a>>,
}

/// The bodies of an abort message: legal ones and illegal ones.
pub(crate) struct Aborts {
    pub(crate) legal: Vec<Vec<u8>>,
    pub(crate) others: Vec<Vec<u8>>,
}

impl Aborts {
    /// The bodies in a run of two: reasons that this version knows, and one that it does not.
    pub(crate) fn of_two() -> Aborts {
        Aborts { legal: vec![vec![1], vec![4], vec![99], vec![4, 0]], others: vec![vec![], vec![4, 0, 0]] }
    }
}

/// Every way of tampering with the frame at a position of the peer's messages, in this group, or else in the protocol's first.
pub(crate) fn tamper<'a>(
    frames: &'a [Vec<u8>],
    at: usize,
    group: Option<&str>,
    aborts: &Aborts,
) -> Vec<Case<'a>> {
    let (before, now, after) = (&frames[..at], &frames[at], &frames[at + 1..]);
    let (tag, body) = (tag(now), &now[HEADER..]);
    let n = body.len();
    let acts =
        |frames: &'a [Vec<u8>]| frames.iter().map(|frame| Act::Send(frame[..].into())).collect::<Vec<_>>();
    let made =
        |frames: &[Vec<u8>]| frames.iter().map(|frame| Act::Send(frame.clone().into())).collect::<Vec<_>>();
    let itself = || Act::Send(now[..].into());
    let mut cases = Vec::new();
    // The acts take the place of the frame; the rest follows unchanged.
    let mut go_on = |name: &str, kind, now: Vec<Act<'a>>| {
        cases.push(Case { name: name.into(), kind, acts: [acts(before), now, acts(after)].concat() });
    };

    let harmless = Kind::Harmless;
    go_on("a heartbeat before it", harmless, vec![Act::Send(HEARTBEAT[..].into()), itself()]);
    if n < 300 {
        go_on("byte by byte", harmless, now.chunks(1).map(|b| Act::Send(b.into())).collect());
    }

    let longer = [&tag.to_le_bytes()[..], &(n as u32 + 100_000).to_le_bytes(), body].concat();
    go_on("longer by 100 000 bytes", Kind::Structure, vec![Act::Repeat(longer, &[0], 100_000)]);
    let flood = Act::Repeat(Vec::new(), &HEARTBEAT, 70_000);
    go_on("a flood of heartbeats before it", Kind::Structure, vec![flood, itself()]);
    let mut structure = |name: &str, sent: &[Vec<u8>]| go_on(name, Kind::Structure, made(sent));
    if n > 0 {
        structure("cut by a byte", &[frame(tag, &body[..n - 1])]);
        structure("emptied", &[frame(tag, &[])]);
    }
    if n > 1 {
        structure("cut in half", &[frame(tag, &body[..n / 2])]);
    }
    structure("longer by a byte", &[frame(tag, &[body, &[0]].concat())]);
    structure("repeated", &[now.clone(), now.clone()]);
    structure("of another tag", &[frame(tag ^ 1, body)]);
    structure("of tag 0", &[frame(0, body)]);
    for length in [u32::MAX, 1 << 31, n as u32 + 1] {
        let header = [&now[..2], &length.to_le_bytes(), body].concat();
        structure(&format!("of length {length}, says its header"), &[header]);
    }
    structure("a heartbeat with a body before it", &[frame(0xff00, &[1]), now.clone()]);
    for body in &aborts.others {
        structure(&format!("an abort {body:?} before it"), &[frame(ABORT, body), now.clone()]);
    }
    structure("1000 frames of nothing before it", &[frame(tag ^ 1, &[]).repeat(1000), now.clone()]);

    for words in &aborts.legal {
        let stops = vec![Act::Send(frame(ABORT, words).into()), itself()];
        go_on(&format!("it says that it stops, {words:?}, before it"), Kind::Abort, stops);
    }

    let mut replace = |name: &str, kind, body: &[u8]| {
        if body != &now[HEADER..] {
            go_on(name, kind, vec![Act::Send(frame(tag, body).into())]);
        }
    };
    let mut places: BTreeSet<usize> = [0, n / 3, n / 2, 2 * n / 3].into_iter().filter(|&i| i < n).collect();
    places.extend(n.checked_sub(1));
    for byte in places {
        for bit in [0, 7] {
            let mut flipped = body.to_vec();
            flipped[byte] ^= 1 << bit;
            replace(&format!("bit {bit} of byte {byte} flipped"), Kind::Value, &flipped);
        }
    }
    let mut noise = body.to_vec();
    hazmat::seeded(&[tag as u8; 32]).fill(&mut noise);
    replace("noise", Kind::Value, &noise);
    // 0 is the abscissa of a point of P-256.
    let illegal = n.is_multiple_of(32) && group != Some(groups::P256_COMPRESSED);
    replace("zeros", if illegal { Kind::Illegal } else { Kind::Value }, &vec![0; n]);
    if n > 0 && n.is_multiple_of(32) {
        for (name, element, kind) in elements(group) {
            for at in [0, n - 32] {
                let one = [&body[..at], &element, &body[at + 32..]].concat();
                replace(&format!("{name}, at {at}"), kind, &one);
            }
        }
    }
    if let Ok(serde_json::Value::Object(fields)) = serde_json::from_slice(body) {
        for (name, body) in json(&fields) {
            replace(&name, Kind::Illegal, &body);
        }
    }

    let mut end = |name: &str, kind, last: Vec<Act<'a>>| {
        cases.push(Case { name: name.into(), kind, acts: [acts(before), last].concat() });
    };
    let half = || Act::Send(now[..HEADER + n / 2].into());
    let cut = [vec![Act::Send(now[..now.len() - 1].into())], acts(after)].concat();
    // The next frame's first byte takes the place of the missing one.
    end("shorter than its header says", if after.is_empty() { Kind::Silence } else { Kind::Structure }, cut);
    end("left before it", Kind::Silence, vec![Act::Leave]);
    end("closed before it", Kind::Silence, vec![]);
    end("closed in its header", Kind::Silence, vec![Act::Send(now[..3].into())]);
    end("stalled before it", Kind::Silence, vec![Act::Stall]);
    end("only heartbeats instead of it", Kind::Silence, vec![Act::Live]);
    if n > 0 {
        end("closed in its body", Kind::Silence, vec![half()]);
        end("stalled in its body", Kind::Silence, vec![half(), Act::Stall]);
    }
    match after {
        [] => end("left out", Kind::Silence, vec![]),
        [next, rest @ ..] => {
            end("left out", Kind::Structure, acts(after));
            // Frames of the same message may be legal in either order.
            let kind = if self::tag(next) == tag { Kind::Value } else { Kind::Structure };
            let swapped = [vec![Act::Send(next[..].into()), itself()], acts(rest)].concat();
            end("after the next one", kind, swapped);
        }
    }
    cases
}

/// Replaces a frame with frames of the same tag and length that were sent elsewhere, and reorders its elements. A party that
/// forwards the messages it received, or sends one twice, does this.
pub(crate) fn replay<'a>(frames: &'a [Vec<u8>], at: usize, elsewhere: &[&[Vec<u8>]]) -> Vec<Case<'a>> {
    let now = &frames[at];
    let same = |other: &&Vec<u8>| other[..HEADER] == now[..HEADER] && *other != now;
    let mut bodies = Vec::new();
    // One from each place is enough.
    for (i, there) in elsewhere.iter().enumerate() {
        bodies
            .extend(there.iter().find(same).map(|other| (format!("replayed from place {i}"), other.clone())));
    }
    let rows = |order: &dyn Fn(&mut Vec<&[u8]>)| {
        let mut rows: Vec<&[u8]> = now[HEADER..].chunks(ELEMENT).collect();
        order(&mut rows);
        [&now[..HEADER], &rows.concat()].concat()
    };
    if now.len() >= HEADER + 2 * ELEMENT && (now.len() - HEADER).is_multiple_of(ELEMENT) {
        bodies.push(("in the other order".into(), rows(&|rows| rows.reverse())));
        bodies.push((
            "its first element in all places".into(),
            rows(&|rows| *rows = vec![rows[0]; rows.len()]),
        ));
    }
    let acts = |frames: &'a [Vec<u8>]| frames.iter().map(|frame| Act::Send(frame[..].into()));
    let case = |(name, frame): (String, Vec<u8>)| {
        let acts = acts(&frames[..at]).chain([Act::Send(frame.into())]).chain(acts(&frames[at + 1..]));
        Case { name, kind: Kind::Value, acts: acts.collect() }
    };
    bodies.into_iter().filter(|(_, frame)| frame != now).map(case).collect()
}

/// Objects that differ from the one that was sent.
fn json(fields: &serde_json::Map<String, serde_json::Value>) -> Vec<(String, Vec<u8>)> {
    let text = serde_json::to_string(fields).unwrap();
    let mut objects = vec![
        ("not UTF-8".to_owned(), text.replacen(':', ":\u{0}", 1).replace('\0', "X").into_bytes()),
        ("an unknown field".into(), text.replacen('{', r#"{"colour":"red","#, 1).into_bytes()),
        ("something behind it".into(), (text.clone() + "{}").into_bytes()),
        ("an array".into(), format!("[{text}]").into_bytes()),
        ("nested deeply".into(), "[".repeat(4000).into_bytes()),
    ];
    if let Some(x) = objects[0].1.iter_mut().find(|b| **b == b'X') {
        *x = 0xff;
    }
    for (name, value) in fields {
        let mut object = |what: &str, value: Option<&str>| {
            let others = fields.iter().filter(|f| f.0 != name).map(|(k, v)| format!("{k:?}:{v}"));
            let all = others.chain(value.map(|v| format!("{name:?}:{v}")));
            let text = format!("{{{}}}", all.collect::<Vec<_>>().join(","));
            objects.push((format!("{name} {what}"), text.into_bytes()));
        };
        object("missing", None);
        object("twice", Some(&format!("{value},{name:?}:{value}")));
        for other in ["null", "1e999", "-1", "1.5", "18446744073709551616", r#""\ud800""#, r#""\u001b[2J""#] {
            object(&format!("= {other}"), Some(other));
        }
        object("nested deeply", Some(&"[".repeat(2000)));
        object("a long number", Some(&"9".repeat(2000)));
        object("a long text", Some(&format!("{:?}", "x".repeat(3000))));
    }
    objects
}
