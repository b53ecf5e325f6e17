//! WebSockets that fail in every way: the read stays right, and the stream comes back.

use super::*;
use crate::http::pacing::Limits;
use crate::transport::Network;
use futures::future::BoxFuture;

/// The read goes on at its own pace while there is no stream.
async fn is_polled(site: &Site, read: &Observable<Value>) {
    let n = *site.run.lock().unwrap() + 1;
    site.set(n);
    shows(read, n, 31 * SECOND).await;
}

/// FC-23: events 5 and 6 happen while the stream is down. The read converges by its look, and the service counts one
/// subscription.
#[tokio::test(start_paused = true)]
async fn fc_23_what_happened_while_it_was_down_is_seen() {
    let site = Site::new();
    let mut listener = site.sockets.listen(HOST);
    let read = site.get().push(Push::websocket(WS).hello("subscribe")).observe::<Value>().unwrap();
    let (mut peer, _) = accepted(&mut listener).await;
    site.set(4);
    peer.send(Message::text("4")).await.unwrap();
    shows(&read, 4, 3 * SECOND).await;
    hold(&mut peer, 6 * SECOND).await;
    drop((peer, listener));
    sleep(SECOND).await;
    site.set(5);
    site.set(6);
    sleep(2 * SECOND).await;
    let mut listener = site.sockets.listen(HOST);
    let (mut peer, _) = accepted(&mut listener).await;
    shows(&read, 6, 3 * SECOND).await;
    assert_eq!(peer.next().await.unwrap().unwrap(), Message::text("subscribe"));
    tokio::select! {
        () = hold(&mut peer, 60 * SECOND) => {}
        _ = listener.accept() => panic!("a second subscription"),
    }
}

/// FC-21: the service restarted, its counter is reset, and it changed while it was down: a validator of its other life
/// does not hold the read back, though nothing changes any more.
#[tokio::test(start_paused = true)]
async fn fc_21_a_restart_is_not_hidden_by_a_validator() {
    let site = Site::new();
    let run = Arc::clone(&site.run);
    site.ci.on("/run", move |asked| match asked.header("if-none-match") {
        Some("\"1\"") => Reply::status(304),
        _ => Reply::json(json!({ "n": *run.lock().unwrap() })).header("etag", "\"1\""),
    });
    let mut listener = site.sockets.listen(HOST);
    let read = site.get().push(Push::websocket(WS)).observe::<Value>().unwrap();
    let (mut peer, _) = accepted(&mut listener).await;
    shows(&read, 1, SECOND).await;
    hold(&mut peer, 10 * SECOND).await;
    // Only the stream notices: the polls are a minute apart.
    site.set(2);
    drop(peer);
    let (mut peer, _) = accepted(&mut listener).await;
    tokio::select! {
        took = shows(&read, 2, 10 * SECOND) => assert!(took < 3 * SECOND, "{took:?}"),
        () = drain(&mut peer) => panic!("the link is let go of"),
    }
}

/// FC-26: the path loses every byte after fifteen idle minutes. The dead link is found within ping interval + answer, and
/// what changed in the black hole is seen within a step more.
#[tokio::test(start_paused = true)]
async fn fc_26_a_black_hole_is_found() {
    let site = Site::new();
    let mut listener = site.sockets.listen(HOST);
    let read = site.get().push(Push::websocket(WS)).observe::<Value>().unwrap();
    let (mut peer, _) = accepted(&mut listener).await;
    hold(&mut peer, 900 * SECOND).await;
    assert_eq!(site.sockets.connects(HOST), 1);
    site.sockets.silence(HOST);
    site.sockets.heal(HOST);
    let (since, looks) = (Instant::now(), site.looks());
    site.set(2);
    let (mut peer, _) = accepted(&mut listener).await;
    assert!(since.elapsed() <= 16 * SECOND, "{:?}", since.elapsed());
    shows(&read, 2, 2 * SECOND).await;
    assert!(site.looks() <= looks + 3);
    hold(&mut peer, 30 * SECOND).await;
    assert_eq!(site.sockets.connects(HOST), 2);
}

/// FC-42: the service comes back at another address while the link dials the old one.
#[tokio::test(start_paused = true)]
async fn fc_42_a_service_that_moved_is_found() {
    let site = Site::new();
    site.sockets.name(HOST, ["old"]);
    let old = site.sockets.listen("old");
    drop(old);
    let _read = site.get().push(Push::websocket(WS)).observe::<Value>().unwrap();
    sleep(30 * SECOND).await;
    assert!(site.sockets.connects("old") > 10);
    let mut new = site.sockets.listen("new");
    site.sockets.name(HOST, ["new"]);
    let since = Instant::now();
    let _peer = accepted(&mut new).await;
    assert!(since.elapsed() < 2 * SECOND, "{:?}", since.elapsed());
}

