use std::io::Write as _;

use flate2::Compression;
use flate2::write::{DeflateEncoder, GzEncoder, ZlibEncoder};
use proptest::prelude::*;

use super::*;

const LIMIT: u64 = 1024 * 1024;

fn gzip(data: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(data).unwrap();
    encoder.finish().unwrap()
}

fn zlib(data: &[u8]) -> Vec<u8> {
    let mut encoder = ZlibEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(data).unwrap();
    encoder.finish().unwrap()
}

fn raw(data: &[u8]) -> Vec<u8> {
    let mut encoder = DeflateEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(data).unwrap();
    encoder.finish().unwrap()
}

fn headers(codings: &[&str]) -> HeaderMap {
    let mut headers = HeaderMap::new();
    for coding in codings {
        headers.append(CONTENT_ENCODING, HeaderValue::from_bytes(coding.as_bytes()).unwrap());
    }
    headers
}

/// Decodes `encoded`, given in chunks of `chunk` bytes.
fn decoded(codings: &[&str], encoded: &[u8], chunk: usize, limit: u64) -> Result<Vec<u8>, Cause> {
    let mut decoder = Decoder::of(&headers(codings), limit)?;
    let mut out = Vec::new();
    for chunk in encoded.chunks(chunk) {
        for piece in decoder.push(Bytes::copy_from_slice(chunk)) {
            out.extend_from_slice(&piece?);
        }
    }
    decoder.finish()?;
    Ok(out)
}

fn detail(result: Result<Vec<u8>, Cause>) -> String {
    match result {
        Err(Cause::Undecodable { detail }) => detail.to_string(),
        other => panic!("expected undecodable, got {other:?}"),
    }
}

fn text() -> Vec<u8> {
    (0..7_000).flat_map(|n: u32| format!("line {n} {}\n", n.wrapping_mul(2_654_435_761)).into_bytes()).collect()
}

#[test]
fn every_coding_in_every_size_of_chunk() {
    let text = text();
    assert!(text.len() > 4 * PIECE);
    let cases: &[(&[&str], Vec<u8>)] = &[
        (&[], text.clone()),
        (&["identity"], text.clone()),
        (&[""], text.clone()),
        (&["gzip"], gzip(&text)),
        (&["X-GZip"], gzip(&text)),
        (&["deflate"], zlib(&text)),
        (&["DEFLATE"], raw(&text)),
        (&["deflate, gzip"], gzip(&zlib(&text))),
        (&["gzip, deflate"], zlib(&gzip(&text))),
        (&["gzip", "identity, deflate"], raw(&gzip(&text))),
        (&["gzip, gzip, gzip, gzip"], gzip(&gzip(&gzip(&gzip(&text))))),
    ];
    for (codings, encoded) in cases {
        for chunk in [1, 7, 1000, encoded.len()] {
            assert!(decoded(codings, encoded, chunk, LIMIT).unwrap() == text, "{codings:?} in chunks of {chunk}");
        }
    }
}

#[test]
fn an_empty_body_is_complete_in_every_coding() {
    for coding in ["identity", "gzip", "deflate", "deflate, gzip"] {
        assert_eq!(decoded(&[coding], b"", 1, LIMIT), Ok(Vec::new()), "{coding}");
    }
    assert_eq!(decoded(&["gzip"], &gzip(b""), 1, LIMIT), Ok(Vec::new()));
    assert_eq!(decoded(&["deflate"], &zlib(b""), 1, LIMIT), Ok(Vec::new()));
    assert_eq!(decoded(&["deflate"], &raw(b""), 1, LIMIT), Ok(Vec::new()));
}

#[test]
fn unknown_codings_are_refused_by_name() {
    for coding in ["br", "zstd", "compress", "gzip, br", "aws-chunked", "gzip;q=1", "*"] {
        let refused = detail(decoded(&[coding], b"x", 1, LIMIT));
        assert!(refused.starts_with("expected the content coding gzip or deflate, got "), "{refused}");
    }
    assert!(detail(decoded(&["gzip, \u{e9}"], b"x", 1, LIMIT)).contains("no text"));
    assert!(detail(decoded(&["gzip,gzip,gzip,gzip,gzip"], b"x", 1, LIMIT)).contains("at most 4"));
}

