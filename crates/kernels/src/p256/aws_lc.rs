//! Multiplication with aws-lc's arithmetic. All foreign calls of this kernel are in this file.
//!
//! `EC_POINT_mul` without a scalar for the generator is the function for a secret scalar and any point. It ends in
//! `ec_point_mul_scalar`, whose implementations for P-256 take the same steps for all scalars: windows at fixed
//! positions, and tables that are read as a whole. (The library uses `ec_point_mul_scalar_public`, which is not
//! constant-time, to verify signatures.)
//!
//! Branches reveal three facts: that the scalar is below the order, that the result is on the curve (a check for
//! faults), and that it is not at infinity.

use super::Point;
use aws_lc_sys::{
    BIGNUM, BN_CTX, BN_CTX_free, BN_CTX_new, BN_bin2bn, BN_clear_free, EC_GROUP, EC_POINT,
    EC_POINT_clear_free, EC_POINT_mul, EC_POINT_new, EC_POINT_oct2point, EC_POINT_point2oct, EC_group_p256,
    ERR_clear_error, point_conversion_form_t,
};
use std::ptr::{null, null_mut};
use zeroize::Zeroizing;

/// Length in bytes of an uncompressed point in SEC 1, including its first byte.
const LENGTH: usize = 65;
const UNCOMPRESSED: u8 = 4;

/// A secret scalar in the library's form, with space for a point and its multiple.
pub(super) struct Scalar {
    group: *const EC_GROUP,
    context: *mut BN_CTX,
    scalar: *mut BIGNUM,
    point: *mut EC_POINT,
    multiple: *mut EC_POINT,
}

impl Scalar {
    /// Makes a scalar from a big-endian number below the order. Ends the process if memory runs out.
    pub(super) fn new(scalar: &[u8; 32]) -> Scalar {
        // SAFETY: the group is static; `scalar` is read for its length; the other functions have no conditions. `Drop`
        // frees each allocation once.
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
            veilset_memory::exit("a scalar of P-256 cannot be had");
        }
        all
    }

    /// Replaces the point with its multiple. Returns `false`, and leaves the point unchanged, if a coordinate is not
    /// below p, or the point is not on the curve.
    pub(super) fn multiply(&mut self, point: &mut Point) -> bool {
        let mut bytes = Zeroizing::new([0; LENGTH]);
        bytes[0] = UNCOMPRESSED;
        bytes[1..].copy_from_slice(point);
        // SAFETY: all pointers are from `new`, belong to this group and are not null; `bytes` is read and written
        // within its length. Our access is exclusive.
        let written = unsafe {
            if EC_POINT_oct2point(self.group, self.point, bytes.as_ptr(), LENGTH, self.context) != 1 {
                // Otherwise the error stays in this thread's queue, and another function may report it.
                ERR_clear_error();
                return false;
            }
            let done =
                EC_POINT_mul(self.group, self.multiple, null(), self.point, self.scalar, self.context) == 1;
            if !done {
                veilset_memory::exit("a multiple in P-256 cannot be had");
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
        // SAFETY: each pointer is from `new`, or null, and freed once. In this order the next scalar gets the same
        // memory, so that its trace has the same addresses.
        unsafe {
            EC_POINT_clear_free(self.multiple);
            EC_POINT_clear_free(self.point);
            BN_clear_free(self.scalar);
            BN_CTX_free(self.context);
        }
    }
}
