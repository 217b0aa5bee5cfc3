//! Percentiles of what was measured.

/// The value below which a share of the values lies, between two of them in proportion; none without values.
pub fn percentile(values: &[f64], share: f64) -> Option<f64> {
    let mut sorted: Vec<f64> = values.iter().copied().filter(|value| value.is_finite()).collect();
    sorted.sort_by(f64::total_cmp);
    let last = sorted.len().checked_sub(1)?;
    #[expect(clippy::cast_precision_loss, reason = "values are counted in thousands")]
    let rank = share.clamp(0.0, 1.0) * last as f64;
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "between 0 and the last index"
    )]
    let below = rank.floor() as usize;
    let above = (below + 1).min(last);
    Some(sorted[below] + (sorted[above] - sorted[below]) * rank.fract())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn they_lie_between_the_values() {
        let values = [4.0, 1.0, 3.0, 2.0];
        assert_eq!(percentile(&values, 0.0), Some(1.0));
        assert_eq!(percentile(&values, 0.5), Some(2.5));
        assert_eq!(percentile(&values, 1.0), Some(4.0));
        assert_eq!(percentile(&[7.0], 0.95), Some(7.0));
    }

    #[test]
    fn of_nothing_there_is_none() {
        assert_eq!(percentile(&[], 0.5), None);
        assert_eq!(percentile(&[f64::NAN], 0.5), None);
    }

    proptest! {
        #[test]
        fn half_of_the_values_are_on_either_side_of_the_middle(values in prop::collection::vec(-1e9..1e9_f64, 1..40)) {
            let middle = percentile(&values, 0.5).unwrap();
            let below = values.iter().filter(|value| **value < middle).count();
            let above = values.iter().filter(|value| **value > middle).count();
            prop_assert!(below <= values.len() / 2 && above <= values.len() / 2, "{middle}");
            prop_assert!(middle <= percentile(&values, 0.95).unwrap());
        }
    }
}
