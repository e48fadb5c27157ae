//! The number of bytes sent, and the sizes of the messages.

use super::*;

#[test]
fn message_sizes_depend_on_public_sizes_only() {
    let (n_y, n_x) = (40, 70);
    let kinds = kinds().into_iter().filter(|k| !is_krtw19(k.1.protocol) || (k.2.both && k.2.payload));
    let (mut draw, mut others) = (Draw::new("message sizes"), Draw::new("message sizes of other sets"));
    for kind in draw.of_each(1, kinds, |k| (k.0.name, k.1.protocol.name)) {
        let mut seen = HashSet::new();
        // Overlap, lengths and values differ. The tags are checked in membership::cwprf.
        for (overlap, stretch) in others.some(2, [(0.0, 0), (0.5, 0), (1.0, 0), (0.5, 2000)]) {
            let (y, x) = overlapping(n_y, n_x, overlap);
            let longer = |s: &ItemSet| -> ItemSet {
                s.iter().map(|i| [&i[..i.len().min(40)], &vec![1; stretch][..]].concat()).collect()
            };
            let (y, x) = (longer(&y), longer(&x));
            let values = vec![stretch as i128; n_x];
            let payloads = payloads_of(&x, &kind.2);
            let views = run_tasks(tasks_of(&kind, &y, &x, &values, &payloads)).1;
            let frames =
                [0, 1].map(|p| views.frames(p).into_iter().filter(|f| f.0 != 0x21).collect::<Vec<_>>());
            seen.insert(frames);
        }
        assert_eq!(seen.len(), 1, "{kind:?}");
    }
}

