use super::*;
use crate::channel::Channel;
use crate::error::{Error, Fault};
use crate::oprf::tests::is_an_oprf;
use crate::testing::{Views, every_bit_is_random, parts, run_pair, split_frames};

const SESSION: SessionId = SessionId::of([8; 32]);

/// The tags and bodies of frames.
type Frames = Vec<(u16, Vec<u8>)>;

const BOTH_FORMS: [MultiPoint; 2] =
    [MultiPoint { malicious_sender: false }, MultiPoint { malicious_sender: true }];

fn inputs(from: usize, n: usize) -> Vec<Input> {
    (from..from + n).map(|i| Input::of_item(&i.to_le_bytes())).collect()
}

fn run_both(protocol: MultiPoint, y: &[Input], x: &[Input]) -> ((Secrets<Output>, Secrets<Output>), Views) {
    run_pair(&SESSION, |cx| protocol.receiver(cx, y, x.len()), |cx| protocol.sender(cx, x, y.len()))
}

#[test]
fn it_is_an_oprf() {
    is_an_oprf(&BOTH_FORMS[0], CHUNK);
    is_an_oprf(&BOTH_FORMS[1], 100);
}

/// The protocol by its definition, one bit at a time.
struct Reference {
    matrix: Matrix,
    k: [u8; 16],
    /// The columns.
    a: Vec<Vec<bool>>,
    d: Vec<Vec<bool>>,
    r_1: Vec<Vec<bool>>,
}

fn aes(key: [u8; 16], block: [u8; 16]) -> [u8; 16] {
    let mut block = [block];
    Aes128::new(&key).encrypt(&mut block);
    block[0]
}

fn bits(bytes: &[u8]) -> Vec<bool> {
    bytes.iter().flat_map(|byte| (0..8).map(move |i| byte >> i & 1 == 1)).collect()
}

impl Reference {
    fn new(matrix: Matrix, k: [u8; 16], seeds: &[[Pad; 2]], y: &[Input]) -> Reference {
        let column = |(c, seed): (usize, &Pad)| {
            let counter = |i: u128| ((c as u128) << 64 | i).to_le_bytes();
            let blocks = (0..matrix.height.div_ceil(128) as u128).map(|i| aes(*seed, counter(i)));
            let mut all = bits(blocks.collect::<Vec<_>>().as_flattened());
            all.truncate(matrix.height);
            all
        };
        let [a, r_1] =
            [0, 1].map(|b| seeds.iter().enumerate().map(|(c, pair)| column((c, &pair[b]))).collect());
        let mut this = Reference { matrix, k, a, d: vec![vec![true; matrix.height]; matrix.width], r_1 };
        for y in y {
            for (i, v) in this.code(y).into_iter().enumerate() {
                this.d[i][v] = false;
            }
        }
        this
    }

    /// F_k(x): a number below m per column.
    fn code(&self, x: &Input) -> Vec<usize> {
        let key = |i: usize| aes(self.k, (i as u128).to_le_bytes());
        let (x_0, x_1) = (x[..16].try_into().unwrap(), &x[16..]);
        let mut z = aes(key(0), x_0);
        z.iter_mut().zip(x_1).for_each(|(z, x)| *z ^= x);
        let number = |i: usize| {
            let block = aes(key(1 + i / 4), z);
            let number = u32::from_le_bytes(block[i % 4 * 4..][..4].try_into().unwrap());
            number as usize % self.matrix.height
        };
        (0..self.matrix.width).map(number).collect()
    }

    /// The value at x of the columns C.
    fn value(&self, x: &Input, c: impl Fn(usize, usize) -> bool) -> Output {
        let mut row: Vec<bool> = self.code(x).into_iter().enumerate().map(|(i, v)| c(i, v)).collect();
        row.resize(row.len().next_multiple_of(160), false);
        let domain = Domain::new(&SESSION, "multi-point OPRF, H_2");
        row.chunks(160).enumerate().fold([0; 32], |value, (number, piece)| {
            let byte = |bits: &[bool]| bits.iter().rev().fold(0u8, |byte, &bit| byte << 1 | u8::from(bit));
            let piece: Vec<u8> = piece.chunks(8).map(byte).collect();
            domain.hash(&[&(number as u64).to_le_bytes(), &value, &piece])
        })
    }
}

