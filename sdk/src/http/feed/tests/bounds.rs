//! Bounds in time and in size, authorities, and slow consumers.

use super::*;
use crate::http::told::Told;
use crate::machine::{Machine as _, Monotonic, Now, Wall};

/// R7: every phase of a request has its bound, and the next attempt goes through.
#[tokio::test(start_paused = true)]
async fn r7_every_phase_is_bounded() {
    for (phase, bound) in [
        (Phase::Credential, 5),
        (Phase::Resolve, 5),
        (Phase::Connect, 5),
        (Phase::Tls, 5),
        (Phase::Write, 10),
        (Phase::FirstByte, 15),
    ] {
        let fake = Fake::replies([Reply::status(200).stuck_in(&[Phase::FirstByte, phase]), Reply::bytes("x")]);
        let mut feed = log(&fake, LogKind::AtEnd);
        assert_eq!(all(&mut feed).await.0, b"x", "{phase}");
        let late = fake.asked()[1].at.since(fake.asked()[0].at);
        assert!(late >= seconds(bound) && late < seconds(bound + 1), "{phase}: {late:?}");
        assert_eq!(fake.most_open(), 1, "the stalled request is abandoned");
    }
    let fake = Fake::replies([Reply::bytes("x").hangs(), Reply::bytes("xy")]);
    let mut feed = log(&fake, LogKind::AtEnd);
    assert_eq!(some(&mut feed).await, "x");
    assert_eq!(some(&mut feed).await, "y");
    assert!(fake.asked()[1].at.since(fake.asked()[0].at) >= seconds(10));
}

/// A request that waits for its budget is not stalled.
#[tokio::test(start_paused = true)]
async fn a_wait_for_the_budget_has_no_bound() {
    let fake = Fake::replies([Reply::bytes("x").after(seconds(3000))]);
    let mut feed = log(&fake, LogKind::AtEnd);
    let env = env(3);
    // It says that it began, and is bounded.
    assert_eq!(within(&mut feed, &env, seconds(60)).await, None);
    assert!(fake.asked().len() > 2);
    let fake = Fake::replies([Reply::status(200).stuck_in(&[])]);
    let mut feed = log(&fake, LogKind::AtEnd);
    assert_eq!(within(&mut feed, &env, seconds(3600)).await, None);
    assert_eq!(fake.asked().len(), 1);
}

/// R3: the authorities end a feed, nothing else does.
#[tokio::test(start_paused = true)]
async fn r3_gone_and_denied_are_ends() {
    let fake = Fake::replies([Reply::bytes("x"), Reply::status(410)]);
    let mut feed = log(&fake, range());
    assert_eq!(all(&mut feed).await.2, FeedEnd::Gone { bytes: 1 });
    let fake = Fake::replies([Reply::bytes("x"), Reply::error(FetchError::denied(Cause::Unauthorized))]);
    let mut feed = log(&fake, range());
    assert_eq!(all(&mut feed).await.2, FeedEnd::Denied { bytes: 1 });
    for status in [401, 403, 404, 429, 500, 502, 503, 302, 203] {
        let fake = Fake::replies([Reply::bytes("x"), Reply::status(status)]);
        let mut feed = log(&fake, range());
        some(&mut feed).await;
        assert_eq!(within(&mut feed, &env(3), seconds(600)).await, None, "{status}");
        assert!(matches!(state(&feed), FeedState::Stale { .. }), "{status}");
    }
}

/// R8: what the service asks for is kept to, and a limit on an outage is opt-in and the caller's close.
#[tokio::test(start_paused = true)]
async fn r8_retry_after_is_a_floor_and_a_limit_is_a_close() {
    let limited = FetchError::new(Cause::RateLimited { retry_after: seconds(50) }).retry_after(seconds(50));
    let fake = Fake::replies([Reply::error(limited)]);
    let mut feed = log(&fake, range());
    assert_eq!(within(&mut feed, &env(3), seconds(201)).await, None);
    assert!((4..6).contains(&fake.asked().len()), "{}", fake.asked().len());

    let settings = Settings { give_up: Some(seconds(30)), ..Settings::default() };
    let fake = Fake::new(|asked| if asked.n % 50 == 7 { Reply::status(304) } else { Reply::status(500) });
    let mut feed = Feed::log(parts(&fake, settings), url(), range()).unwrap();
    assert_eq!(all(&mut feed).await.2, FeedEnd::Closed);
    let took = fake.asked().last().unwrap().at.since_start();
    assert!(took >= seconds(20) && took < seconds(40), "{took:?}");
}

