//! The streams that a profile states.

use super::*;
use crate::profile::Profile;

fn request(complete: bool) -> Reply {
    let results = if complete { json!(0) } else { Value::Null };
    Reply::json(json!({ "buildrequests": [
        { "buildrequestid": 7, "complete": complete, "claimed": true, "results": results },
    ] }))
}

/// A watched build request has its stream from the start; its messages lead to a look.
#[tokio::test(start_paused = true)]
async fn a_profile_opens_the_stream_of_its_stage() {
    let site = Site::new();
    let mut listener = site.sockets.listen(HOST);
    let complete = Arc::new(Mutex::new(false));
    let state = Arc::clone(&complete);
    site.ci.on("/api/v2/buildrequests/7", move |_| request(*state.lock().unwrap()));
    let work = Profile::named("buildbot").unwrap();
    let work = work.watch(site.agent.get("http://ci.example/#/buildrequests/7")).unwrap();
    let (mut peer, _) = accepted(&mut listener).await;
    let greeting = peer.next().await.unwrap().unwrap();
    assert_eq!(greeting, Message::text(r#"{"cmd":"startConsuming","path":"buildrequests/7/*","_id":1}"#));
    hold(&mut peer, 20 * SECOND).await;
    *complete.lock().unwrap() = true;
    let since = Instant::now();
    peer.send(Message::text("{}")).await.unwrap();
    timeout(5 * SECOND, work.until(|work| work.state.is_terminal())).await.unwrap().unwrap();
    assert!(since.elapsed() < 2 * SECOND);
}

/// A stage that has no stream leads to one that has: its stream is opened then.
#[tokio::test(start_paused = true)]
async fn a_stage_that_turns_opens_the_stream_of_the_next() {
    let site = Site::new();
    let mut listener = site.sockets.listen(HOST);
    let build = json!({ "builds": [{ "buildid": 3, "buildrequestid": 7, "complete": false, "results": null }] });
    site.ci.replies("/api/v2/builds/3", [Reply::json(build)]);
    site.ci.replies("/api/v2/buildrequests/7", [request(false)]);
    let work = Profile::named("buildbot").unwrap();
    let _work = work.watch(site.agent.get("http://ci.example/api/v2/builds/3")).unwrap();
    let (mut peer, _) = timeout(10 * SECOND, accepted(&mut listener)).await.unwrap();
    let greeting = peer.next().await.unwrap().unwrap();
    assert_eq!(greeting, Message::text(r#"{"cmd":"startConsuming","path":"buildrequests/7/*","_id":1}"#));
    assert_eq!(site.sockets.connects(HOST), 1);
}

/// Buildbot behind a proxy that knows no WebSockets: its event stream takes their place within two seconds, and each event
/// leads to a look. Once WebSockets pass, they are used again.
#[tokio::test(start_paused = true)]
async fn a_profile_goes_on_to_the_next_stream_of_its_stage_and_back() {
    const SSE: &str = "/sse/listen/buildrequests/7/%2A";
    let site = Site::new();
    let mut listener = site.sockets.listen(HOST);
    let complete = Arc::new(Mutex::new(false));
    let state = Arc::clone(&complete);
    site.ci.on("/api/v2/buildrequests/7", move |_| request(*state.lock().unwrap()));
    let (reply, events) = stream();
    site.ci.replies(SSE, [reply]);
    let work = Profile::named("buildbot").unwrap();
    let work = work.watch(site.agent.get("http://ci.example/#/buildrequests/7")).unwrap();
    refused(&mut listener, 404, &[]).await;
    let since = Instant::now();
    timeout(2 * SECOND, site.ci.until(SSE, 1)).await.unwrap();
    assert!(since.elapsed() < SECOND, "{:?}", since.elapsed());
    // It is kept alive, as Buildbot does.
    let kept = async {
        loop {
            events.send(": keepalive\n\n");
            sleep(20 * SECOND).await;
        }
    };
    let mut peer = tokio::select! {
        (peer, _) = accepted(&mut listener) => peer,
        () = kept => unreachable!(),
    };
    assert!((540 * SECOND..=601 * SECOND).contains(&since.elapsed()), "{:?}", since.elapsed());
    assert_eq!((site.ci.asked(SSE).len(), events.readers()), (1, 0), "one stream at a time");
    hold(&mut peer, 60 * SECOND).await;
    *complete.lock().unwrap() = true;
    let since = Instant::now();
    peer.send(Message::text("{}")).await.unwrap();
    timeout(5 * SECOND, work.until(|work| work.state.is_terminal())).await.unwrap().unwrap();
    assert!(since.elapsed() < 2 * SECOND);
}

/// The caller's own stream stays, and is the only one.
#[tokio::test(start_paused = true)]
async fn a_stream_of_the_caller_is_kept() {
    let site = Site::new();
    let mut listener = site.sockets.listen(HOST);
    site.ci.replies("/api/v2/buildrequests/7", [request(false)]);
    let work = Profile::named("buildbot").unwrap();
    let get = site.agent.get("http://ci.example/#/buildrequests/7").push(Push::websocket(WS).hello("mine"));
    let _work = work.watch(get).unwrap();
    let (mut peer, _) = accepted(&mut listener).await;
    assert_eq!(peer.next().await.unwrap().unwrap(), Message::text("mine"));
    tokio::select! {
        () = hold(&mut peer, 60 * SECOND) => {}
        _ = listener.accept() => panic!("another stream"),
    }
}
