//! Oblivious key-value stores: a vector that maps keys to values and, where the values are random, does not show
//! which keys it was made for.