/// R3: what was cut off anywhere is never a value.
#[test]
fn what_is_cut_off_is_an_error_at_every_byte() {
    let data: Vec<u8> = (0..300_u32).flat_map(|n| n.wrapping_mul(2_654_435_761).to_le_bytes()).collect();
    for (coding, encoded) in [
        ("gzip", gzip(&data)),
        ("gzip", [gzip(b"first"), gzip(&data)].concat()),
        ("deflate", zlib(&data)),
        ("deflate", raw(&data)),
        ("deflate, gzip", gzip(&zlib(&data))),
        ("gzip, deflate", zlib(&gzip(&data))),
    ] {
        assert!(decoded(&[coding], &encoded, 5, LIMIT).is_ok());
        let whole_members = gzip(b"first").len();
        for cut in 1..encoded.len() {
            let result = decoded(&[coding], &encoded[..cut], 5, LIMIT);
            // The end of a member is the end of a body that is not longer; its length has to tell.
            let between = encoded.starts_with(&gzip(b"first")) && cut == whole_members;
            assert_eq!(result.is_err(), !between, "{coding} cut at {cut} of {}", encoded.len());
        }
    }
}

/// R3: an outer coding that is whole does not make up for an inner one that is cut off.
#[test]
fn an_inner_coding_that_is_cut_off_is_an_error() {
    let inner = gzip(&text());
    let outer = gzip(&inner[..inner.len() - 3]);
    assert!(detail(decoded(&["gzip, gzip"], &outer, 100, LIMIT)).contains("a part"));
}

#[test]
fn bytes_after_the_end_are_an_error() {
    for after in [&b"\0"[..], b"\0\0\0\0\0\0\0\0", b"\n", b"garbage", b"\x1f", b"\x1f\x8b\x09"] {
        for (coding, encoded) in [("gzip", gzip(b"data")), ("deflate", zlib(b"data")), ("deflate", raw(b"data"))] {
            let encoded = [&encoded, after].concat();
            for chunk in [1, encoded.len() - after.len(), encoded.len()] {
                let result = decoded(&[coding], &encoded, chunk, LIMIT);
                assert!(result.is_err(), "{coding} with {after:?} after it: {result:?}");
            }
        }
    }
}

/// RFC 1952, 2.2: a body may have several members, which simply follow each other.
#[test]
fn members_follow_each_other() {
    let encoded = [gzip(b"one "), gzip(b""), gzip(b"two "), gzip(&text())].concat();
    let expected = [b"one two ".to_vec(), text()].concat();
    for chunk in [1, 3, 50, encoded.len()] {
        assert!(decoded(&["gzip"], &encoded, chunk, LIMIT).unwrap() == expected);
    }
}

/// RFC 1952, 2.3: extra fields, a name, a comment and a checksum of the header.
#[test]
fn all_that_a_header_may_hold_is_passed_over() {
    let member = gzip(b"data");
    let mut header = vec![0x1f, 0x8b, 8, 2 | 4 | 8 | 16, 1, 2, 3, 4, 0, 255];
    header.extend_from_slice(&[3, 0, b'a', b'b', b'c']);
    header.extend_from_slice(b"name\0comment\0");
    let mut sum = flate2::Crc::new();
    sum.update(&header);
    let check = u16::try_from(sum.sum() & 0xffff).unwrap().to_le_bytes();
    let encoded = [&header, &check[..], &member[10..]].concat();
    for chunk in [1, 4, encoded.len()] {
        assert_eq!(decoded(&["gzip"], &encoded, chunk, LIMIT).unwrap(), b"data");
    }
    let wrong = [&header, &[check[0] ^ 1, check[1]][..], &member[10..]].concat();
    assert!(detail(decoded(&["gzip"], &wrong, 4, LIMIT)).contains("gzip header"));
    let endless = [&[0x1f, 0x8b, 8, 8, 0, 0, 0, 0, 0, 0][..], &[b'n'; 5000]].concat();
    for chunk in [1, 4096, 5010] {
        assert!(detail(decoded(&["gzip"], &endless, chunk, LIMIT)).contains("at most 4 KiB"));
    }
}

#[test]
fn what_does_not_fit_its_checksum_or_its_name_is_an_error() {
    let good = gzip(b"some data that is compressed");
    for at in [good.len() - 8, good.len() - 4, good.len() - 1] {
        let mut bad = good.clone();
        bad[at] ^= 1;
        assert!(detail(decoded(&["gzip"], &bad, 7, LIMIT)).contains("checksum"), "{at}");
    }
    let mut bad = zlib(b"some data that is compressed");
    *bad.last_mut().unwrap() ^= 1;
    assert!(decoded(&["deflate"], &bad, 7, LIMIT).is_err());
    for (coding, plain) in [("gzip", &b"{\"status\":\"ok\"}"[..]), ("deflate", b"{\"status\":\"ok\"}")] {
        assert!(decoded(&[coding], plain, 7, LIMIT).is_err(), "{coding}");
    }
    let mut reserved = good;
    reserved[3] = 0x80;
    assert!(decoded(&["gzip"], &reserved, 7, LIMIT).is_err());
}