#[test]
fn values_and_columns_are_those_of_the_definition() {
    let rng = &mut Prng::from_seed(&[3; 32]);
    // Rows of one bit, and of one byte and one bit; of one piece, and of one more bit; columns in four frames;
    // more columns than two sets of a million items have.
    let cases = [
        (8, 1, 3, 2),
        (8, 9, 1, 1),
        (64, 160, 30, 50),
        (256, 161, 90, 7),
        (1 << 19, 13, 40, 40),
        (64, 1100, 6, 4),
    ];
    for (height, width, n_y, n_x) in cases {
        let matrix = Matrix { height, width };
        let (y, x) = (inputs(0, n_y), inputs(n_y / 2, n_x));
        let seeds = Seeds(Secrets::from((0..width).map(|_| [rng.bytes(), rng.bytes()]).collect::<Vec<_>>()));
        let choices: Vec<bool> = (0..width).map(|_| rng.below(2) == 1).collect();
        let pads: Vec<Pad> = choices.iter().zip(seeds.0.iter()).map(|(&s, r)| r[usize::from(s)]).collect();
        let k = rng.bytes();
        let expected = Reference::new(matrix, k, &seeds.0, &y);
        let f = Code::new(&k, &matrix);
        let ((f_y, f_x), views) = run_pair(
            &SESSION,
            |cx| offer(cx, &matrix, &seeds, &f, &y),
            |cx| take(cx, &matrix, &choices, &pads, &f, &x),
        );
        let deltas: Vec<u8> = split_frames(&views.0[1]).into_iter().flat_map(|f| f.1).collect();
        let mut sent = bits(&deltas).into_iter();
        for i in 0..width {
            let delta = (0..height).map(|j| expected.a[i][j] ^ expected.d[i][j] ^ expected.r_1[i][j]);
            assert!(delta.eq(sent.by_ref().take(height)), "{matrix:?}, column {i}");
        }
        assert!(sent.next().is_none());
        for (y, value) in y.iter().zip(f_y.iter()) {
            assert_eq!(expected.value(y, |i, j| expected.a[i][j]), *value, "{matrix:?}");
        }
        for (x, value) in x.iter().zip(f_x.iter()) {
            let c = |i: usize, j: usize| expected.a[i][j] ^ (choices[i] & expected.d[i][j]);
            assert_eq!(expected.value(x, c), *value, "{matrix:?}");
        }
        let frames: Vec<usize> = views.frames(1).into_iter().map(|f| f.1).collect();
        assert_eq!(frames, column_frames(&matrix).collect::<Vec<_>>());
        assert_eq!(frames.iter().sum::<usize>(), width * height / 8);
    }
}

#[test]
fn items_of_the_sender_alone_hit_128_ones_and_others_none() {
    for (n_y, n_x) in [(1, 50), (200, 200), (1000, 30)] {
        let matrix = MultiPoint::default().matrix(40, n_x, n_y);
        let seeds = vec![[[0; 16]; 2]; matrix.width];
        let (y, x) = (inputs(0, n_y), inputs(n_y, n_x));
        let reference = Reference::new(matrix, [9; 16], &seeds, &y);
        let ones =
            |x: &Input| reference.code(x).into_iter().enumerate().filter(|&(i, v)| reference.d[i][v]).count();
        assert!(x.iter().all(|x| ones(x) >= 128), "{n_y} {n_x}");
        assert!(y.iter().all(|y| ones(y) == 0));
        // And not because all positions are ones.
        assert!(x.iter().any(|x| ones(x) < matrix.width), "{n_y} {n_x}");
    }
}