/// R8, FC-55: what the service asks for with a good answer, too, is kept to: where more is to be had at once, where the
/// log has restarted, and where the work is over meanwhile.
#[tokio::test(start_paused = true)]
async fn fc_55_a_floor_holds_for_whatever_is_to_be_asked_next() {
    let told = |reply: Reply| reply.told(Told { retry_after: Some(seconds(30)), ..Told::default() });
    let (first, then) = ("0123456789", "abc");
    let fake = Fake::new(move |asked| {
        told(match (asked.n, asked.first()) {
            (0, _) => Reply::bytes(first).cut(5),
            (1 | 2, Some(at)) => Reply::status(206)
                .header("content-range", format!("bytes {at}-{}/10", at + 5))
                .piece(&first[at..at + 6]),
            _ => Reply::bytes(then),
        })
    });
    let settings = Settings::default().with_finish_within(seconds(600));
    let mut feed = Feed::log(parts(&fake, settings), url(), range()).unwrap();
    assert_eq!(some(&mut feed).await, first[..5]);
    assert_eq!(some(&mut feed).await, first[5..6]);
    feed.finish();
    let (bytes, gaps, _) = all(&mut feed).await;
    assert!(bytes.ends_with(then.as_bytes()) && gaps.len() == 1);
    let times: Vec<_> = fake.asked().iter().map(|asked| asked.at).collect();
    assert!(times.windows(2).all(|pair| pair[1].since(pair[0]) >= seconds(30)), "{times:?}");
    assert!(times.len() >= 5, "{times:?}");
}

/// R6: a slow consumer slows the reading. Nothing is dropped, nothing stalls, and no more is read than is kept.
#[tokio::test(start_paused = true)]
async fn r6_a_slow_consumer_slows_the_reading() {
    let env = env(3);
    let text: String = (0..1000).map(|n| format!("line {n}\n")).collect();
    let served = text.clone();
    let fake = Fake::new(move |_| Reply::bytes(&served).in_pieces(10));
    let mut feed = log(&fake, LogKind::AtEnd);
    pass(&env, seconds(600)).await;
    assert!(fake.pieces() <= 20, "{} pieces are read ahead", fake.pieces());
    let mut bytes = Vec::new();
    while let Some(FeedItem::Item(item)) = feed.next().await {
        bytes.extend_from_slice(&item);
        if bytes.len() % 1000 < 10 {
            pass(&env, seconds(60)).await;
        }
    }
    assert_eq!(String::from_utf8(bytes).unwrap(), text);
    assert_eq!(fake.asked().len(), 1, "the time of the consumer is no silence of the service");
}

/// Dropping the future of `next` loses nothing, through `lines` too.
#[tokio::test(start_paused = true)]
async fn next_is_cancel_safe() {
    let text: String = (0..100).map(|n| format!("line {n}\n")).collect();
    let served = text.clone();
    let fake = Fake::new(move |_| {
        served
            .as_bytes()
            .chunks(7)
            .fold(Reply::status(200), |reply, piece| reply.waits(Duration::from_millis(3)).piece(piece))
    });
    let env = env(3);
    let mut feed = log(&fake, LogKind::AtEnd).lines();
    let mut lines = String::new();
    loop {
        match within(&mut feed, &env, Duration::from_millis(1)).await {
            Some(FeedItem::Item(line)) => lines += &(line + "\n"),
            None => {}
            Some(other) => {
                assert!(matches!(other, FeedItem::Ended(_)), "{other:?}");
                break;
            }
        }
    }
    assert_eq!(lines, text);
}

/// Dropping the feed abandons its request.
#[tokio::test(start_paused = true)]
async fn a_dropped_feed_asks_no_more() {
    let env = env(3);
    let fake = Fake::new(|_| Reply::bytes("x"));
    let feed = log(&fake, LogKind::Whole);
    let states = feed.state();
    pass(&env, seconds(10)).await;
    drop(feed);
    pass(&env, seconds(1)).await;
    let n = fake.asked().len();
    pass(&env, seconds(100)).await;
    assert_eq!(fake.asked().len(), n);
    assert!(states.latest().is_ended());
}

/// R7: a jump between the clocks, a sleep, forces a probe of what may be half-open.
#[test]
fn r7_a_sleep_has_a_long_answer_asked_for_anew() {
    let at = |instant: u64, wall: u64| Now {
        instant: Monotonic::new(seconds(instant)),
        wall: Wall::new(seconds(1_000_000 + wall)),
        draw: 0,
    };
    let mut headers = ::http::HeaderMap::new();
    headers.insert("content-type", "text/event-stream".parse().unwrap());
    let head = Event::Head { status: ::http::StatusCode::OK, headers, told: Told::default() };
    let mut machine = Follower::new(EventReader::new(url(), Replay::AfterId, 1000), Settings::default());
    machine.on_event(at(0, 0), Event::Start);
    machine.on_event(at(0, 0), Event::Began(Phase::FirstByte));
    machine.on_event(at(0, 0), head);
    assert_eq!(machine.deadline(), Some(Monotonic::new(seconds(1))));
    assert_eq!(machine.on_event(at(1, 1), Event::Tick), []);
    let actions = machine.on_event(at(2, 7200), Event::Tick);
    assert!(matches!(actions[..], [Action::Abort, Action::Ask(_)]), "{actions:?}");
}