/// Of two addresses one is a black hole: the other is reached in the same round.
#[tokio::test(start_paused = true)]
async fn a_dead_address_is_passed_over() {
    let site = Site::new();
    site.sockets.name(HOST, ["dead", "live"]);
    site.sockets.silence("dead");
    let mut live = site.sockets.listen("live");
    let _read = site.get().push(Push::websocket(WS)).observe::<Value>().unwrap();
    let since = Instant::now();
    let _peer = accepted(&mut live).await;
    assert!(since.elapsed() <= 6 * SECOND, "{:?}", since.elapsed());
}

/// FC-49: a service that takes the upgrade and closes at once, for ten minutes: no loop of dials, none of looks, and the
/// read stays right.
#[tokio::test(start_paused = true)]
async fn fc_49_accepting_and_closing_is_no_loop() {
    let site = Site::new();
    let mut listener = site.sockets.listen(HOST);
    let read = site.get().push(Push::websocket(WS)).observe::<Value>().unwrap();
    let mut dials: Vec<Instant> = Vec::new();
    let _ = timeout(600 * SECOND, async {
        loop {
            let (mut peer, _) = accepted(&mut listener).await;
            dials.push(Instant::now());
            peer.send(Message::text("hello")).await.unwrap();
            close(&mut peer, 1001, "").await;
        }
    })
    .await;
    // A fortieth of the outage on average, in the end half the cap of 30 s.
    assert!((100..300).contains(&dials.len()), "{} dials", dials.len());
    let late = dials.iter().filter(|at| **at > dials[0] + 300 * SECOND).count();
    assert!(late < 60, "{late} dials in the second half");
    let looks = site.looks();
    assert!(looks <= 601, "{looks}");
    is_polled(&site, &read).await;
}

/// FC-50: 1013 keeps the link away for as long as the service says, and no code ends it.
#[tokio::test(start_paused = true)]
async fn fc_50_close_codes_are_kept_to() {
    let site = Site::new();
    let mut listener = site.sockets.listen(HOST);
    let _read = site.get().push(Push::websocket(WS)).observe::<Value>().unwrap();
    for (code, reason, least, most) in [
        (1000, "", 0, 1),
        (1001, "", 0, 1),
        (1011, "", 0, 1),
        (1012, "", 0, 1),
        (1013, "retry-after=20", 20, 21),
        (1013, "", 5, 6),
        (4999, "", 0, 1),
    ] {
        let (mut peer, _) = accepted(&mut listener).await;
        hold(&mut peer, 6 * SECOND).await;
        close(&mut peer, code, reason).await;
        let since = Instant::now();
        let io = listener.accept().await.unwrap();
        let took = since.elapsed();
        assert!((least * SECOND..=most * SECOND).contains(&took), "{code} {reason}: {took:?}");
        drop(io);
    }
}

/// FC-51, R3: the token expires while connected. The upgrade is refused, the source is asked once, and the next dial
/// has the new token.
#[tokio::test(start_paused = true)]
async fn fc_51_an_expired_token_is_refreshed() {
    let site = Site::new();
    let mut listener = site.sockets.listen(HOST);
    let token = Arc::new(Mutex::new(("old", 0)));
    let source = Arc::clone(&token);
    let source = move || {
        let mut source = source.lock().unwrap();
        source.1 += 1;
        std::future::ready(crate::Credential::bearer(source.0))
    };
    let read = site.get().credential(source).push(Push::websocket(WS)).observe::<Value>().unwrap();
    let (mut peer, headers) = accepted(&mut listener).await;
    assert_eq!(headers["authorization"], "Bearer old");
    hold(&mut peer, 10 * SECOND).await;
    let asked = token.lock().unwrap().1;
    drop(peer);
    token.lock().unwrap().0 = "new";
    assert_eq!(refused(&mut listener, 401, &[]).await["authorization"], "Bearer old");
    let (_peer, headers) = accepted(&mut listener).await;
    assert_eq!(headers["authorization"], "Bearer new");
    assert_eq!(token.lock().unwrap().1, asked + 1);
    shows(&read, 1, 10 * SECOND).await;
}

