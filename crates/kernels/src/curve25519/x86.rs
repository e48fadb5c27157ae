//! The portable code compiled for x86-64 with BMI2: `mulx` leaves the flags and takes any register.

use super::portable;

#[target_feature(enable = "bmi2")]
pub(super) fn ladder_bmi2(scalar: &[u8; 32], points: &mut [[u8; 32]]) {
    portable::ladder(scalar, points);
}

#[target_feature(enable = "bmi2")]
pub(super) fn elligator2_bmi2(r: &[[u8; 32]], out: &mut [[u8; 32]]) {
    portable::elligator2(r, out);
}
