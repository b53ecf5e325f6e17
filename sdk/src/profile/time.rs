//! Points in time as services write them.

/// Milliseconds since 1970 of an RFC 3339 date and time, such as `2022-09-21T01:05:50.185Z`; `None` for anything else.
pub(super) fn millis(text: &str) -> Option<u64> {
    // RFC 3339, 5.6: date "T" time [fraction] offset.
    let bytes = text.as_bytes();
    let number = |from: usize, to: usize| -> Option<i64> {
        let digits = bytes.get(from..to)?;
        digits.iter().all(u8::is_ascii_digit).then(|| digits.iter().fold(0, |n, d| n * 10 + i64::from(d - b'0')))
    };
    let at = |i: usize, any: &[u8]| bytes.get(i).is_some_and(|b| any.contains(b));
    if !(at(4, b"-") && at(7, b"-") && at(10, b"Tt ") && at(13, b":") && at(16, b":")) {
        return None;
    }
    let (year, month, day) = (number(0, 4)?, number(5, 7)?, number(8, 10)?);
    let (hour, minute, second) = (number(11, 13)?, number(14, 16)?, number(17, 19)?);
    // 60 is a leap second.
    if !(1..=12).contains(&month) || !(1..=31).contains(&day) || hour > 23 || minute > 59 || second > 60 {
        return None;
    }
    let mut rest = 19;
    let mut fraction = 0;
    if at(rest, b".") {
        let end = rest + 1 + bytes[rest + 1..].iter().take_while(|b| b.is_ascii_digit()).count();
        if end == rest + 1 {
            return None;
        }
        let digits = number(rest + 1, end.min(rest + 4))?;
        fraction = digits * 10_i64.pow(u32::try_from(3 - (end.min(rest + 4) - rest - 1)).ok()?);
        rest = end;
    }
    let offset = match bytes.get(rest)? {
        b'Z' | b'z' if bytes.len() == rest + 1 => 0,
        sign @ (b'+' | b'-') if bytes.len() == rest + 6 && at(rest + 3, b":") => {
            let minutes = number(rest + 1, rest + 3)? * 60 + number(rest + 4, rest + 6)?;
            if *sign == b'-' { -minutes } else { minutes }
        }
        _ => return None,
    };
    let seconds = days(year, month, day) * 86_400 + hour * 3600 + (minute - offset) * 60 + second;
    u64::try_from(seconds * 1000 + fraction).ok()
}

/// Days since 1970-01-01 in the Gregorian calendar: years begin in March, so that a leap day is a year's last.
const fn days(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let of_era = year.rem_euclid(400);
    let of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_milliseconds() {
        for (text, expected) in [
            ("1970-01-01T00:00:00Z", 0),
            ("2000-02-29T12:00:00Z", 951_825_600_000),
            ("2022-09-21T01:05:50.185Z", 1_663_722_350_185),
            ("2022-09-21T01:05:50.1Z", 1_663_722_350_100),
            ("2022-09-21T01:05:50.185999Z", 1_663_722_350_185),
            ("2022-09-21T03:05:50+02:00", 1_663_722_350_000),
            ("2022-09-20T20:35:50-04:30", 1_663_722_350_000),
        ] {
            assert_eq!(millis(text), Some(expected), "{text}");
        }
        for bad in
            ["", "2022-09-21", "2022-13-01T00:00:00Z", "2022-09-21T01:05:50", "2022-09-21T01:05:50.Z", "1663722350"]
        {
            assert_eq!(millis(bad), None, "{bad}");
        }
    }
}