/// FC-51, R3: no token is sent there after two refusals, whether at the upgrade or by a close code; the read beside it is
/// served all the time and never denied. Another token is sent.
#[tokio::test(start_paused = true)]
async fn fc_51_a_refused_token_is_not_sent_again() {
    for close_code in [None, Some(4401), Some(1008)] {
        let site = Site::new();
        let mut listener = site.sockets.listen(HOST);
        let token = Arc::new(Mutex::new("first"));
        let source = Arc::clone(&token);
        let source = move || std::future::ready(crate::Credential::bearer(*source.lock().unwrap()));
        let read = site.get().credential(source).push(Push::websocket(WS)).observe::<Value>().unwrap();
        for _ in 0..2 {
            let headers = match close_code {
                None => refused(&mut listener, 403, &[]).await,
                Some(code) => {
                    let (mut peer, headers) = accepted(&mut listener).await;
                    peer.send(Message::text("who are you?")).await.unwrap();
                    close(&mut peer, code, "").await;
                    headers
                }
            };
            assert_eq!(headers["authorization"], "Bearer first");
        }
        let quiet = timeout(600 * SECOND, listener.accept()).await;
        assert!(quiet.is_err(), "sent a third time: {close_code:?}");
        is_polled(&site, &read).await;
        // The read's own refusal has the source asked again.
        *token.lock().unwrap() = "second";
        let (run, mut refusals) = (Arc::clone(&site.run), 1);
        site.ci.on("/run", move |_| {
            let refuse = std::mem::replace(&mut refusals, 0) > 0;
            if refuse { Reply::status(401) } else { Reply::json(json!({ "n": *run.lock().unwrap() })) }
        });
        let (_peer, headers) = timeout(120 * SECOND, accepted(&mut listener)).await.unwrap();
        assert_eq!(headers["authorization"], "Bearer second");
    }
}

/// R8, FC-55: `Retry-After` at the upgrade, in seconds and as a date, with each status that may carry it.
#[tokio::test(start_paused = true)]
async fn fc_55_retry_after_at_the_upgrade_is_kept_to() {
    for (status, headers) in [
        (429, &[("retry-after", "20")][..]),
        (503, &[("retry-after", "20")]),
        (403, &[("retry-after", "20")]),
        // Not for the rate: the budget knows nothing of it.
        (500, &[("retry-after", "20")]),
        (503, &[("date", "Tue, 25 Nov 2025 00:00:00 GMT"), ("retry-after", "Tue, 25 Nov 2025 00:00:20 GMT")]),
    ] {
        let site = Site::new();
        let mut listener = site.sockets.listen(HOST);
        let _read = site.get().push(Push::websocket(WS)).observe::<Value>().unwrap();
        refused(&mut listener, status, headers).await;
        let since = Instant::now();
        let _peer = accepted(&mut listener).await;
        assert!((20 * SECOND..28 * SECOND).contains(&since.elapsed()), "{status}: {:?}", since.elapsed());
    }
}

/// R7: a peer that hangs in any phase is given up after 5 s and dialed again, and the read is polled meanwhile.
#[tokio::test(start_paused = true)]
async fn r7_a_hang_in_each_phase_is_bounded() {
    let pki = rcgen::generate_simple_self_signed([HOST.to_owned()]).unwrap().cert.pem();
    for phase in ["resolve", "connect", "tls", "upgrade", "confirm"] {
        let hanging = Hanging { net: Net::new(), phase, resolved: Arc::default() };
        let site = Site::new();
        let mut listener = hanging.net.listen(HOST);
        let exchange = SimulatedExchange::new(site_net(&site));
        let agent = Agent::builder().exchange(exchange).network(hanging.clone()).root_certificates(pki.clone());
        let agent = agent.env(env(6)).build().unwrap();
        let url = if phase == "tls" { "wss://ci.example/ws" } else { WS };
        let push = Push::websocket(url).confirmed_by(|text| text == "ok");
        let read = agent.get(RUN).push(push).observe::<Value>().unwrap();
        let mut held = Vec::new();
        let _ = timeout(60 * SECOND, async {
            loop {
                match phase {
                    "confirm" => {
                        let (mut peer, _) = accepted(&mut listener).await;
                        hold(&mut peer, 7 * SECOND).await;
                    }
                    _ => held.push(listener.accept().await.unwrap()),
                }
            }
        })
        .await;
        let attempts = match phase {
            "resolve" => *hanging.resolved.lock().unwrap(),
            _ => hanging.net.connects(HOST),
        };
        assert!((7..=12).contains(&attempts), "{phase}: {attempts} attempts in a minute");
        is_polled(&site, &read).await;
    }
}

/// The network of the site's own requests.
fn site_net(site: &Site) -> Net {
    let net = Net::new();
    let ci = Script::serve(&net, HOST);
    let run = Arc::clone(&site.run);
    ci.on("/run", move |_| Reply::json(json!({ "n": *run.lock().unwrap() })));
    std::mem::forget(ci);
    net
}

#[derive(Clone)]
struct Hanging {
    net: Net,
    phase: &'static str,
    resolved: Arc<Mutex<u64>>,
}