#[test]
fn lengths_are_those_of_the_formula_and_nothing_is_sent_for_an_empty_set() {
    for protocol in BOTH_FORMS {
        for (n_y, n_x) in [(0, 0), (0, 3), (3, 0)] {
            let ((f_y, f_x), views) = run_both(protocol, &inputs(0, n_y), &inputs(0, n_x));
            assert!(views.0[0].is_empty() && views.0[1].is_empty());
            assert_eq!((f_y.len(), f_x.len()), (n_y, n_x));
        }
        for (n_y, n_x) in [(1, 1), (30, 500), (500, 1)] {
            let matrix = protocol.matrix(40, n_x, n_y);
            let views = run_both(protocol, &inputs(0, n_y), &inputs(7, n_x)).1;
            assert_eq!(views.frames(0), [(0x31, matrix.width * 64)]);
            let mut expected = vec![(0x32, matrix.width * 32), (0x81, 16)];
            expected.extend(column_frames(&matrix).map(|bytes| (0x82, bytes)));
            assert_eq!(views.frames(1), expected);
        }
    }
}

#[test]
fn the_receiver_says_nothing_before_the_choices_are_made() {
    let y = inputs(0, 5);
    let (mut ours, mut theirs) = Channel::pair();
    let result = std::thread::scope(|s| {
        let receiver = s.spawn(|| {
            let rng = &mut Prng::from_seed(&[1; 32]);
            let result = MultiPoint::default()
                .receiver(&mut Context::new(&mut ours, &SESSION, rng), &y, 5)
                .map(|_| ());
            (result, ours.bytes_sent())
        });
        // Something other than the choices.
        theirs.tx.send(KEY, &[[0; 16]]).unwrap();
        receiver.join().unwrap()
    });
    assert!(
        matches!(&result.0, Err(Error::Peer { fault: Fault::Misbehaved, what: m, .. }) if m.contains("base OT r_0, r_1")),
        "{:?}",
        result.0
    );
    assert_eq!(result.1, 0);
}

/// R knows A and B. At an item that only S has, the value must not be A's or B's value; otherwise R could test guesses of the
/// item.
#[test]
fn what_the_receiver_has_is_not_the_function_at_items_of_the_sender_alone() {
    let (y, x) = (inputs(0, 60), inputs(50, 40));
    for protocol in BOTH_FORMS {
        let matrix = protocol.matrix(40, x.len(), y.len());
        let mut known = None;
        let ((f_y, f_x), views) = run_pair(
            &SESSION,
            |cx| {
                let seeds = Seeds::agree(cx, &matrix)?;
                let f = seeds.send_key(&mut cx.ch.tx, &matrix, cx.rng)?;
                let values = offer(cx, &matrix, &seeds, &f, &y);
                known = Some(seeds.0.to_vec());
                values
            },
            |cx| protocol.sender(cx, &x, y.len()),
        );
        let k = split_frames(&views.0[1]).into_iter().find(|f| f.0 == 0x81).unwrap().1.try_into().unwrap();
        let reference = Reference::new(matrix, k, &known.unwrap(), &y);
        assert_eq!(f_x[..10], f_y[50..]);
        for (x, value) in x.iter().zip(f_x.iter()).skip(10) {
            assert_ne!(reference.value(x, |i, j| reference.a[i][j]), *value, "the value in A");
            assert_ne!(reference.value(x, |i, j| reference.a[i][j] ^ reference.d[i][j]), *value, "in B");
        }
    }
}

#[test]
fn choices_and_values_nobody_evaluates_are_random() {
    let rng = |seed| Prng::from_seed(&[seed; 32]);
    let [one, other] = [1, 2].map(|seed| random_choices(4000, &mut rng(seed)));
    // Mean 2000, standard deviation 32.
    let count = |choices: &mut dyn Iterator<Item = bool>| choices.filter(|&c| c).count();
    assert!(count(&mut one.iter().copied()).abs_diff(2000) < 220);
    assert!(count(&mut one.iter().zip(other.iter()).map(|(a, b)| a != b)).abs_diff(2000) < 220);
    assert!(count(&mut one.windows(2).map(|w| w[0] != w[1])).abs_diff(2000) < 220);
    let all = [1, 2].map(|seed| random_values(50, &mut rng(seed)).to_vec()).concat();
    let halves: std::collections::HashSet<&[u8]> = all.iter().flat_map(|value| value.chunks(16)).collect();
    assert_eq!(halves.len(), 200);
}

