//! Event streams.

use super::*;
use crate::http::sse;

fn feed(fake: &Fake) -> Feed<sse::Event> {
    Feed::events(parts(fake, Settings::default()), url())
}

fn event(id: u64) -> String {
    format!("id: {id}\ndata: event {id}\n\n")
}

async fn ids(feed: &mut Feed<sse::Event>, n: usize) -> Vec<String> {
    let mut ids = Vec::new();
    for _ in 0..n {
        ids.push(some(feed).await.id.unwrap().to_string());
    }
    ids
}

fn at(id: &str) -> Option<Position> {
    Some(Position::Event(id.into()))
}

/// FC-23: events 5 and 6 happen while disconnected. They come once and in order, by one subscription; wherever the stream
/// is cut.
#[tokio::test(start_paused = true)]
async fn fc_23_what_happened_while_disconnected_is_delivered_once() {
    let all: String = (1..8).map(event).collect();
    for cut in 0..all.len() {
        let stream = all.clone();
        let fake = Fake::new(move |asked| {
            let last: u64 = asked.header("last-event-id").map_or(0, |id| id.parse().unwrap());
            let rest: String = stream.split_inclusive("\n\n").skip(last as usize).collect();
            let reply = Reply::events(rest).hangs();
            if asked.n == 0 { reply.cut(cut) } else { reply }
        });
        let mut feed = feed(&fake);
        if cut < event(1).len() {
            // Without an id there is nothing to resume from: some may have been missed.
            assert_eq!(soon(&mut feed).await, Some(FeedItem::Gap { from: None, to: None }));
        }
        assert_eq!(ids(&mut feed, 7).await, ["1", "2", "3", "4", "5", "6", "7"], "cut at {cut}");
        assert_eq!((fake.asked().len(), fake.most_open()), (2, 1));
        assert!(fake.asked()[1].ask.long);
    }
}

/// FC-23: a service that does not keep what happened meanwhile: never 4 then 7 in silence.
#[tokio::test(start_paused = true)]
async fn fc_23_what_cannot_be_had_is_one_gap() {
    let four: String = (1..5).map(event).collect();
    let fake = Fake::replies([Reply::events(&four), Reply::events(event(7) + &event(8)).hangs()]);
    let mut feed = feed(&fake);
    assert_eq!(ids(&mut feed, 4).await, ["1", "2", "3", "4"]);
    assert_eq!(soon(&mut feed).await, Some(FeedItem::Gap { from: at("4"), to: at("7") }));
    assert_eq!(ids(&mut feed, 2).await, ["7", "8"]);
    // One that says so has a gap at each reconnect, whatever its ids.
    let fake = Fake::replies([Reply::events("id: a\ndata: 1\n\n"), Reply::events("id: b\ndata: 2\n\n").hangs()]);
    let settings = Settings::default().with_replay(Replay::Nothing);
    let mut feed = Feed::events(parts(&fake, settings), url());
    assert_eq!(ids(&mut feed, 1).await, ["a"]);
    assert_eq!(soon(&mut feed).await, Some(FeedItem::Gap { from: at("a"), to: None }));
    assert_eq!(ids(&mut feed, 1).await, ["b"]);
}

/// Events without ids: after a reconnect there is one gap, to nobody knows where.
#[tokio::test(start_paused = true)]
async fn events_without_ids_have_a_gap_at_each_reconnect() {
    let fake = Fake::replies([
        Reply::events("data: 1\n\n"),
        Reply::status(502),
        Reply::events("data: 2\n\nid: 5\n\n"),
        Reply::events("id: 6\ndata: 3\n\ndata: 4\n\n"),
        Reply::events(":\n").hangs(),
    ]);
    let mut feed = feed(&fake);
    let data = async |feed: &mut Feed<sse::Event>| some(feed).await.data;
    assert_eq!(data(&mut feed).await, "1");
    assert_eq!(soon(&mut feed).await, Some(FeedItem::Gap { from: None, to: None }));
    assert_eq!(data(&mut feed).await, "2");
    // The id after it says how far it is.
    assert_eq!((data(&mut feed).await, data(&mut feed).await), ("3".into(), "4".into()));
    assert_eq!(fake.asked()[3].header("last-event-id"), Some("5"));
    // The last event had none.
    assert_eq!(soon(&mut feed).await, Some(FeedItem::Gap { from: at("6"), to: None }));
}

/// What was delivered and comes again is left out; ids that start anew with other content are a gap, not a repetition.
#[tokio::test(start_paused = true)]
async fn a_replay_is_left_out_and_a_new_life_of_the_service_is_a_gap() {
    let three: String = (1..4).map(event).collect();
    let anew = "id: 1\ndata: new life\n\nid: 2\ndata: new life\n\n";
    let fake = Fake::replies([
        Reply::events(&three),
        Reply::events(three.clone() + ": ping\n" + &event(4)),
        Reply::events(anew).hangs(),
    ]);
    let mut feed = feed(&fake);
    assert_eq!(ids(&mut feed, 4).await, ["1", "2", "3", "4"]);
    assert_eq!(soon(&mut feed).await, Some(FeedItem::Gap { from: at("4"), to: at("1") }));
    assert_eq!(ids(&mut feed, 2).await, ["1", "2"]);
    // Ids that count nothing say nothing of what lies between.
    let fake = Fake::replies([
        Reply::events("id: 10\ndata: 1\n\nid: 20\ndata: 2\n\n"),
        Reply::events("id: 20\ndata: 2\n\nid: 40\ndata: 3\n\n").hangs(),
    ]);
    let mut feed = self::feed(&fake);
    assert_eq!(ids(&mut feed, 3).await, ["10", "20", "40"]);
}

