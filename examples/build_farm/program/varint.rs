//! Variable-length integers (LEB128), and a program that checks them against themselves.
//!
//! Usage: varint CHECKS PACE_IN_MS [fail]

use std::process::ExitCode;
use std::time::{Duration, Instant};

/// Appends `n` to `bytes`, seven bits a byte, the lowest first.
fn encode(mut n: u64, bytes: &mut Vec<u8>) {
    while n >= 0x80 {
        bytes.push(n as u8 | 0x80);
        n >>= 7;
    }
    bytes.push(n as u8);
}

/// The number at the start of `bytes`, and what follows it; `None` if there is no whole number.
fn decode(bytes: &[u8]) -> Option<(u64, &[u8])> {
    let mut n = 0;
    for (i, byte) in bytes.iter().enumerate().take(10) {
        n |= u64::from(byte & 0x7f).checked_shl(7 * i as u32)?;
        if byte & 0x80 == 0 {
            return Some((n, &bytes[i + 1..]));
        }
    }
    None
}

/// Numbers of all lengths, the same in every run (xorshift).
fn numbers(seed: u64) -> impl Iterator<Item = u64> {
    let mut x = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    std::iter::repeat_with(move || {
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        x >> (x % 64)
    })
}

fn round_trip(seed: u64) -> Result<String, String> {
    let sent: Vec<u64> = numbers(seed).take(20_000).collect();
    let mut bytes = Vec::new();
    sent.iter().for_each(|n| encode(*n, &mut bytes));
    let mut rest = &bytes[..];
    for n in &sent {
        let Some((got, after)) = decode(rest) else { return Err(format!("{n} was cut off")) };
        if got != *n {
            return Err(format!("{n} came back as {got}"));
        }
        rest = after;
    }
    Ok(format!("{} numbers in {} bytes came back", sent.len(), bytes.len()))
}

fn lengths(seed: u64) -> Result<String, String> {
    for n in numbers(seed).take(20_000) {
        let mut bytes = Vec::new();
        encode(n, &mut bytes);
        let expected = (64 - n.leading_zeros()).max(1).div_ceil(7) as usize;
        if bytes.len() != expected {
            return Err(format!("{n} took {} bytes, expected {expected}", bytes.len()));
        }
    }
    Ok("every number takes the fewest bytes".into())
}

fn cut(seed: u64) -> Result<String, String> {
    for n in numbers(seed).take(2_000) {
        let mut bytes = Vec::new();
        encode(n, &mut bytes);
        bytes.pop();
        if let Some((got, _)) = decode(&bytes) {
            return Err(format!("half of {n} was read as {got}"));
        }
    }
    Ok("no half of a number is read as one".into())
}

/// What `fail` runs last: it expects what is not so.
fn wrong(_: u64) -> Result<String, String> {
    let mut bytes = Vec::new();
    encode(300, &mut bytes);
    if bytes == [0x2c, 0x01] { Ok("300".into()) } else { Err(format!("300 is {bytes:02x?}, expected [2c, 01]")) }
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().collect();
    let number = |i: usize| arguments.get(i).and_then(|text| text.parse().ok()).unwrap_or(0);
    let (checks, pace) = (number(1), Duration::from_millis(number(2)));
    let fails = arguments.get(3).is_some_and(|word| word == "fail");
    for i in 1..=checks {
        let started = Instant::now();
        let (name, check): (_, fn(u64) -> _) = match i % 3 {
            _ if fails && i == checks => ("known encoding", wrong),
            0 => ("cut", cut),
            1 => ("round trip", round_trip),
            _ => ("lengths", lengths),
        };
        let result = check(i);
        std::thread::sleep(pace.saturating_sub(started.elapsed()));
        match result {
            Ok(said) => println!("check {i}/{checks} {name}: {said}"),
            Err(said) => {
                println!("check {i}/{checks} {name}: FAILED: {said}");
                return ExitCode::FAILURE;
            }
        }
    }
    ExitCode::SUCCESS
}
