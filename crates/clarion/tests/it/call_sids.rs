//! A callSid sorts by the time of its acceptance: within a second, within a microsecond, and whatever the clock on the wall does.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use clarion::client::Connection;
use jiff::SignedDuration;
use tokio::task::JoinSet;

use crate::support::{APP, TestServer, call_sid};

/// Places one call on a connection that stays.
async fn place(server: &TestServer, connection: &mut Connection) -> String {
    let body = format!("{{\"appId\":\"{APP}\",\"to\":\"13800000000\",\"mediaTxt\":\"x\"}}");
    let answer = connection
        .operation(
            &server.credentials(),
            &server.sign(),
            "Calls/LandingCalls",
            "application/json",
            Some(body),
        )
        .await
        .unwrap();
    call_sid(&answer)
}

#[tokio::test]
async fn calls_that_follow_one_another_have_ascending_call_sids_though_the_clock_is_set_back() {
    let server = TestServer::start().await;
    let mut connection = server.client().connect().await.unwrap();
    let mut placed = Vec::new();
    for back in [0, 3600, 1, 0] {
        server.clock.shift(-SignedDuration::from_secs(back));
        for _ in 0..50 {
            placed.push(place(&server, &mut connection).await);
        }
    }
    assert!(placed.is_sorted_by(|a, b| a < b), "{placed:?}");
}

/// A call by the moments of its request and of its answer, on a clock that counts events.
struct Placed {
    asked: usize,
    answered: usize,
    sid: String,
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_that_was_asked_for_after_another_was_answered_comes_after_it() {
    const CLIENTS: usize = 6;
    let server = Arc::new(TestServer::start().await);
    let events = Arc::new(AtomicUsize::new(0));
    let mut clients = JoinSet::new();
    for _ in 0..CLIENTS {
        let (server, events) = (Arc::clone(&server), Arc::clone(&events));
        clients.spawn(async move {
            let mut connection = server.client().connect().await.unwrap();
            let mut placed = Vec::new();
            for _ in 0..50 {
                let asked = events.fetch_add(1, Ordering::SeqCst);
                let sid = place(&server, &mut connection).await;
                let answered = events.fetch_add(1, Ordering::SeqCst);
                placed.push(Placed {
                    asked,
                    answered,
                    sid,
                });
            }
            placed
        });
    }
    let mut placed: Vec<Placed> = clients.join_all().await.into_iter().flatten().collect();
    placed.sort_by(|a, b| a.sid.cmp(&b.sid));
    let mut last_asked = 0;
    for call in &placed {
        assert!(call.answered > last_asked, "{} is too late", call.sid);
        last_asked = last_asked.max(call.asked);
    }
    let different = placed.windows(2).all(|pair| pair[0].sid != pair[1].sid);
    assert!(different && placed.len() == 50 * CLIENTS);
}
