//! Multiplication by aws-lc's arithmetic. All foreign calls of this kernel are in this file.
//!
//! `EC_POINT_mul` without a scalar for the generator is the function for a secret scalar and any point. It ends in
//! `ec_point_mul_scalar`, whose implementations for P-256 take the same steps for all scalars: windows of fixed
//! position, and tables that are read as a whole. (`ec_point_mul_scalar_public`, which is not constant-time, is what
//! the library uses to verify signatures.)
//!
//! Three facts show by a branch: that the scalar is below the order, that the result is on the curve (a check for
//! faults), and that it is not at infinity.

use super::Point;
use crate::memory;
use aws_lc_sys::{
    BIGNUM, BN_CTX, BN_CTX_free, BN_CTX_new, BN_bin2bn, BN_clear_free, EC_GROUP, EC_POINT,
    EC_POINT_clear_free, EC_POINT_mul, EC_POINT_new, EC_POINT_oct2point, EC_POINT_point2oct, EC_group_p256,
    ERR_clear_error, point_conversion_form_t,
};
use std::ptr::{null, null_mut};
use zeroize::Zeroizing;

/// Length of an uncompressed point in SEC 1, and its first byte.
const LENGTH: usize = 65;
const UNCOMPRESSED: u8 = 4;

/// A secret scalar in the form of the library, with room for a point and its multiple.
pub(super) struct Scalar {
    group: *const EC_GROUP,
    context: *mut BN_CTX,
    scalar: *mut BIGNUM,
    point: *mut EC_POINT,
    multiple: *mut EC_POINT,
}

impl Scalar {
    /// From a big-endian number below the order. Ends the process if there is no memory.
    pub(super) fn new(scalar: &[u8; 32]) -> Scalar {
        // SAFETY: the group is static; `scalar` is read for its length; the other functions have no conditions.
        // `Drop` frees what is allocated, once.
        let all = unsafe {
            let group = EC_group_p256();
            Scalar {
                group,
                context: BN_CTX_new(),
                scalar: BN_bin2bn(scalar.as_ptr(), scalar.len(), null_mut()),
                point: EC_POINT_new(group),
                multiple: EC_POINT_new(group),
            }
        };
        if all.context.is_null() || all.scalar.is_null() || all.point.is_null() || all.multiple.is_null() {
            memory::exit("a scalar of P-256 cannot be had");
        }
        all
    }

    /// Replaces the point by its multiple. `false` if a coordinate is not below p, or the point is not on the curve;
    /// then it is left as it is.
    pub(super) fn multiply(&mut self, point: &mut Point) -> bool {
        let mut bytes = Zeroizing::new([0; LENGTH]);
        bytes[0] = UNCOMPRESSED;
        bytes[1..].copy_from_slice(point);
        // SAFETY: all pointers are from `new`, of this group and not null; `bytes` is read and written within its
        // length. We have them exclusively.
        let written = unsafe {
            if EC_POINT_oct2point(self.group, self.point, bytes.as_ptr(), LENGTH, self.context) != 1 {
                // Otherwise a queue of this thread keeps it, and another function may report it.
                ERR_clear_error();
                return false;
            }
            let done =
                EC_POINT_mul(self.group, self.multiple, null(), self.point, self.scalar, self.context) == 1;
            if !done {
                memory::exit("a multiple in P-256 cannot be had");
            }
            let form = point_conversion_form_t::POINT_CONVERSION_UNCOMPRESSED;
            EC_POINT_point2oct(self.group, self.multiple, form, bytes.as_mut_ptr(), LENGTH, self.context)
        };
        assert!(written == LENGTH, "no multiple by a scalar below the order is at infinity");
        point.copy_from_slice(&bytes[1..]);
        true
    }
}

impl Drop for Scalar {
    fn drop(&mut self) {
        // SAFETY: each is from `new`, or null, and freed once. In this order the next scalar has the same memory, so that
        // a trace of it has the same addresses.
        unsafe {
            EC_POINT_clear_free(self.multiple);
            EC_POINT_clear_free(self.point);
            BN_clear_free(self.scalar);
            BN_CTX_free(self.context);
        }
    }
}