/// The choices are the next output of the sender's generator, so every use of it draws different ones.
#[test]
fn choices_are_drawn_anew_in_every_use_of_a_generator() {
    let (y, x, protocol) = (inputs(0, 2), inputs(1, 4), MultiPoint::default());
    let matrix = protocol.matrix(40, x.len(), y.len());
    let generator = || {
        let mut rng = Prng::from_seed(&[5; 32]);
        // An earlier use.
        drop(random_choices(matrix.width, &mut rng));
        rng
    };
    let mut known = None;
    let ((_, f_x), views) = run_pair(
        &SESSION,
        |cx| {
            let seeds = Seeds::agree(cx, &matrix)?;
            let f = seeds.send_key(&mut cx.ch.tx, &matrix, cx.rng)?;
            let values = offer(cx, &matrix, &seeds, &f, &y);
            known = Some(seeds.0.to_vec());
            values
        },
        |cx| protocol.sender(cx.under(generator()), &x, y.len()),
    );
    let k = split_frames(&views.0[1]).into_iter().find(|f| f.0 == 0x81).unwrap().1.try_into().unwrap();
    let reference = Reference::new(matrix, k, &known.unwrap(), &y);
    let choices = random_choices(matrix.width, &mut generator());
    // Where D is 0, the choice does not matter.
    for (x, value) in x.iter().zip(f_x.iter()) {
        let c = |i: usize, j: usize| reference.a[i][j] ^ (choices[i] & reference.d[i][j]);
        assert_eq!(reference.value(x, c), *value);
    }
}

/// Two runs in one session, on the same sets.
#[test]
fn the_key_and_the_columns_are_fresh_in_every_run() {
    let (y, x) = (inputs(0, 30), inputs(0, 30));
    let run = |seed: u8| {
        let protocol = MultiPoint::default();
        run_pair(
            &SESSION,
            |cx| protocol.receiver(cx.under(Prng::from_seed(&[seed; 32])), &y, x.len()),
            |cx| protocol.sender(cx.under(Prng::from_seed(&[seed + 1; 32])), &x, y.len()),
        )
    };
    let (((one, _), views), ((other, _), other_views)) = (run(1), run(3));
    assert!(one.iter().all(|value| !other.contains(value)));
    for tag in [0x31, 0x32, 0x81] {
        let body = |views: &Views, party: usize| {
            split_frames(&views.0[party]).into_iter().find(|f| f.0 == tag).unwrap().1
        };
        let party = usize::from(tag != 0x31);
        let [one, other] = [body(&views, party), body(&other_views, party)];
        let size = if tag == 0x81 { 16 } else { 32 };
        assert!(one.chunks(size).all(|part| other.chunks(size).all(|o| part != o)), "{tag:#x}");
    }
    let columns = |views: &Views| {
        let frames = split_frames(&views.0[1]).into_iter().filter(|f| f.0 == 0x82);
        frames.flat_map(|f| f.1).collect::<Vec<u8>>()
    };
    // The bits of Delta come from two streams: half of them differ.
    let (a, b) = (columns(&views), columns(&other_views));
    let differ: u32 = a.iter().zip(&b).map(|(a, b)| (a ^ b).count_ones()).sum();
    let bits = 8.0 * a.len() as f64;
    assert!((f64::from(differ) - bits / 2.0).abs() < 6.0 * bits.sqrt() / 2.0, "{differ} of {bits}");
}

/// A sender that can try all keys before its choices are fixed can find items that have the same row.
#[test]
fn keys_are_of_full_width() {
    let (matrix, rng) = (Matrix { height: 8, width: 8 }, &mut Prng::from_seed(&[3; 32]));
    let (mut a, mut b) = Channel::pair();
    let seeds = Seeds(Secrets::zeros(8));
    let keys: Vec<[u8; 16]> = (0..300)
        .map(|_| {
            seeds.send_key(&mut a.tx, &matrix, rng).unwrap();
            b.rx.recv(KEY, 1).unwrap()[0]
        })
        .collect();
    every_bit_is_random(&keys, 128);
}

