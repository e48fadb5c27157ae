//! Punctured trees (GGM84: Goldreich, Goldwasser and Micali; as in BCGI18, "Compressing Vector OLE"). One party knows
//! all leaves; the other knows all leaves except one, whose place the first party does not learn.
//!
//! The children of a node s are pi(s) + s under two public keys, which differ for each tree and level. With AES as an
//! ideal cipher, a search for an unknown node has one target under each key, not the nodes of all trees at once.
//! GKWWY20 ("Better Concrete Security for Half-Gates Garbling", CRYPTO 2020) gives the loss for a single key.
//!
//! For each level, the owner of the whole tree offers the sum of the left nodes and the sum of the right nodes with an
//! OT. The other party takes the side that is off its path.
//!
//! A tree may have any number of leaves: each level has the nodes that lead to a leaf, and their siblings. The *ends*
//! are the leaves and the siblings that lead to no leaf. The owner must reveal the sum of all ends, not the sum of the
//! leaves: a path to an end that is not a leaf gives all leaves, but never all ends.
//!
//! On each level, two addresses depend on the path, in memory that has just been written. No branch does, nor does the
//! time, except for these accesses, which the peer sees only within the time of all trees.

use super::{Element, add};
use crate::params::ceil_log2;
use crate::secret::Secrets;
use subtle::ConditionallySelectable;
use veilset_kernels::aes::Aes128;

/// The shape of a tree, and its keys.
pub(super) struct Tree<'a> {
    /// The cipher that generates the keys, and the number of the tree.
    pub(super) keys: &'a Aes128,
    pub(super) index: usize,
    /// Number of levels below the root; the same for all trees.
    pub(super) depth: usize,
    pub(super) leaves: usize,
}

/// The number of levels of a tree with this many leaves; at least 1.
pub(super) fn depth(leaves: usize) -> usize {
    ceil_log2(leaves).max(1) as usize
}

fn sum(nodes: &[Element]) -> u128 {
    nodes.iter().fold(0, |sum, node| sum ^ u128::from_le_bytes(*node))
}

/// The sums of the left and the right nodes of a level.
fn sums(level: &[Element]) -> [Element; 2] {
    level.as_chunks::<2>().0.iter().fold([[0; 16]; 2], |mut sums, pair| {
        sums.iter_mut().zip(pair).for_each(|(sum, node)| add(sum, node));
        sums
    })
}

impl Tree<'_> {
    /// The children of all nodes on this level; the root is on level 0.
    fn children(&self, nodes: &[Element], level: usize) -> Secrets<Element> {
        let mut keys = [[0; 16]; 2];
        self.keys.ctr((2 * (self.index * self.depth + level)) as u128, keys.as_flattened_mut());
        let mut below = Secrets::zeros(2 * nodes.len());
        let mut encrypted = Secrets::zeros(nodes.len());
        for (side, key) in keys.iter().enumerate() {
            encrypted.copy_from_slice(nodes);
            Aes128::new(key).encrypt(&mut encrypted);
            for ((pair, encrypted), node) in
                below.as_chunks_mut::<2>().0.iter_mut().zip(encrypted.iter()).zip(nodes)
            {
                pair[side] = *encrypted;
                add(&mut pair[side], node);
            }
        }
        below
    }

    /// The number of nodes on the next level that lead to leaves.
    fn needed(&self, level: usize) -> usize {
        self.leaves.div_ceil(1 << (self.depth - 1 - level))
    }

    /// Keeps the nodes of the next level that lead to leaves. Returns the sum of the others.
    fn cut(&self, nodes: &mut Secrets<Element>, level: usize) -> u128 {
        let needed = self.needed(level);
        let ends = sum(&nodes[needed..]);
        nodes.truncate(needed);
        ends
    }

    /// Returns all leaves and the sum of all ends. Writes the two sums of each level to `offered`.
    pub(super) fn grow(&self, root: Element, offered: &mut [[Element; 2]]) -> (Secrets<Element>, u128) {
        let (mut nodes, mut ends) = (Secrets::from(vec![root]), 0);
        for (level, offered) in offered.iter_mut().enumerate() {
            nodes = self.children(&nodes, level);
            *offered = sums(&nodes);
            ends ^= self.cut(&mut nodes, level);
        }
        ends ^= sum(&nodes);
        (nodes, ends)
    }

    /// Returns all leaves except the one at `place`, which is 0, and the sum of all ends except this one.
    /// `taken` holds the sums that [`sides`] selects.
    pub(super) fn regrow(&self, place: u32, taken: &[Element]) -> (Secrets<Element>, u128) {
        let (mut nodes, mut ends) = (Secrets::zeros(1), 0);
        for (level, taken) in taken.iter().enumerate() {
            // The unknown node is 0, and its two children are garbage. One of them is computed from the sum of its
            // side.
            let unknown = (place >> (self.depth - level)) as usize;
            let side = (place >> (self.depth - 1 - level) & 1) as u8;
            nodes = self.children(&nodes, level);
            nodes[2 * unknown..][..2].fill([0; 16]);
            let known = sums(&nodes);
            let mut missing = Element::conditional_select(&known[1], &known[0], side.into());
            add(&mut missing, taken);
            nodes[2 * unknown + usize::from(1 - side)] = missing;
            ends ^= self.cut(&mut nodes, level);
        }
        ends ^= sum(&nodes);
        (nodes, ends)
    }
}

