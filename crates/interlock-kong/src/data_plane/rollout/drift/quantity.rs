//! Quantities (`100m`, `2Gi`, `1e3`), compared by what they are worth.

/// The most digits of a number; more than any quantity that the API server stores.
const DIGITS: usize = 30;

/// A number as `odd * 2^twos * 5^fives`, where `odd` is divisible by neither: equal for equal numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Quantity {
    negative: bool,
    odd: u128,
    twos: i32,
    fives: i32,
}

impl Quantity {
    /// Reads a quantity as Kubernetes writes it; `None` where it is none.
    pub fn parse(text: &str) -> Option<Self> {
        let (negative, rest) = match text.as_bytes().first()? {
            b'-' => (true, &text[1..]),
            b'+' => (false, &text[1..]),
            _ => (false, text),
        };
        let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
        let (number, suffix) = rest.split_at(end);
        let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
        let digits = format!("{whole}{fraction}");
        if digits.is_empty() || digits.len() > DIGITS || fraction.contains('.') {
            return None;
        }
        let (twos, tens) = scale(suffix)?;
        let tens = tens - i32::try_from(fraction.len()).ok()?;
        Some(Self::new(negative, digits.parse().ok()?, twos + tens, tens))
    }

    fn new(negative: bool, number: u128, twos: i32, fives: i32) -> Self {
        if number == 0 {
            return Self { negative: false, odd: 0, twos: 0, fives: 0 };
        }
        let mut quantity = Self { negative, odd: number, twos, fives };
        while quantity.odd.is_multiple_of(2) {
            quantity.odd /= 2;
            quantity.twos += 1;
        }
        while quantity.odd.is_multiple_of(5) {
            quantity.odd /= 5;
            quantity.fives += 1;
        }
        quantity
    }
}

/// Powers of two and of ten that a suffix stands for.
fn scale(suffix: &str) -> Option<(i32, i32)> {
    Some(match suffix {
        "" => (0, 0),
        "n" => (0, -9),
        "u" => (0, -6),
        "m" => (0, -3),
        "k" => (0, 3),
        "M" => (0, 6),
        "G" => (0, 9),
        "T" => (0, 12),
        "P" => (0, 15),
        "E" => (0, 18),
        "Ki" => (10, 0),
        "Mi" => (20, 0),
        "Gi" => (30, 0),
        "Ti" => (40, 0),
        "Pi" => (50, 0),
        "Ei" => (60, 0),
        exponent => (0, i32::from(exponent.strip_prefix(['e', 'E'])?.parse::<i8>().ok()?)),
    })
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case::thousandths("1000m", "1", true)]
    #[case::a_tenth("100m", "0.1", true)]
    #[case::mebibytes("2Gi", "2048Mi", true)]
    #[case::not_the_same("2000Mi", "2Gi", false)]
    #[case::decimal("1G", "1000M", true)]
    #[case::binary_and_decimal("1Gi", "1073741824", true)]
    #[case::exponent("1e3", "1k", true)]
    #[case::exponent_of_a_fraction("12.5E-1", "1250m", true)]
    #[case::exa_is_no_exponent("1E", "1000P", true)]
    #[case::trailing_zeros("1.50", "1500m", true)]
    #[case::zeros("0", "0Gi", true)]
    #[case::sign("-1", "1", false)]
    #[case::plus("+1", "1", true)]
    #[case::small("1n", "0.000000001", true)]
    fn quantities(#[case] one: &str, #[case] other: &str, #[case] equal: bool) {
        let (one, other) = (Quantity::parse(one).unwrap(), Quantity::parse(other).unwrap());
        assert_eq!(one == other, equal, "{one:?} {other:?}");
    }

    #[rstest]
    #[case::empty("")]
    #[case::sign("-")]
    #[case::no_digits(".")]
    #[case::two_points("1.2.3")]
    #[case::unknown("1X")]
    #[case::space("1 Gi")]
    #[case::words("one")]
    #[case::vast("1e999999999999")]
    #[case::long("1111111111111111111111111111111111111111")]
    #[case::multibyte("é")]
    fn no_quantities(#[case] text: &str) {
        assert_eq!(Quantity::parse(text), None);
    }
}