/// D is all ones except for the codes of Y. If a column showed D to S, S could distinguish it from another set's column.
#[test]
fn columns_do_not_show_the_codes() {
    // All columns of a run, without S's choices: in each column about half of the bits are ones.
    let matrix = Matrix { height: 1 << 12, width: 40 };
    let rng = &mut Prng::from_seed(&[3; 32]);
    let seeds = Seeds(Secrets::from((0..40).map(|_| [rng.bytes(), rng.bytes()]).collect::<Vec<_>>()));
    let f = Code::new(&rng.bytes(), &matrix);
    let (_, views) = run_pair(
        &SESSION,
        |cx| offer(cx, &matrix, &seeds, &f, &inputs(0, 3)),
        |cx| column_frames(&matrix).map(|n| cx.ch.rx.recv_bytes(DELTAS, n)).collect::<Result<Vec<_>>>(),
    );
    let deltas: Vec<u8> = split_frames(&views.0[1]).into_iter().flat_map(|f| f.1).collect();
    let columns: Vec<&[u8]> = deltas.chunks(matrix.height / 8).collect();
    for (i, column) in columns.iter().enumerate() {
        // Mean 2048, standard deviation 32, also for the sum of two columns.
        let near = |ones: u32| ones.abs_diff(2048) < 220;
        assert!(near(column.iter().map(|byte| byte.count_ones()).sum()), "column {i}");
        for other in &columns[..i] {
            assert!(near(column.iter().zip(*other).map(|(a, b)| (a ^ b).count_ones()).sum()), "column {i}");
        }
    }
}

#[test]
fn the_matrix_is_that_of_the_sizes_and_of_the_form() {
    for (n_x, n_y) in [(1, 1), (1 << 20, 1 << 20), (1 << 20, 3), (3, 1 << 20)] {
        for protocol in BOTH_FORMS {
            for exponent in [40, 41] {
                let expected = Matrix::new(exponent, n_x, n_y, protocol.malicious_sender);
                assert_eq!(protocol.matrix(exponent, n_x, n_y), expected);
            }
        }
    }
}

/// A run with a share of the error has the matrix of its share, on both sides and in its cost.
#[test]
fn the_matrix_follows_the_error_of_the_run() {
    let (y, x, protocol) = (inputs(0, 30), inputs(10, 40), MultiPoint::default());
    let widths = [40, 60].map(|exponent| {
        let ((f_y, f_x), views) = run_pair(
            &SESSION,
            |cx| {
                cx.exponent = exponent;
                protocol.receiver(cx, &y, x.len())
            },
            |cx| {
                cx.exponent = exponent;
                protocol.sender(cx, &x, y.len())
            },
        );
        assert_eq!(f_y[10..], f_x[..20], "{exponent}");
        let sends = protocol.cost(exponent, y.len(), x.len()).sends();
        assert_eq!(sends, [views.0[1].len(), views.0[0].len()], "{exponent}");
        let width = Matrix::new(exponent, x.len(), y.len(), false).width;
        assert_eq!(views.frames(0), [(0x31, width * 64)], "{exponent}");
        width
    });
    assert!(widths[0] < widths[1], "{widths:?}");
}

/// The result of a party that receives these frames and nothing after them.
fn fed(
    party: impl FnOnce(&mut Context) -> Result<Secrets<Output>> + Send,
    frames: &[(u16, Vec<u8>)],
    seed: usize,
) -> Result<()> {
    let (mut peer, mut ch) = Channel::pair();
    std::thread::scope(|s| {
        let party = s.spawn(move || {
            let rng = &mut Prng::from_seed(&crate::testing::SEEDS[seed]);
            party(&mut Context::new(&mut ch, &SESSION, rng)).map(|_| ())
        });
        for (tag, body) in frames {
            // The party may have given up already.
            let _ = peer.tx.send_bytes(Message::new(*tag, "forged"), body);
        }
        // The party may still send.
        let (sink, _source) = peer.into_halves();
        drop(sink);
        party.join().unwrap()
    })
}