/// For each level of a tree, the sum that the party without the leaf at `place` needs: true for the right nodes.
pub(super) fn sides(place: u32, depth: usize) -> impl Iterator<Item = bool> {
    (0..depth).rev().map(move |bit| place >> bit & 1 == 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn all_leaves_but_one() {
        let keys = Aes128::new(&[7; 16]);
        let mut all = HashSet::new();
        for (index, leaves) in [1, 2, 3, 4, 5, 8, 31, 32, 33].into_iter().enumerate() {
            // At the minimum depth, and deeper.
            for depth in [depth(leaves), depth(leaves) + 2] {
                let tree = Tree { keys: &keys, index, depth, leaves };
                let mut offered = vec![[[0; 16]; 2]; depth];
                let (whole, ends) = tree.grow([index as u8; 16], &mut offered);
                assert_eq!(whole.len(), leaves);
                all.extend(whole.iter().copied());
                for place in 0..leaves {
                    let taken: Vec<Element> = sides(place as u32, depth)
                        .zip(&offered)
                        .map(|(right, sums)| sums[usize::from(right)])
                        .collect();
                    let (punctured, others) = tree.regrow(place as u32, &taken);
                    let mut expected = whole.to_vec();
                    expected[place] = [0; 16];
                    assert_eq!(*punctured, *expected, "{leaves} {depth} {place}");
                    assert_eq!(others ^ u128::from_le_bytes(whole[place]), ends, "{leaves} {depth} {place}");
                }
            }
        }
        assert_eq!(all.len(), 2 * (1 + 2 + 3 + 4 + 5 + 8 + 31 + 32 + 33));
    }

    /// Each tree and level has its own two keys, so equal nodes have different children everywhere.
    #[test]
    fn every_level_of_every_tree_and_side_has_a_key_of_its_own() {
        let (keys, node) = (Aes128::new(&[7; 16]), [[3; 16]]);
        let (depth, mut seen) = (7, HashSet::new());
        for index in 0..600 {
            let tree = Tree { keys: &keys, index, depth, leaves: 1 << depth };
            (0..depth).for_each(|level| seen.extend(tree.children(&node, level).iter().copied()));
        }
        assert_eq!(seen.len(), 600 * 7 * 2);
    }

    /// pi(s) alone could be inverted, since the keys are public.
    #[test]
    fn children_are_those_of_the_definition() {
        let (keys, nodes) = (Aes128::new(&[7; 16]), [[3; 16], [4; 16]]);
        let tree = Tree { keys: &keys, index: 5, depth: 3, leaves: 8 };
        let children = tree.children(&nodes, 2);
        for (i, child) in children.iter().enumerate() {
            let mut key = [(2 * (5 * 3 + 2) + i as u128 % 2).to_le_bytes()];
            keys.encrypt(&mut key);
            let mut expected = [nodes[i / 2]];
            Aes128::new(&key[0]).encrypt(&mut expected);
            add(&mut expected[0], &nodes[i / 2]);
            assert_eq!(*child, expected[0], "{i}");
        }
    }

    /// A path to an end that is not a leaf gives all leaves, so their sum would hide nothing. The sum of all ends
    /// remains unknown.
    #[test]
    fn no_path_gives_all_ends() {
        let keys = Aes128::new(&[7; 16]);
        let deeper = |leaves| [(leaves, depth(leaves)), (leaves, depth(leaves) + 2)];
        for (leaves, depth) in [1, 2, 3, 5, 9, 15, 17, 33].into_iter().flat_map(deeper) {
            let tree = Tree { keys: &keys, index: 1, depth, leaves };
            let mut offered = vec![[[0; 16]; 2]; depth];
            let (whole, ends) = tree.grow([9; 16], &mut offered);
            for place in leaves as u32..1 << depth {
                let (mut nodes, mut others) = (Secrets::zeros(1), 0);
                for (level, (right, sums)) in sides(place, depth).zip(&offered).enumerate() {
                    nodes = tree.children(&nodes, level);
                    let unknown = (place >> (depth - level)) as usize;
                    // Beyond the end of its path, the party knows all nodes.
                    if let Some(pair) = nodes.get_mut(2 * unknown..2 * unknown + 2) {
                        pair.fill([0; 16]);
                        let mut missing = sums[usize::from(right)];
                        add(&mut missing, &super::sums(&nodes)[usize::from(right)]);
                        nodes[2 * unknown + usize::from(right)] = missing;
                    }
                    others ^= tree.cut(&mut nodes, level);
                }
                assert_eq!(*nodes, *whole, "{leaves} {place}");
                assert_ne!(others ^ sum(&nodes), ends, "{leaves} {place}");
            }
        }
    }
}
