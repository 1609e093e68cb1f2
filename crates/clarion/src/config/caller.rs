//! Who has started this program, as far as the environment tells.

/// Set by sudo and by the SSH server.
const SUDO_USER: &str = "SUDO_USER";
const SSH: [&str; 2] = ["SSH_CONNECTION", "SSH_CLIENT"];

/// Who has logged in, and from where.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Login {
    /// The user who became another one with sudo.
    pub sudo_user: Option<String>,
    pub address: Option<String>,
}

impl Login {
    pub fn of_this_process() -> Self {
        Self::read(|name| std::env::var(name).ok())
    }

    fn read(variable: impl Fn(&str) -> Option<String>) -> Self {
        let told = |name: &str| variable(name).filter(|value| !value.is_empty());
        // The address comes first, then ports.
        let address = SSH.iter().find_map(|name| told(name));
        let address = address.and_then(|all| all.split(' ').next().map(str::to_owned));
        Self {
            sudo_user: told(SUDO_USER),
            address,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_environment_tells_who_and_from_where() {
        let login = Login::read(|name| match name {
            "SUDO_USER" => Some("li".to_owned()),
            "SSH_CONNECTION" => Some("203.0.113.7 50022 192.0.2.1 22".to_owned()),
            _ => None,
        });
        assert_eq!(login.sudo_user.as_deref(), Some("li"));
        assert_eq!(login.address.as_deref(), Some("203.0.113.7"));
        assert_eq!(Login::read(|_| Some(String::new())), Login::default());
    }
}
