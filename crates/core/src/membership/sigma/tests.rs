use super::*;
use crate::hash::SessionId;
use crate::item::ItemSet;
use crate::rng::Prng;
use crate::testing::{overlapping, run_pair, sizes};
use std::collections::HashSet;

const SESSION: SessionId = SessionId::of([5; 32]);

/// The ideal Sigma-mqPMT, for testing its callers: hashes in the clear.
pub(crate) struct Ideal;

pub(crate) const HASHES: Message<[u8; 32]> = Message::new(0x7006, "ideal first message");

impl SigmaMqpmt for Ideal {
    type Server<'s> = &'s HashedSet<'s>;
    type Client<'s> = &'s HashedSet<'s>;
    type Encoding = HashSet<[u8; 32]>;
    type Query = [u8; 32];
    type Response = [u8; 32];
    type Opened = [u8; 32];

    const QUERIES: Message<[u8; 32]> = Message::new(0x7007, "ideal query");
    const RESPONSES: Message<[u8; 32]> = Message::new(0x7008, "ideal response");

    fn server<'s>(&self, _: &mut Context, y: &'s HashedSet<'s>, _: Sizes) -> Result<&'s HashedSet<'s>> {
        Ok(y)
    }

    fn client<'s>(&self, _: &mut Context, x: &'s HashedSet<'s>, _: Sizes) -> Result<&'s HashedSet<'s>> {
        Ok(x)
    }

    fn send_encoding(&self, y: &&HashedSet<'_>, tx: &mut Tx, _: &Threads, of: Sizes) -> Result<()> {
        let all = self.queries(y, &(0..of.n_y as u32).collect::<Vec<_>>())?;
        all.chunks(FRAME).try_for_each(|some| tx.send(HASHES, some))
    }

    fn receive_encoding(&self, rx: &mut Rx, of: Sizes) -> Result<HashSet<[u8; 32]>> {
        let some = frames(of.n_y, FRAME).map(|n| rx.recv(HASHES, n));
        Ok(some.collect::<Result<Vec<_>>>()?.concat().into_iter().collect())
    }

    fn queries(&self, x: &&HashedSet<'_>, positions: &[u32]) -> Result<Vec<[u8; 32]>> {
        Ok(x.hashes(positions).iter().map(|hash| *hash.as_bytes()).collect())
    }

    fn respond(&self, _: &&HashedSet<'_>, _: &mut Prng, queries: &[[u8; 32]]) -> Result<Vec<[u8; 32]>> {
        Ok(queries.to_vec())
    }

    fn repeats(&self, responses: &[Zeroizing<Vec<[u8; 32]>>]) -> bool {
        let all = responses.iter().flat_map(|some| some.iter());
        all.clone().collect::<HashSet<_>>().len() < all.count()
    }

    fn open(&self, _: &&HashedSet<'_>, responses: &[[u8; 32]]) -> Result<Secrets<[u8; 32]>> {
        Ok(Secrets::from(responses.to_vec()))
    }

    fn test(&self, a: &HashSet<[u8; 32]>, opened: &[[u8; 32]], _: &Threads) -> Result<Secrets<bool>> {
        Ok(Secrets::from(opened.iter().map(|hash| a.contains(hash)).collect::<Vec<_>>()))
    }
}

/// Whether each item of X is in Y.
pub(crate) fn plain(y: &ItemSet, x: &ItemSet) -> Vec<bool> {
    let y: HashSet<&[u8]> = y.iter().collect();
    x.iter().map(|item| y.contains(item)).collect()
}

/// Checks the bits and the three properties. Every Sigma-mqPMT must pass it.
pub(crate) fn is_a_sigma_mqpmt<S: SigmaMqpmt>(sigma: &S, frame: usize) {
    for (n_y, n_x) in sizes(frame) {
        for overlap in [0.0, 0.5, 1.0] {
            let (y, x) = overlapping(n_y, n_x, overlap);
            let (hashed_y, hashed_x) = (HashedSet::new(&y), HashedSet::new(&x));
            let (((), bits), _) = run_pair(
                &SESSION,
                |cx| server(sigma, cx, &hashed_y, n_x),
                |cx| client(sigma, cx, &hashed_x, n_y),
            );
            assert_eq!(*bits, plain(&y, &x), "{n_y} {n_x} {overlap}");
        }
    }
    has_the_three_properties(sigma);
}

fn has_the_three_properties<S: SigmaMqpmt>(sigma: &S) {
    let (y, x) = overlapping(90, 60, 0.5);
    let expected = plain(&y, &x);
    let of = Sizes { n_y: 90, n_x: 60 };
    let (y, hashed_x) = (HashedSet::new(&y), HashedSet::new(&x));
    let (mut ours, mut theirs) = crate::channel::Channel::pair();
    let [rng_of_server, rng_of_client] = &mut [Prng::from_seed(&[1; 32]), Prng::from_seed(&[2; 32])];
    // The client first: it may send a key.
    let client =
        sigma.client(&mut Context::new(&mut theirs, &SESSION, rng_of_client), &hashed_x, of).unwrap();
    let server = sigma.server(&mut Context::new(&mut ours, &SESSION, rng_of_server), &y, of).unwrap();
    let threads = Threads::global();
    let bytes = |queries: &[S::Query]| {
        let mut out = Vec::new();
        queries.iter().for_each(|query| query.put(&mut out));
        out
    };

    // Reusable: one first message serves queries that are answered in several parts.
    sigma.send_encoding(&server, &mut ours.tx, threads, of).unwrap();
    let a = sigma.receive_encoding(&mut theirs.rx, of).unwrap();
    let all: Vec<u32> = (0..60).collect();
    let mut responses = Vec::new();
    for part in all.chunks(17) {
        let queries = sigma.queries(&client, part).unwrap();
        responses.extend(sigma.respond(&server, rng_of_server, &queries).unwrap());
    }
    let bits = |responses: &[S::Response]| {
        let opened = sigma.open(&client, responses).unwrap();
        sigma.test(&a, &opened, threads).unwrap().to_vec()
    };
    assert_eq!(bits(&responses), expected, "reusable");

    // Context-independent: a query depends neither on the other queries nor on the other items of X.
    let together = bytes(&sigma.queries(&client, &all).unwrap());
    let each: Vec<u8> = all.iter().flat_map(|&i| bytes(&sigma.queries(&client, &[i]).unwrap())).collect();
    assert!(together == each, "context-independent");
    // At the same position, from which its randomness may follow.
    let others = ["one", "two", "three", "four", "five", "six", "seven"].into_iter().map(str::as_bytes);
    let others: ItemSet = others.chain([x.get(7)]).collect();
    let others = HashedSet::new(&others);
    let again = &mut Prng::from_seed(&[2; 32]);
    let other = sigma.client(&mut Context::new(&mut theirs, &SESSION, again), &others, of).unwrap();
    let there = bytes(&sigma.queries(&other, &[7]).unwrap());
    assert!(there == bytes(&sigma.queries(&client, &[7]).unwrap()), "context-independent");

    // Stateless: any responses can be tested, in any order.
    let order = Prng::from_seed(&[3; 32]).permutation(60);
    let some: Vec<S::Response> = order.iter().take(40).map(|&i| responses[i as usize]).collect();
    let theirs: Vec<bool> = order.iter().take(40).map(|&i| expected[i as usize]).collect();
    assert_eq!(bits(&some), theirs, "stateless");
    assert_eq!(bits(&responses[5..6]), expected[5..6], "stateless");
}

#[test]
fn the_ideal_one_is_a_sigma_mqpmt() {
    is_a_sigma_mqpmt(&Ideal, 100);
}
