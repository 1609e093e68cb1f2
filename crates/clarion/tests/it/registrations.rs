//! One node registers a trunk that wants a registration, however many nodes there are.

use std::collections::BTreeSet;

use crate::support::child::Installation;
use crate::support::sip_peer::SipPeer;
use crate::support::{eventually, postgres};

fn settings(registrar: &SipPeer) -> String {
    format!(
        "[dispatch]\nlease_seconds = 2\n[[trunk]]\nname = \"provider\"\nhost = \"{}\"\nbind = \"127.0.0.1:0\"\nprefixes = [\"\"]\n\
         register_seconds = 60\nuser = \"clarion\"\npassword = \"secret\"\n",
        registrar.address
    )
}

/// The contacts under which somebody has registered, and not those of registrations that were taken back.
fn contacts(registrar: &SipPeer) -> BTreeSet<String> {
    let requests = registrar.requests.lock().unwrap();
    let mut contacts = BTreeSet::new();
    let is_register = |request: &&String| request.starts_with("REGISTER");
    for request in requests.iter().filter(is_register) {
        let contact = |line: &&str| line.to_ascii_lowercase().starts_with("contact:");
        let Some(contact) = request.lines().find(contact) else {
            continue;
        };
        let contact = contact.split(['<', '>']).nth(1).unwrap().to_owned();
        if request.contains("Expires: 0") || request.contains("expires=0") {
            contacts.remove(&contact);
        } else {
            contacts.insert(contact);
        }
    }
    contacts
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_trunk_is_registered_by_one_node_and_by_another_when_that_is_gone() {
    let registrar = SipPeer::start(|_| Some((200, String::new()))).await;
    let url = postgres::empty_database().await;
    let settings = settings(&registrar);
    let first = Installation::with_settings(Some(url.clone()), &settings).await;
    let second = first.another_node(&settings);
    let mut registers = first.start().await;
    eventually("it registers", async || contacts(&registrar).len() == 1).await;
    let before = contacts(&registrar);
    let mut stands_by = second.start().await;
    let database = postgres::connect(&url).await;
    let renewals = async || {
        let fence = "SELECT fence FROM leases WHERE duty = 'register:provider'";
        database
            .query_one(fence, &[])
            .await
            .unwrap()
            .get::<_, i64>(0)
    };
    let since = renewals().await;
    eventually("the duty is renewed again and again", async || {
        renewals().await > since + 10
    })
    .await;
    // On a busy machine the lease may have been over, and the duty has moved.
    eventually("one of them has registered", async || {
        contacts(&registrar).len() == 1
    })
    .await;
    registers.process.kill().await.unwrap();
    eventually("the other one registers", async || {
        contacts(&registrar).difference(&before).count() == 1
    })
    .await;
    // In good order: the registration is taken back, and the duty is free at once.
    let id = stands_by.process.id().unwrap().cast_signed();
    let pid = rustix::process::Pid::from_raw(id).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
    stands_by.process.wait().await.unwrap();
    eventually("it is taken back", async || {
        contacts(&registrar).is_subset(&before)
    })
    .await;
    let left = database
        .query("SELECT FROM leases WHERE duty LIKE 'register:%'", &[])
        .await;
    assert!(left.unwrap().is_empty());
}
