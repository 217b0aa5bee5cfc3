//! The unbiased estimators of pass@k and pass^k (Chen et al. 2021, Yao et al. 2024).

/// The chance that at least one of `k` trials passes, from `passed` of `trials`. None if there are fewer trials than `k`.
pub fn pass_at_k(trials: u64, passed: u64, k: u64) -> Option<f64> {
    if k == 0 || trials < k || passed > trials {
        return None;
    }
    Some(1.0 - share_within(trials, trials - passed, k))
}

/// The chance that all of `k` trials pass, from `passed` of `trials`. None if there are fewer trials than `k`.
pub fn pass_hat_k(trials: u64, passed: u64, k: u64) -> Option<f64> {
    if k == 0 || trials < k || passed > trials {
        return None;
    }
    Some(share_within(trials, passed, k))
}

/// The share of all choices of `k` from `all` that are within `some`: C(some, k) / C(all, k), as a product, since
/// the coefficients themselves leave the range of numbers.
fn share_within(all: u64, some: u64, k: u64) -> f64 {
    if some < k {
        return 0.0;
    }
    #[expect(clippy::cast_precision_loss, reason = "trials are counted in thousands")]
    (0..k).map(|drawn| (some - drawn) as f64 / (all - drawn) as f64).product()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// All ways to choose `k` of `n`, as bit sets.
    fn choices(n: u32, k: u32) -> impl Iterator<Item = u32> {
        (0..1_u32 << n).filter(move |set| set.count_ones() == k)
    }

    #[test]
    fn fewer_trials_than_k_say_nothing() {
        assert_eq!(pass_at_k(3, 3, 4), None);
        assert_eq!(pass_hat_k(3, 3, 4), None);
        assert_eq!(pass_at_k(0, 0, 1), None);
        assert_eq!(pass_at_k(5, 5, 0), None);
    }

    #[test]
    fn what_the_papers_print_comes_out() {
        let near = |value: Option<f64>, expected: f64| (value.unwrap() - expected).abs() < 1e-12;
        // One of two passes: a single trial passes half of the time, one of two always.
        assert!(near(pass_at_k(2, 1, 1), 0.5));
        assert!(near(pass_at_k(2, 1, 2), 1.0));
        assert!(near(pass_hat_k(2, 1, 2), 0.0));
        // 1 - C(7,5)/C(10,5) = 1 - 21/252.
        assert!(near(pass_at_k(10, 3, 5), 1.0 - 21.0 / 252.0));
        // C(6,4)/C(8,4) = 15/70.
        assert!(near(pass_hat_k(8, 6, 4), 15.0 / 70.0));
    }

    #[test]
    fn many_trials_stay_within_the_range_of_numbers() {
        let value = pass_at_k(100_000, 1, 50_000).unwrap();
        assert!((value - 0.5).abs() < 1e-9, "{value}");
    }

    proptest! {
        #[test]
        fn both_agree_with_counting_all_choices(n in 1_u32..12, c in 0_u32..12, k in 1_u32..12) {
            prop_assume!(c <= n && k <= n);
            let passes = (1_u32 << c) - 1;
            let (mut any, mut all, mut count) = (0.0, 0.0, 0.0);
            for set in choices(n, k) {
                count += 1.0;
                any += f64::from(u8::from(set & passes != 0));
                all += f64::from(u8::from(set & passes == set));
            }
            let (n, c, k) = (u64::from(n), u64::from(c), u64::from(k));
            prop_assert!((pass_at_k(n, c, k).unwrap() - any / count).abs() < 1e-9);
            prop_assert!((pass_hat_k(n, c, k).unwrap() - all / count).abs() < 1e-9);
        }

        #[test]
        fn more_tries_help_one_to_pass_and_hinder_all(n in 2_u64..60, c in 0_u64..60, k in 1_u64..59) {
            prop_assume!(c <= n && k < n);
            let any = |k| pass_at_k(n, c, k).unwrap();
            let all = |k| pass_hat_k(n, c, k).unwrap();
            let rounding = 1e-12;
            prop_assert!(any(k) <= any(k + 1) + rounding);
            prop_assert!(all(k) + rounding >= all(k + 1));
            prop_assert!(all(k) <= any(k) + rounding);
        }
    }
}
