//! What carriers say in words of an account that they have shut, beside codes that are meant for callees: 603 for a suspended account, 404 for a
//! blocked one. Words that may mean the callee's account instead are told apart from those that mean ours.

/// Whose account a phrase means.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ShutAccount {
    /// Nobody is called over this trunk until somebody has paid or asked.
    Ours,
    /// Ours, or that of the callee.
    Somebodys,
}

/// One of `words` stands in a phrase, and one of `beside` too, where there are any.
#[derive(Debug, Clone, Copy)]
pub struct AccountWords {
    pub words: &'static [&'static str],
    pub beside: &'static [&'static str],
    pub means: ShutAccount,
}

/// In small letters. The first that fits counts.
pub const ACCOUNT_WORDS: [AccountWords; 4] = [
    AccountWords {
        words: &[
            "insufficient balance",
            "insufficient credit",
            "insufficient funds",
            "not enough balance",
            "not enough credit",
            "not enough funds",
            "no balance",
            "no credit",
            "no funds",
            "out of credit",
            "out of funds",
            "low balance",
            "balance too low",
            "balance exhausted",
            "credit exhausted",
            "credit limit",
            "unavailable for account",
            "余额不足",
            "余额为零",
        ],
        beside: &[],
        means: ShutAccount::Ours,
    },
    AccountWords {
        words: &["account", "账户", "账号", "帐户", "帐号"],
        beside: &[
            "suspend",
            "block",
            "disabled",
            "deactivated",
            "inactive",
            "locked",
            "barred",
            "closed",
            "terminated",
            "expired",
            "overdue",
            "欠费",
            "停机",
            "停用",
            "暂停",
            "禁用",
            "冻结",
            "锁定",
            "过期",
            "到期",
        ],
        means: ShutAccount::Ours,
    },
    AccountWords {
        words: &["主叫"],
        beside: &["欠费", "停机", "停用"],
        means: ShutAccount::Ours,
    },
    AccountWords {
        words: &["suspended", "欠费", "停机"],
        beside: &[],
        means: ShutAccount::Somebodys,
    },
];

/// Whoever says this speaks of the one who is called.
pub const CALLEE_WORDS: [&str; 10] = [
    "callee",
    "called",
    "destination",
    "dialed",
    "dialled",
    "incoming",
    "recipient",
    "被叫",
    "对方",
    "拨打",
];

impl AccountWords {
    fn stand_in(&self, phrase: &str) -> bool {
        let has = |word: &&str| phrase.contains(*word);
        self.words.iter().any(has) && (self.beside.is_empty() || self.beside.iter().any(has))
    }
}

/// Whose account is shut, if a phrase says that one is.
pub fn shut_account(phrase: &str) -> Option<ShutAccount> {
    let phrase = phrase.to_lowercase();
    if CALLEE_WORDS.iter().any(|word| phrase.contains(word)) {
        return None;
    }
    let mut known = ACCOUNT_WORDS.iter();
    known
        .find(|words| words.stand_in(&phrase))
        .map(|words| words.means)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_account_that_is_shut_is_known_by_what_carriers_say_of_it() {
        for phrase in [
            "Account suspended",
            "Your ACCOUNT has been blocked",
            "Customer account is disabled",
            "Service unavailable for account",
            "Insufficient funds",
            "insufficient balance, please recharge",
            "No credit left",
            "Credit limit exceeded",
            "余额不足",
            "账户已欠费",
            "账号已停用",
            "主叫欠费停机",
        ] {
            assert_eq!(shut_account(phrase), Some(ShutAccount::Ours), "{phrase}");
        }
    }

    #[test]
    fn words_that_may_mean_the_callee_say_less_and_those_that_do_say_nothing() {
        for phrase in ["Suspended", "Service suspended", "欠费", "用户已停机"] {
            let somebodys = Some(ShutAccount::Somebodys);
            assert_eq!(shut_account(phrase), somebodys, "{phrase}");
        }
        for phrase in [
            "",
            "Not Found",
            "Decline",
            "Forbidden",
            "Busy Here",
            "Service Unavailable",
            "Temporarily Unavailable",
            "Blocked",
            "No account",
            "The called account is suspended",
            "This account has blocked incoming calls",
            "Customer unavailable",
            "Insufficient balance for this destination",
            "您拨打的用户已停机",
            "被叫欠费停机",
        ] {
            assert_eq!(shut_account(phrase), None, "{phrase}");
        }
    }
}
