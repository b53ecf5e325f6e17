//! Durations as people write them.

use std::time::Duration;

use crate::error::Error;

/// The duration that `text` writes: a whole number and a unit, as in `500ms`, `90s`, `10m`, `2h` or `1d`.
///
/// So durations stand in the files of profiles. It is public for command lines beside them: `field` is then the flag.
///
/// # Errors
/// When it is none. The error names `field`.
pub fn duration(field: &str, text: &str) -> Result<Duration, Error> {
    let invalid = || Error::invalid(field, "a duration such as \"500ms\", \"90s\", \"10m\", \"2h\" or \"1d\"");
    let digits = text.len() - text.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    let (number, unit) = text.split_at(digits);
    let number: u64 = number.parse().map_err(|_| invalid())?;
    let scale = match unit {
        "ms" => return Ok(Duration::from_millis(number)),
        "s" => 1,
        "m" => 60,
        "h" => 3600,
        "d" => 86_400,
        _ => return Err(invalid()),
    };
    number.checked_mul(scale).map(Duration::from_secs).ok_or_else(invalid)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_have_a_unit() {
        let ms = |text| duration("f", text).unwrap().as_millis();
        assert_eq!(
            (ms("500ms"), ms("90s"), ms("10m"), ms("2h"), ms("1d")),
            (500, 90_000, 600_000, 7_200_000, 86_400_000)
        );
        for bad in [
            "",
            "90",
            "s",
            "90 s",
            "-1s",
            "1.5s",
            "90S",
            "10min",
            "1h30m",
            "99999999999999999999s",
            "9999999999999999999d",
        ] {
            let e = duration("pace.least", bad).unwrap_err();
            assert!(e.is_invalid() && e.to_string().starts_with("pace.least: expected a duration"), "{bad}: {e}");
        }
    }
}
