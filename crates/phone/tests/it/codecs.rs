//! Callees that change the codec while the call is up.

use g711::Codec;
use phone::ending::Side;
use phone::media::stream::PlaybackItem;
use tokio::net::UdpSocket;

use crate::lab::{PATIENCE, call, call_request, caller, loopback, sound, trunk_to};
use crate::puppet::Puppet;

/// So many packets: in which codec each of them is, and its sound.
async fn packets(rtp: &UdpSocket, count: usize) -> Vec<(Codec, Vec<u8>)> {
    let mut heard = Vec::new();
    for _ in 0..count {
        let mut bytes = [0; 2000];
        let came = tokio::time::timeout(PATIENCE, rtp.recv(&mut bytes)).await;
        let length = came.expect("a packet in time").unwrap();
        let of = |codec: &Codec| codec.payload_type() == bytes[1] & 0x7f;
        let codec = Codec::ALL.into_iter().find(of).expect("a known codec");
        heard.push((codec, bytes[12..length].to_vec()));
    }
    heard
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_callee_that_wants_another_codec_in_mid_call_hears_the_rest_in_that() {
    let rtp = UdpSocket::bind(loopback()).await.unwrap();
    let port = rtp.local_addr().unwrap().port();
    let described = |format: u8, version: u8| {
        format!(
            "v=0\r\no=- 1 {version} IN IP4 127.0.0.1\r\ns=-\r\nc=IN IP4 127.0.0.1\r\nt=0 0\r\nm=audio {port} RTP/AVP {format}\r\n"
        )
    };
    let mut puppet = Puppet::new().await;
    let trunk = trunk_to(puppet.address()).await;
    let message = sound(150);
    let request = call_request(vec![PlaybackItem::Sound(message.clone())]);
    let phone = caller();
    let behaving = async {
        let invite = puppet.request("INVITE").await;
        let extra = format!("{}Content-Type: application/sdp\r\n", puppet.contact());
        let answer = described(8, 1);
        puppet
            .respond_as("puppet", &invite, "200 OK", &extra, &answer)
            .await;
        puppet.request("ACK").await;
        let mut heard = packets(&rtp, 20).await;
        let change = described(0, 2);
        puppet.ask_with("INVITE", 1, &invite, &extra, &change).await;
        let accepted = puppet.request("SIP/2.0 200").await;
        assert!(accepted.contains(" RTP/AVP 0\r\n"), "{accepted}");
        puppet.ask("ACK", 1, &invite, "").await;
        heard.extend(packets(&rtp, 130).await);
        let bye = puppet.request("BYE").await;
        puppet.respond(&bye, "200 OK", "").await;
        heard
    };
    let (story, heard) = tokio::join!(call(&phone, &trunk, request), behaving);
    for (place, (codec, sound)) in heard.iter().enumerate() {
        let meant = &message.bytes(*codec)[place * 160..][..160];
        assert_eq!(sound, meant, "packet {place} in {codec:?}");
    }
    let before = heard.iter().position(|(codec, _)| *codec == Codec::Pcmu);
    let before = before.expect("sound in the other codec");
    assert!((20..100).contains(&before), "{before} packets before");
    let after = &heard[before..];
    assert!(after.iter().all(|(codec, _)| *codec == Codec::Pcmu));
    assert_eq!(story.stats.codec, Some(Codec::Pcmu));
    assert_eq!(story.talked().1, Side::Us);
}