/// A few kilobytes that unfold into many megabytes stop at the limit, and what came out before came in bounded pieces.
#[test]
fn a_bomb_stops_at_the_limit() {
    let zeros = vec![0; 8 * 1024 * 1024];
    for (coding, bomb) in [("gzip", gzip(&zeros)), ("deflate", raw(&zeros))] {
        assert!(bomb.len() < 16 * 1024);
        let mut decoder = Decoder::of(&headers(&[coding]), LIMIT).unwrap();
        let mut out = 0;
        let mut refused = None;
        for piece in decoder.push(bomb.into()) {
            match piece {
                Ok(piece) => {
                    assert!(piece.len() <= PIECE);
                    out += piece.len() as u64;
                }
                Err(cause) => refused = Some(cause),
            }
        }
        assert!(out <= LIMIT);
        let cause = Cause::Undecodable { detail: "expected a body of at most 1048576 bytes, got more".into() };
        assert_eq!(refused, Some(cause.clone()));
        assert_eq!(decoder.push(Bytes::from_static(b"x")).next(), Some(Err(cause.clone())), "it stays so");
        assert_eq!(decoder.finish(), Err(cause));
    }
    let exact = vec![0; 1024];
    for (coding, body) in [("identity", exact.clone()), ("gzip", gzip(&exact))] {
        assert!(decoded(&[coding], &body, 100, 1024).is_ok(), "{coding}");
        assert!(decoded(&[coding], &body, 100, 1023).is_err(), "{coding}");
    }
}

/// A bomb of codings that come to nothing costs time, not memory: it stops as well.
#[test]
fn a_bomb_inside_a_coding_stops_at_the_limit() {
    let nothing = gzip(b"").repeat(60_000);
    assert!(decoded(&["gzip"], &nothing, 1 << 20, LIMIT).is_ok_and(|out| out.is_empty()));
    let bomb = gzip(&nothing);
    assert!(bomb.len() < 32 * 1024);
    assert!(detail(decoded(&["gzip, gzip"], &bomb, 1000, LIMIT)).contains("at most"));
}

#[test]
fn what_is_not_taken_from_the_iterator_waits_for_the_next_push() {
    let encoded = gzip(&text());
    let (one, two) = encoded.split_at(encoded.len() / 2);
    let mut decoder = Decoder::of(&headers(&["gzip"]), LIMIT).unwrap();
    let first = decoder.push(Bytes::copy_from_slice(one)).next().unwrap().unwrap();
    assert!(decoder.finish().is_err(), "there is more to take");
    let rest: Vec<_> = decoder.push(Bytes::copy_from_slice(two)).map(Result::unwrap).collect();
    assert!([vec![first], rest].concat().concat() == text());
    assert_eq!(decoder.finish(), Ok(()));
}

fn mostly_codings() -> impl Strategy<Value = String> {
    let coding = prop::sample::select(vec!["gzip", "deflate", "identity", "x-gzip", ""]);
    prop::collection::vec(coding, 0..5).prop_map(|codings| codings.join(","))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    #[test]
    fn what_was_encoded_comes_out(
        data in prop::collection::vec(any::<u8>(), 0..5_000),
        codings in mostly_codings(),
        chunk in 1_usize..600,
        bare in any::<bool>(),
    ) {
        let encoded = codings.split(',').fold(data.clone(), |data, coding| match coding {
            "gzip" | "x-gzip" => gzip(&data),
            "deflate" if bare => raw(&data),
            "deflate" => zlib(&data),
            _ => data,
        });
        prop_assert_eq!(decoded(&[&codings], &encoded, chunk, LIMIT), Ok(data));
    }

    #[test]
    fn no_bytes_make_it_panic_or_hang(
        data in prop::collection::vec(any::<u8>(), 0..300),
        begin in prop::sample::select(vec![&b""[..], b"\x1f\x8b\x08", b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\xff", b"\x78\x9c"]),
        codings in mostly_codings(),
        chunk in 1_usize..100,
    ) {
        let _ = decoded(&[&codings], &[begin, &data].concat(), chunk, LIMIT);
    }

    /// R3: a byte that was changed on the way is found, or makes no difference.
    #[test]
    fn a_changed_byte_never_changes_the_value(
        data in prop::collection::vec(any::<u8>(), 1..500),
        at in any::<prop::sample::Index>(),
        flip in 1_u8..=255,
    ) {
        let mut encoded = gzip(&data);
        let at = at.index(encoded.len());
        encoded[at] ^= flip;
        if let Ok(out) = decoded(&["gzip"], &encoded, 64, LIMIT) {
            prop_assert_eq!(out, data);
        }
    }
}
