//! Keys of the curve P-256.

use std::sync::LazyLock;

use num_bigint::BigUint;

use super::der;
use crate::generator::Stream;

/// Bytes of a coordinate, and of a private key.
const SIZE: usize = 32;

/// The OID of the curve, with its tag.
const CURVE: [u8; 10] = [0x06, 0x08, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x03, 0x01, 0x07];

/// Tags of the parameters and the public key in a private key.
const PARAMETERS: u8 = 0xa0;
const PUBLIC: u8 = 0xa1;

struct Curve {
    field: BigUint,
    order: BigUint,
    base: Point,
}

static CURVE_P256: LazyLock<Curve> = LazyLock::new(|| {
    let number = |text: &str| BigUint::parse_bytes(text.as_bytes(), 16).unwrap_or_default();
    Curve {
        field: number("ffffffff00000001000000000000000000000000ffffffffffffffffffffffff"),
        order: number("ffffffff00000000ffffffffffffffffbce6faada7179e84f3b9cac2fc632551"),
        base: Point {
            x: number("6b17d1f2e12c4247f8bce6e563a440f277037d812deb33a0f4a13945d898c296"),
            y: number("4fe342e2fe1a7f9b8ee7eb4a7c0f9e162bce33576b315ececbb6406837bf51f5"),
        },
    }
});

#[derive(Clone, Debug, PartialEq, Eq)]
struct Point {
    x: BigUint,
    y: BigUint,
}

impl Curve {
    /// The sum of two points; `None` is the point at infinity.
    fn add(&self, a: Option<Point>, b: Option<Point>) -> Option<Point> {
        let field = &self.field;
        let (Some(a), Some(b)) = (&a, &b) else { return a.or(b) };
        let minus = |a: &BigUint, b: &BigUint| (a + field - b) % field;
        let (rise, run) = if a == b {
            // The curve is y² = x³ - 3x + b.
            ((&a.x * &a.x * 3_u8 + field * 3_u8 - 3_u8) % field, (&a.y * 2_u8) % field)
        } else {
            (minus(&b.y, &a.y), minus(&b.x, &a.x))
        };
        let slope = rise * run.modinv(field)? % field;
        let x = minus(&minus(&(&slope * &slope % field), &a.x), &b.x);
        let y = minus(&(slope * minus(&a.x, &x) % field), &a.y);
        Some(Point { x, y })
    }

    fn multiply(&self, point: &Point, factor: &BigUint) -> Option<Point> {
        (0..factor.bits()).rev().fold(None, |sum: Option<Point>, bit| {
            let sum = self.add(sum.clone(), sum);
            if factor.bit(bit) { self.add(sum, Some(point.clone())) } else { sum }
        })
    }
}

/// A private key as `x509.MarshalECPrivateKey` writes it.
pub(crate) fn generate(stream: &mut Stream) -> Vec<u8> {
    let curve = &*CURVE_P256;
    let one = BigUint::from(1_u8);
    let private = BigUint::from_bytes_be(&stream.bytes(SIZE + 8)) % (&curve.order - &one) + &one;
    let public = curve.multiply(&curve.base, &private).unwrap_or_else(|| curve.base.clone());
    let point = [vec![4], fixed(&public.x), fixed(&public.y)].concat();
    der::sequence(&[
        der::integer(&one),
        der::element(der::OCTET_STRING, &fixed(&private)),
        der::element(PARAMETERS, &CURVE),
        der::element(PUBLIC, &der::bit_string(&point)),
    ])
}

fn fixed(value: &BigUint) -> Vec<u8> {
    let bytes = value.to_bytes_be();
    [vec![0; SIZE.saturating_sub(bytes.len())], bytes].concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_order_times_the_base_is_infinity() {
        let curve = &*CURVE_P256;
        assert_eq!(curve.multiply(&curve.base, &curve.order), None);
        let last = curve.multiply(&curve.base, &(&curve.order - 1_u8)).unwrap();
        assert_eq!((last.x, last.y), (curve.base.x.clone(), &curve.field - &curve.base.y));
    }
}