#[test]
fn forged_messages_are_errors_that_name_what_was_expected() {
    let protocol = MultiPoint::default();
    let (y, x) = (inputs(0, 40), inputs(20, 30));
    let views = run_both(protocol, &y, &x).1;
    for party in [0, 1] {
        let honest = split_frames(&views.0[party]);
        let fed = |frames: &[(u16, Vec<u8>)]| match party {
            0 => fed(|cx| protocol.receiver(cx, &y, x.len()), frames, 0),
            _ => fed(|cx| protocol.sender(cx, &x, y.len()), frames, 1),
        };
        assert_eq!(fed(&honest), Ok(()), "the forgeries are all that is wrong below");
        for at in 0..honest.len() {
            let name = match honest[at].0 {
                0x31 => "base OT r_0, r_1",
                0x32 => "base OT b G",
                0x81 => "key k of F",
                _ => "columns Delta_i",
            };
            let with = |forge: &dyn Fn(&mut Frames)| {
                let mut frames = honest.clone();
                forge(&mut frames);
                fed(&frames)
            };
            let forged = [
                ("short", with(&|f| f[at].1 = f[at].1[1..].to_vec())),
                ("empty", with(&|f| f[at].1.clear())),
                ("long", with(&|f| f[at].1.push(0))),
                ("of another tag", with(&|f| f[at].0 = 0x64)),
                ("another message first", with(&|f| f.insert(at, (0x12, vec![1; 32])))),
            ];
            for (what, result) in forged {
                assert!(
                    matches!(&result, Err(Error::Peer { fault: Fault::Misbehaved, what: m, .. }) if m.contains(name)),
                    "{name} {what}: {result:?}"
                );
            }
            let cut = with(&|f| f.truncate(at));
            assert!(matches!(cut, Err(Error::Network(_))), "{name} cut off: {cut:?}");
            // A key before the OTs are complete, or columns before the key.
            if at + 1 < honest.len() && honest[at].0 != honest[at + 1].0 {
                let swapped = with(&|f| f.swap(at, at + 1));
                assert!(
                    matches!(&swapped, Err(Error::Peer { fault: Fault::Misbehaved, what: m, .. }) if m.contains(name)),
                    "{name}: {swapped:?}"
                );
            }
        }
        // Invalid points.
        for bytes in [[0; 32], [0xff; 32]] {
            let mut frames = honest.clone();
            frames[0].1[32..64].copy_from_slice(&bytes);
            let result = fed(&frames);
            assert!(
                matches!(&result, Err(Error::Peer { fault: Fault::Misbehaved, what: m, .. }) if m.contains("base OTs")),
                "{result:?}"
            );
        }
    }
}

/// Columns of several groups and frames: one half computes while the other has the connection.
#[test]
fn an_error_amid_the_columns_ends_both_halves() {
    let matrix = Matrix { height: 1 << 19, width: 40 };
    let (threads, f) = (Threads::new(2).unwrap(), Code::new(&[7; 16], &matrix));
    let sender = |cx: &mut Context| {
        take(&mut cx.on(&threads), &matrix, &[true; 40], &[[1; 16]; 40], &f, &inputs(0, 3))
    };
    let honest: Frames = column_frames(&matrix).map(|bytes| (0x82, vec![0; bytes])).collect();
    assert_eq!((honest.len(), fed(sender, &honest, 1)), (10, Ok(())));
    for at in [1, 3, 9] {
        let cut = fed(sender, &honest[..at], 1);
        assert!(matches!(cut, Err(Error::Network(_))), "{at}: {cut:?}");
        let mut frames = honest.clone();
        frames[at].0 = 0x64;
        let forged = fed(sender, &frames, 1);
        assert!(
            matches!(&forged, Err(Error::Peer { fault: Fault::Misbehaved, what: m, .. }) if m.contains("columns Delta_i")),
            "{at}: {forged:?}"
        );
    }
    let seeds = Seeds(Secrets::from(vec![[[1; 16], [2; 16]]; 40]));
    let receiver = |cx: &mut Context| offer(&mut cx.on(&threads), &matrix, &seeds, &f, &inputs(0, 3));
    type Party<'a> = &'a (dyn Fn(&mut Context) -> Result<Secrets<Output>> + Sync);
    type Peer<'a> = &'a dyn Fn(&mut Channel);
    // The columns are more than the channel holds: the receiver cannot end until they are read.
    let interrupted = |party: Party, peer: Peer, stopped: bool| {
        let (mut ours, mut theirs) = Channel::pair();
        let canceller = ours.canceller();
        std::thread::scope(|s| {
            let party = s.spawn(move || {
                party(&mut Context::new(&mut ours, &SESSION, &mut Prng::from_seed(&[1; 32]))).map(|_| ())
            });
            peer(&mut theirs);
            match stopped {
                true => canceller.cancel(),
                false => drop(theirs),
            }
            party.join().unwrap()
        })
    };
    let parties: [(Party, Peer); 2] = [
        (&receiver, &|peer| drop(peer.rx.recv_bytes(DELTAS, FRAME).unwrap())),
        (&sender, &|peer| peer.tx.send_bytes(DELTAS, &honest[0].1).unwrap()),
    ];
    for (party, peer) in parties {
        let left = interrupted(party, peer, false);
        assert!(matches!(left, Err(Error::Network(_))), "{left:?}");
        let stopped = interrupted(party, peer, true);
        assert_eq!(stopped, Err(Error::Cancelled));
    }
}

