//! Hashing of items into bins, and the calculators of numbers and sizes of bins.
