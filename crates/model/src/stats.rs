//! Order statistics of samples.

/// Returns the median; of an even number of values, the mean of the two in the middle. Panics if
/// there is no value.
pub fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut sorted: Vec<f64> = values.collect();
    assert!(!sorted.is_empty(), "a median needs a value");
    sorted.sort_by(f64::total_cmp);
    let middle = sorted.len() / 2;
    if sorted.len() % 2 == 1 { sorted[middle] } else { f64::midpoint(sorted[middle - 1], sorted[middle]) }
}

/// Returns quantile `p` (0 … 1) of sorted samples, linear between neighbours (Hyndman & Fan 1996,
/// type 7). Panics if there is no sample.
pub fn quantile_of(sorted: &[f64], p: f64) -> f64 {
    let at = p * (sorted.len() - 1) as f64;
    let below = at.floor() as usize;
    let above = (below + 1).min(sorted.len() - 1);
    sorted[below] + (at - below as f64) * (sorted[above] - sorted[below])
}