#[test]
fn wrong_columns_or_another_key_give_other_values_and_no_error() {
    let protocol = MultiPoint::default();
    let (y, x) = (inputs(0, 40), inputs(0, 40));
    let ((_, f_x), views) = run_both(protocol, &y, &x);
    let honest = split_frames(&views.0[1]);
    for (at, byte) in [(1, 3), (2, 0)] {
        let mut frames = honest.clone();
        // In all columns, since only those whose choice bit is 1 have an effect.
        frames[at].1.iter_mut().skip(byte).for_each(|b| *b ^= 0xff);
        let values = std::sync::Mutex::new(None);
        let keep = |cx: &mut Context| {
            let got = protocol.sender(cx, &x, y.len())?;
            *values.lock().unwrap() = Some(got.to_vec());
            Ok(got)
        };
        fed(keep, &frames, 1).unwrap();
        let values = values.into_inner().unwrap().unwrap();
        assert!(values.iter().zip(f_x.iter()).all(|(a, b)| a != b));
    }
}

#[test]
fn values_and_bytes_do_not_depend_on_the_number_of_threads() {
    let (y, x) = (inputs(0, 700), inputs(350, 500));
    let run = |threads| {
        let threads = Threads::new(threads).unwrap();
        let protocol = MultiPoint::default();
        let ((f_y, f_x), views) = run_pair(
            &SESSION,
            |cx| protocol.receiver(&mut cx.on(&threads), &y, x.len()),
            |cx| protocol.sender(&mut cx.on(&threads), &x, y.len()),
        );
        (f_y.to_vec(), f_x.to_vec(), views.0)
    };
    assert!(run(1) == run(3));
}

#[test]
fn sessions_have_functions_of_their_own() {
    // The same randomness, so that only the session in each oracle differs.
    let y = inputs(0, 3);
    let run = |session: SessionId| {
        let ((f_y, _), views) = run_pair(
            &session,
            |cx| MultiPoint::default().receiver(cx, &y, 3),
            |cx| MultiPoint::default().sender(cx, &y, 3),
        );
        (f_y.to_vec(), parts(&views.0[1], 0x81, 16), parts(&views.0[1], 0x82, usize::MAX).concat())
    };
    let [one, other] = [run(SessionId::of([1; 32])), run(SessionId::of([2; 32]))];
    assert!(one.0.iter().all(|value| !other.0.contains(value)));
    assert!(one == run(SessionId::of([1; 32])));
    // k is the same, but the seeds of the columns come from oracles that depend on the session.
    assert_eq!(one.1, other.1);
    let differ: u32 = one.2.iter().zip(&other.2).map(|(a, b)| (a ^ b).count_ones()).sum();
    let bits = 8.0 * one.2.len() as f64;
    assert!((f64::from(differ) - bits / 2.0).abs() < 6.0 * bits.sqrt() / 2.0, "{differ} of {bits}");
}