/// R3, R8: a clean end of a stream is no end. A service that ends each at once is not stormed, one that was up for long is
/// asked again at once, and `retry` is kept to.
#[tokio::test(start_paused = true)]
async fn r3_r8_a_stream_that_ends_is_asked_for_again() {
    let env = env(2);
    let fake = Fake::replies([Reply::events("")]);
    let mut feed = feed(&fake);
    assert_eq!(soon(&mut feed).await, Some(FeedItem::Gap { from: None, to: None }));
    assert_eq!(within(&mut feed, &env, seconds(60)).await, None, "and that once");
    let n = fake.asked().len();
    assert!((20..400).contains(&n), "{n} in a minute");
    assert_eq!(state(&feed), stale(Cause::Dropped { code: None }));

    let fake = Fake::replies([Reply::events(":\n").waits(seconds(30)).piece(":\n")]);
    let mut feed = self::feed(&fake);
    soon(&mut feed).await;
    assert_eq!(within(&mut feed, &env, seconds(170)).await, None);
    assert!((6..8).contains(&fake.asked().len()), "{}", fake.asked().len());

    let fake = Fake::replies([Reply::events("retry: 7000\n\n")]);
    let mut feed = self::feed(&fake);
    soon(&mut feed).await;
    assert_eq!(within(&mut feed, &env, seconds(27)).await, None);
    assert_eq!(fake.asked().len(), 5);
}

/// R7: a stream without a byte for its bound is asked for anew; comments are bytes.
#[tokio::test(start_paused = true)]
async fn r7_a_silent_stream_is_asked_for_anew() {
    let env = env(2);
    let mut reply = Reply::events("id: 1\ndata: 1\n\n");
    for _ in 0..20 {
        reply = reply.waits(seconds(50)).piece(":\n");
    }
    let fake = Fake::replies([reply.hangs(), Reply::events("").hangs()]);
    let mut feed = feed(&fake);
    ids(&mut feed, 1).await;
    let states = feed.state();
    let mut stalled = Box::pin(async move {
        let idle = stale(Cause::Stalled { phase: Phase::Idle, bound: seconds(60) });
        states.until(move |state| *state == idle).await.is_ok()
    });
    assert_eq!(within(&mut feed, &env, seconds(1059)).await, None);
    assert_eq!(fake.asked().len(), 1);
    let silent = tokio::select! {
        biased;
        silent = &mut stalled => silent,
        () = pass(&env, seconds(3)) => false,
    };
    assert!(silent);
    assert_eq!(within(&mut feed, &env, seconds(3)).await, None);
    assert_eq!(fake.asked().len(), 2);
    assert_eq!(fake.asked()[1].header("last-event-id"), Some("1"));
}

#[tokio::test(start_paused = true)]
async fn what_is_no_event_stream_is_not_read_and_204_is_the_end() {
    let fake = Fake::replies([
        Reply::bytes("data: 1\n\n").header("content-type", "text/html"),
        Reply::status(404),
        Reply::events("id: 1\ndata: 1\n\n"),
        Reply::status(204),
    ]);
    let mut feed = feed(&fake);
    assert_eq!(ids(&mut feed, 1).await, ["1"]);
    assert_eq!(soon(&mut feed).await, Some(FeedItem::Ended(FeedEnd::Complete { bytes: 1, gaps: 0 })));
}

/// An event that can never be read is a typed end, not a loop.
#[tokio::test(start_paused = true)]
async fn an_event_too_large_ends_the_feed_with_its_bound() {
    let settings = Settings::default().with_sizes(Sizes::default().with_event(32));
    let fake = Fake::replies([Reply::events(format!("id: 1\ndata: 1\n\ndata: {}", "x".repeat(40))).hangs()]);
    let mut feed = Feed::events(parts(&fake, settings), url());
    assert_eq!(ids(&mut feed, 1).await, ["1"]);
    match soon(&mut feed).await {
        Some(FeedItem::Ended(FeedEnd::Incomplete { bytes: 1, cause: Cause::Undecodable { detail } })) => {
            assert!(detail.contains("32 bytes"), "{detail}");
        }
        other => panic!("{other:?}"),
    }
}

/// Told that the work is over, a stream ends once it has nothing more to say; one that is down then does not end well.
#[tokio::test(start_paused = true)]
async fn a_stream_is_finished_by_silence() {
    let env = env(2);
    let fake = Fake::replies([Reply::events(event(1)).waits(seconds(31)).piece(event(2)).piece(": ping\n").hangs()]);
    let mut feed = feed(&fake);
    ids(&mut feed, 1).await;
    assert_eq!(within(&mut feed, &env, seconds(30)).await, None);
    feed.finish();
    assert_eq!(ids(&mut feed, 1).await, ["2"]);
    assert_eq!(soon(&mut feed).await, Some(FeedItem::Ended(FeedEnd::Complete { bytes: 14, gaps: 0 })));

    let fake = Fake::replies([Reply::events(event(1)), Reply::status(500)]);
    let mut feed = self::feed(&fake);
    ids(&mut feed, 1).await;
    pass(&env, seconds(5)).await;
    feed.finish();
    let end = FeedEnd::Incomplete { bytes: 7, cause: Cause::Status { code: 500 } };
    assert_eq!(soon(&mut feed).await, Some(FeedItem::Ended(end)));
}