#[test]
fn byte_counts_are_those_of_the_formula() {
    let (n_y, n_x) = (300, 200);
    let (y, x) = overlapping(n_y, n_x, 0.5);
    let ot_setup = [128 * 64 + 6, 128 * 32 + 6 + 128 * 32 + 6];
    // Corrections: 22 trees, 256 rows.
    let corrections = 22 * 256 / 8 + 6;
    // At most 256 KiB of rows per frame.
    let rows = |width: usize| n_x * width + 6 * n_x.div_ceil((1 << 18) / width);
    // `session::estimate` checks the bytes of tests in bins and of optional protocols, and the next test the bytes of
    // sigma-ahe.
    let elsewhere = |k: &Kind| {
        is_krtw19(k.1.protocol) || [&OSN, &SIGMA_AHE].contains(&k.1.protocol) || is_optional(k.1.protocol)
    };
    let kinds = kinds().into_iter().filter(|k| !elsewhere(k));
    for kind in Draw::new("bytes of the formula").of_each(1, kinds, |k| (k.0.name, k.1.protocol.name)) {
        let (operation, Choice { protocol, group }, terms) = kind;
        let point = crate::group::facts(group).unwrap().point;
        let payloads = payloads_of(&x, &terms);
        let (_, views) = run_tasks(tasks_of(&kind, &y, &x, &values_of(&x), &payloads));
        // The heads of tags, which vary slightly in length.
        let heads: usize = views.frames(0).iter().filter(|f| f.0 == 0x21).map(|f| f.1 + 6).sum();
        if protocol == &DH_PSI {
            // Tags of 40 + 8 + 9 bits, or 128: a head of 96 bits and a tail.
            let (points, rows) = (n_y * point + 6, rows(MAX_ROW + 2));
            let to_receiver = match terms.payload {
                true => points + heads + n_x * 4 + 6 + rows,
                false => points + heads,
            };
            let to_sender = points + if terms.both { n_x / 8 + 6 } else { 0 };
            assert_eq!([views.0[0].len(), views.0[1].len()], [to_receiver, to_sender], "{kind:?}");
            continue;
        }
        if protocol == &CM20 {
            // m = 1024 for 300 items, so all columns fit in one frame. Tags of 57, 113 or 128 bits.
            let w = 247;
            let to_receiver = match (terms.payload, terms.malicious_sender) {
                (true, _) => heads + n_x * 4 + 6 + rows(MAX_ROW + 2),
                (false, true) => heads + n_x * 3 + 6,
                (false, false) => heads,
            };
            let columns = w * 1024 / 8 + 6;
            let to_sender = w * 32 + 6 + 16 + 6 + columns + if terms.both { n_x / 8 + 6 } else { 0 };
            let lengths = [views.0[0].len(), views.0[1].len()];
            assert_eq!(lengths, [w * 64 + 6 + to_receiver, to_sender], "{kind:?}");
            continue;
        }
        if protocol == &VOLE {
            // 22 trees; 64 OTs per element of GF(2^64), in groups of 128, 128 elements per frame; the checks; the seed;
            // A + P. Tags of 57 bits.
            let m = crate::okvs::size(n_y);
            assert!((n_y..1000).contains(&m), "{m}");
            let checked = 23 * 32 + 6 + m.div_ceil(128) * (22 * 16 + 129 * 16 + 6);
            let corrections = 22 * 8 * m.next_multiple_of(2) + 6 * m.div_ceil(128);
            let to_sender = ot_setup[1] + checked + corrections + 16 + 6 + 8 * m + 6;
            let to_sender = to_sender + if terms.both { n_x / 8 + 6 } else { 0 };
            let to_receiver = match terms.payload {
                true => heads + n_x * 4 + 6 + rows(MAX_ROW + 2),
                false => heads,
            };
            let lengths = [views.0[0].len(), views.0[1].len()];
            assert_eq!(lengths, [ot_setup[0] + to_receiver, to_sender], "{kind:?}");
            continue;
        }
        if protocol == &SIGMA_DH {
            // Points in both directions and the tags, and for a union the bits. The server is the party that is queried.
            let server = usize::from(operation == &COUNT);
            let n = [n_x, n_y][server];
            let tags: usize = views.frames(1 - server).iter().filter(|f| f.0 == 0x21).map(|f| f.1 + 6).sum();
            let mut bytes = [0; 2];
            bytes[server] += n * 32 + 6;
            bytes[1 - server] += n * 32 + 6 + tags;
            if operation == &UNION {
                let parts = MAX_ROW + 2 + if terms.payload { 2 } else { 0 };
                bytes[0] += n_x / 8 + 6 + ot_setup[0] + rows(parts);
                bytes[1] += ot_setup[1] + corrections;
            } else if terms.both {
                bytes[1] += 8 + 6;
            }
            assert_eq!([views.0[0].len(), views.0[1].len()], bytes, "{kind:?}");
            continue;
        }
        if protocol == &DC17 {
            // 48 positions in 300 * 48 / ln 2 cells, slightly fewer as 200 is no power of two, in frames of 8192 cells of 32
            // bytes. Then two ciphertexts of 64 bytes and a row per item, in frames of at most 256 KiB together.
            let cells = crate::operations::dc17::filter(&TERMS, n_y, n_x).filter.cells as usize;
            assert!((20_600..20_774).contains(&cells), "{cells}");
            let filter = 2 * (32 + 6) + 32 * cells + 6 * 3;
            let row = match operation.name {
                "count" => 0,
                "intersect" => 16 + if terms.payload { MAX_ROW + 2 } else { 0 },
                _ => MAX_ROW + 2 + if terms.payload { 2 } else { 0 },
            };
            let ciphertexts = if row > 0 { 128 } else { 64 };
            let frames = n_x.div_ceil((1 << 18) / (ciphertexts + row)) * if row > 0 { 2 } else { 1 };
            let both = match operation.name {
                "count" => 8 + 6,
                "intersect" => n_x / 8 + 6,
                _ => {
                    8 + 6 + (n_y + n_x) * (MAX_ROW + 2) + 6 * (n_y + n_x).div_ceil((1 << 18) / (MAX_ROW + 2))
                }
            };
            let to_sender = filter + if terms.both { both } else { 0 };
            let to_receiver = n_x * (ciphertexts + row) + 6 * frames;
            assert_eq!([views.0[0].len(), views.0[1].len()], [to_receiver, to_sender], "{kind:?}");
            continue;
        }
        let tags: usize = views.frames(0).iter().filter(|f| f.0 == 0x21).map(|f| f.1 + 6).sum();
        let to_sender = n_y * point + 6;
        let to_receiver = match protocol == &POPRF {
            // The points are returned, and the queries are tags of 40 + 8 + 9 bits.
            true => n_y * point + 6 + n_x * 8 + 6,
            false => n_x * point + 6 + tags,
        };
        // Lengths of two bytes each.
        let parts = |n: usize| MAX_ROW + 2 * n;
        let union_rows = (n_y + n_x) * parts(1) + 6 * (n_y + n_x).div_ceil((1 << 18) / parts(1));
        let both = |bytes| if terms.both { bytes } else { 0 };
        let (more_to_receiver, more_to_sender) = match operation.name {
            "count" => (0, both(8 + 6)),
            "intersect" => (
                ot_setup[0] + rows(16 + if terms.payload { parts(1) } else { 0 }),
                ot_setup[1] + corrections + both(n_x / 8 + 6),
            ),
            "union" => (
                ot_setup[0] + rows(parts(if terms.payload { 2 } else { 1 })),
                ot_setup[1] + corrections + both(8 + 6 + union_rows),
            ),
            "sum" => (ot_setup[0] + n_x * 8 + 6, ot_setup[1] + corrections + 25 + 6),
            // `session::estimate` compares the bytes of every operation with its cost. This test compares them
            // with the papers' formulas.
            _ => continue,
        };
        assert_eq!(views.0[0].len(), to_receiver + more_to_receiver, "{operation} to receiver");
        assert_eq!(views.0[1].len(), to_sender + more_to_sender, "{operation} to sender");
        // t = 40 + 9 + 8 bits; the remainder has 48.
        assert!(protocol == &POPRF || (n_y * 49 / 8..n_y * 52 / 8).contains(&tags), "{tags}");
    }
}

/// One query ciphertext for each pair of items, and one response for each query.
#[test]
fn byte_counts_of_sigma_ahe_are_those_of_the_formula() {
    for kind in kinds().into_iter().filter(|k| k.1.protocol == &SIGMA_AHE) {
        for [n_y, n_x] in [[100, 70], [0, 3], [3, 0], [70, 100]] {
            let (operation, _, terms) = kind;
            let (y, x) = overlapping(n_y, n_x, 0.5);
            let payloads = payloads_of(&x, &terms);
            let (_, views) = run_tasks(tasks_of(&kind, &y, &x, &[], &payloads));
            let of_moves = |party: usize| -> usize {
                let moves = views.frames(party).into_iter().filter(|f| (0x19..=0x1b).contains(&f.0));
                moves.map(|f| f.1 + 6).sum()
            };
            // In a union the receiver is the server, in a count the sender.
            let server = usize::from(operation == &COUNT);
            let (served, queries) = if server == 0 { (n_y.max(1), n_x) } else { (n_x.max(1), n_y) };
            let frames = queries.div_ceil((1 << 18) / (64 * served));
            let key = if queries > 0 { 32 + 6 } else { 0 };
            let expected = [key + 64 * served * queries + 6 * frames, 64 * queries + 6 * queries.min(1)];
            assert_eq!([of_moves(server), of_moves(1 - server)], expected, "{kind:?} {n_y} {n_x}");
        }
    }
}