impl Network for Hanging {
    fn resolve(&self, host: Arc<str>, port: u16) -> BoxFuture<'static, std::io::Result<Vec<Arc<str>>>> {
        *self.resolved.lock().unwrap() += 1;
        if self.phase == "resolve" { Box::pin(std::future::pending()) } else { self.net.resolve(host, port) }
    }

    fn connect(&self, address: Arc<str>) -> BoxFuture<'static, std::io::Result<Box<dyn Io>>> {
        let connected = self.net.connect(address);
        if self.phase == "connect" { Box::pin(std::future::pending()) } else { connected }
    }
}

/// A stream that is up and lies: it says nothing of a change. The slow interval sees it.
#[tokio::test(start_paused = true)]
async fn r5_a_stream_that_says_nothing_is_not_believed() {
    let site = Site::new();
    let mut listener = site.sockets.listen(HOST);
    let read = site.get().push(Push::websocket(WS)).observe::<Value>().unwrap();
    let (mut peer, _) = accepted(&mut listener).await;
    shows(&read, 1, SECOND).await;
    hold(&mut peer, 10 * SECOND).await;
    site.set(2);
    tokio::select! {
        took = shows(&read, 2, 61 * SECOND) => assert!(took > 20 * SECOND, "{took:?}"),
        () = drain(&mut peer) => panic!("the link is let go of"),
    }
}

/// A message longer than a mebibyte ends the link, and nothing else.
#[tokio::test(start_paused = true)]
async fn r6_a_message_that_is_too_long_ends_the_link_only() {
    let site = Site::new();
    let mut listener = site.sockets.listen(HOST);
    let read = site.get().push(Push::websocket(WS)).observe::<Value>().unwrap();
    let (mut peer, _) = accepted(&mut listener).await;
    let _ = timeout(SECOND, peer.send(Message::text("x".repeat((1 << 20) + 1)))).await;
    let (mut peer, _) = accepted(&mut listener).await;
    shows(&read, 1, SECOND).await;
    hold(&mut peer, 5 * SECOND).await;
    let sent = tokio::select! {
        sent = peer.send(Message::text("x".repeat(1 << 20))) => sent,
        _ = listener.accept() => panic!("a mebibyte is taken"),
    };
    sent.unwrap();
    tokio::select! {
        () = hold(&mut peer, 30 * SECOND) => {}
        _ = listener.accept() => panic!("a mebibyte is taken"),
    }
}

/// R8: a stream takes no place among the requests under way.
#[tokio::test(start_paused = true)]
async fn r8_an_open_stream_holds_no_place_of_the_budget() {
    let site = Site::new();
    let mut listener = site.sockets.listen(HOST);
    let limits = Limits { in_flight: 1, ..Limits::default() };
    let rest = site_net(&site);
    let exchange = SimulatedExchange::new(rest);
    let agent = Agent::builder().exchange(exchange).network(site.sockets.clone()).limits(limits).env(env(6));
    let read = agent.build().unwrap().get(RUN).push(Push::websocket(WS)).observe::<Value>().unwrap();
    let (mut peer, _) = accepted(&mut listener).await;
    shows(&read, 1, 10 * SECOND).await;
    site.set(2);
    peer.send(Message::text("2")).await.unwrap();
    shows(&read, 2, 5 * SECOND).await;
}

/// R8: a dial that reaches nobody takes nothing of what remains in a window: of four requests an hour none is spent on a
/// host that is away, so the dials go on and find it when it is back.
#[tokio::test(start_paused = true)]
async fn r8_a_dial_that_reaches_nobody_takes_nothing_of_the_window() {
    let site = Site::new();
    site.ci.on("/run", |_| {
        let reply = Reply::json(json!({ "n": 1 })).header("ratelimit-limit", "100");
        reply.header("ratelimit-remaining", "4").header("ratelimit-reset", "3600")
    });
    let read = site.get().pace(crate::http::poll::Pace::every(3600 * SECOND)).push(Push::websocket(WS));
    let _read = read.observe::<Value>().unwrap();
    sleep(3000 * SECOND).await;
    let dials = site.sockets.connects(HOST);
    assert!(dials > 60, "{dials} dials, {} looks", site.looks());
    let mut listener = site.sockets.listen(HOST);
    timeout(31 * SECOND, accepted(&mut listener)).await.unwrap_or_else(|_| panic!("{} looks", site.looks()));
}

/// The stream is closed with the last observer.
#[tokio::test(start_paused = true)]
async fn it_ends_with_the_read() {
    let site = Site::new();
    let mut listener = site.sockets.listen(HOST);
    let read = site.get().push(Push::websocket(WS)).observe::<Value>().unwrap();
    let (mut peer, _) = accepted(&mut listener).await;
    drop(read);
    timeout(SECOND, drain(&mut peer)).await.unwrap();
    assert!(timeout(60 * SECOND, listener.accept()).await.is_err());
}
