//! The address to which the status of a call is reported. Only its form is checked here.

use std::fmt;

use url::Url;

use super::status_code::{Refusal, StatusCode};
use super::wording::{Wording, wording};

const LONGEST: usize = 2048;

/// A callback address with an acceptable form. Whether its host is allowed is checked when the connection is made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RespUrl(String);

impl RespUrl {
    pub fn as_str(&self) -> &str {
        &self.0
    }

    pub fn from_stored(text: String) -> Self {
        Self(text)
    }

    /// Returns name and port. Deliveries to one host share its limit, and fail together.
    pub fn host(&self) -> String {
        let parts = Url::parse(&self.0).ok().and_then(|url| {
            let port = url.port_or_known_default()?;
            Some(format!("{}:{port}", url.host_str()?))
        });
        parts.unwrap_or_default()
    }

    /// Returns the address for logs and lists. The query may carry secrets of the receiver, and the path is enough to recognise it.
    pub fn without_query(&self) -> &str {
        self.0.split(['?', '#']).next().unwrap_or_default()
    }

    pub fn parse(text: &str) -> Result<Self, Refusal> {
        Self::named_by("respUrl", text)
    }

    /// Reads an address. A refusal names the field.
    pub fn named_by(field: &str, text: &str) -> Result<Self, Refusal> {
        let refuse = |rule: Wording| {
            Err(Refusal::worded(StatusCode::RespUrlUnacceptable, &rule).about(field))
        };
        if text.len() > LONGEST {
            let rule = wording!("is longer than {LONGEST} bytes", "超过 {LONGEST} 个字节");
            return Err(Refusal::worded(StatusCode::DataTooLong, &rule).about(field));
        }
        let Ok(url) = Url::parse(text) else {
            return refuse(wording!("must be a valid URL", "不是有效的 URL"));
        };
        if !matches!(url.scheme(), "http" | "https") {
            return refuse(wording!(
                "must begin with http:// or https://",
                "必须以 http:// 或 https:// 开头"
            ));
        }
        if url.host_str().is_none_or(str::is_empty) {
            return refuse(wording!("must name a host", "缺少主机名"));
        }
        if !url.username().is_empty() || url.password().is_some() {
            return refuse(wording!(
                "must not carry a user name or password",
                "不能带用户名或密码"
            ));
        }
        Ok(Self(text.to_owned()))
    }
}

impl fmt::Display for RespUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_is_a_name_and_a_port_and_the_query_is_not_shown() {
        for (text, host) in [
            ("http://Receiver.Example/cb?token=x", "receiver.example:80"),
            ("https://receiver.example/cb", "receiver.example:443"),
            ("https://[2001:db8::1]:8443", "[2001:db8::1]:8443"),
            ("http://0x7f.1/", "127.0.0.1:80"),
        ] {
            let url = RespUrl::parse(text).unwrap();
            assert_eq!(url.host(), host);
            assert!(!url.without_query().contains("token"));
        }
    }

    #[test]
    fn only_the_form_is_judged() {
        for text in [
            "http://h/cb?a=1&b=2",
            "https://例子.测试/回调",
            "HTTP://[::1]:8080/",
            "http://127.0.0.1:9/cb",
        ] {
            assert_eq!(RespUrl::parse(text).unwrap().as_str(), text);
        }
        for text in [
            "h/cb",
            "ftp://h/",
            "file:///etc/passwd",
            "http://",
            "http://u:p@h/",
            "http://u@h/",
            "javascript:1",
            "http://h:99999/",
        ] {
            assert_eq!(
                RespUrl::parse(text).unwrap_err().code,
                StatusCode::RespUrlUnacceptable,
                "{text}"
            );
        }
        let long = format!("http://h/{}", "a".repeat(LONGEST));
        assert_eq!(
            RespUrl::parse(&long).unwrap_err().code,
            StatusCode::DataTooLong
        );
    }
}
