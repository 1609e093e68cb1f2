//! OPTIONS: asking whether a peer is there.

use std::net::SocketAddr;

use rsipstack::sip::{Header, Method, SipMessage};
use rsipstack::transaction::key::{TransactionKey, TransactionRole};
use rsipstack::transaction::transaction::Transaction;

use super::request_form::address_alone;
use super::{Signalling, SignallingError, transport, uri};

impl Signalling {
    /// Sends OPTIONS. Returns the code of the response, whatever it is, or `None` for silence.
    pub async fn ping(
        &self,
        target: &str,
        destination: SocketAddr,
    ) -> Result<Option<u16>, SignallingError> {
        self.add_peer(destination.ip());
        let contact = self.connect(destination).await?;
        let request = self.options_request(target, contact)?;
        let _conversation = self.converse(&request, destination);
        let key = TransactionKey::from_request(&request, TransactionRole::Client)?;
        let mut transaction = Transaction::new_client(key, request, self.endpoint.clone(), None);
        transaction.destination = Some(transport::sip_address(self.transport, destination));
        transaction.send().await?;
        while let Some(message) = transaction.receive().await {
            if let SipMessage::Response(response) = message
                && response.status_code.code() >= 200
            {
                // The library makes a 408 of its own out of silence; nobody else sends one to OPTIONS without a To tag.
                let code = response.status_code.code();
                return Ok(Some(code).filter(|code| *code != 408));
            }
        }
        Ok(None)
    }

    fn options_request(
        &self,
        target: &str,
        contact: SocketAddr,
    ) -> Result<rsipstack::sip::Request, SignallingError> {
        let target = uri(target)?;
        let own = self.contact_uri("", contact)?;
        let sent_by = transport::sip_address(self.transport, self.contact);
        let via = self.endpoint.get_via(Some(sent_by), None)?;
        let from = rsipstack::sip::typed::From {
            display_name: None,
            uri: address_alone(own.clone()),
            params: Vec::new(),
        }
        .with_tag(rsipstack::transaction::make_tag());
        let to = rsipstack::sip::typed::To {
            display_name: None,
            uri: address_alone(target.clone()),
            params: Vec::new(),
        };
        let mut request =
            self.endpoint
                .make_request(Method::Options, target, via, from, to, 1, None);
        request
            .headers
            .push(Header::Contact(format!("<{own}>").into()));
        request
            .headers
            .push(Header::Accept("application/sdp".into()));
        Ok(request)
    }
}
