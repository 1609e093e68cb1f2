use super::*;

fn refusal(code: u16, q850: Option<u8>, phrase: &str) -> TrunkResponse<'_> {
    TrunkResponse {
        code,
        rang: false,
        q850,
        phrases: [phrase, ""],
    }
}

fn rule(codes: RangeInclusive<u16>, then: Judgement) -> ResponseRule {
    ResponseRule {
        codes,
        q850: None,
        phrase: None,
        then,
    }
}

fn judge(code: u16, q850: Option<u8>) -> Judgement {
    ResponsePolicy::default().judge(&refusal(code, q850, ""))
}

#[test]
fn what_the_callee_or_the_network_says_of_the_number_is_final() {
    for (code, outcome) in [
        (486, Outcome::Busy),
        (600, Outcome::Busy),
        (603, Outcome::Declined),
        (607, Outcome::Declined),
        (480, Outcome::NotAnswered),
        (404, Outcome::InvalidNumber),
        (484, Outcome::InvalidNumber),
        (604, Outcome::InvalidNumber),
    ] {
        assert_eq!(judge(code, None), over(outcome), "{code}");
    }
}

#[test]
fn what_is_said_of_the_trunk_leaves_the_call_to_another() {
    for code in [402, 403, 429, 501, 408, 503, 302, 488, 606, 401] {
        assert_ne!(judge(code, None).verdict, Verdict::Final, "{code}");
    }
    for code in [401, 402, 407, 408, 429, 500, 503, 504] {
        assert_eq!(judge(code, None).verdict, Verdict::Wait, "{code}");
    }
}

#[test]
fn a_q850_cause_is_believed_where_the_code_is_vague() {
    assert_eq!(judge(480, Some(17)), over(Outcome::Busy));
    assert_eq!(judge(503, Some(1)), over(Outcome::InvalidNumber));
    assert_eq!(judge(500, Some(21)), over(Outcome::Declined));
    assert_eq!(judge(404, Some(34)), WAIT);
    assert_eq!(judge(486, Some(1)), over(Outcome::Busy), "486 is precise");
    assert_eq!(
        judge(480, Some(16)),
        over(Outcome::NotAnswered),
        "16 says nothing"
    );
}

#[test]
fn the_rules_of_a_trunk_come_before_those_of_its_kind_and_these_before_the_table() {
    let suspended = ResponseRule {
        phrase: Some("SUSPENDED".to_owned()),
        ..rule(603..=603, refused(Verdict::TrunkDown))
    };
    let congested = ResponseRule {
        q850: Some(42..=42),
        ..rule(400..=699, WAIT)
    };
    let policy = ResponsePolicy::new(vec![suspended, congested], CarrierKind::Wholesale);
    let judge = |code, q850, phrase| policy.judge(&refusal(code, q850, phrase));
    assert_eq!(
        judge(603, None, "Account suspended"),
        refused(Verdict::TrunkDown)
    );
    assert_eq!(judge(603, Some(42), "Decline"), WAIT);
    assert_eq!(judge(603, None, "Decline"), NEXT, "of its kind");
    assert_eq!(
        judge(480, Some(17), "Unavailable"),
        over(Outcome::Busy),
        "the network's cause comes before the kind"
    );
    assert_eq!(judge(486, None, "Busy Here"), over(Outcome::Busy));
}

#[test]
fn words_that_say_that_an_account_is_shut_come_before_the_code_and_the_cause() {
    let policy = ResponsePolicy::default();
    let judge = |code, q850, phrase| policy.judge(&refusal(code, q850, phrase));
    for code in [400, 403, 404, 480, 488, 500, 503, 603, 604] {
        assert_eq!(judge(code, None, "Account suspended"), WAIT, "{code}");
    }
    assert_eq!(judge(603, Some(21), "Account blocked"), WAIT);
    assert_eq!(judge(404, Some(1), "余额不足"), WAIT);
    let network = TrunkResponse {
        phrases: ["Decline", "Insufficient funds"],
        ..refusal(603, Some(21), "")
    };
    assert_eq!(policy.judge(&network), WAIT);
    // It may be that of the callee: another trunk knows.
    let somebodys = judge(404, None, "Service suspended");
    assert_eq!(somebodys.verdict, Verdict::NextTrunk);
    assert_eq!(somebodys.outcome, Outcome::InvalidNumber);
    assert_eq!(judge(503, None, "Suspended"), WAIT);
    assert_eq!(judge(486, None, "Account blocked"), over(Outcome::Busy));
    let rang = TrunkResponse {
        rang: true,
        ..refusal(603, None, "Account suspended")
    };
    assert_eq!(policy.judge(&rang), over(Outcome::Declined));
    let own = ResponseRule {
        phrase: Some("suspended".to_owned()),
        ..rule(603..=603, NEXT)
    };
    let own = ResponsePolicy::new(vec![own], CarrierKind::Standard);
    assert_eq!(own.judge(&refusal(603, None, "Account suspended")), NEXT);
}

#[test]
fn what_an_operator_writes_is_read_and_what_makes_no_sense_is_named() {
    assert_eq!("busy".parse(), Ok(over(Outcome::Busy)));
    assert_eq!("next-trunk".parse(), Ok(NEXT));
    let error = "talked".parse::<Judgement>().unwrap_err();
    assert!(error.contains("talked") && error.contains("trunk-down"));
    for kind in CarrierKind::ALL {
        assert_eq!(kind.as_str().parse(), Ok(kind));
    }
}

#[test]
fn the_documents_rows_cover_every_code_once() {
    let rows = default_table();
    let codes: Vec<u16> = rows.iter().flat_map(|(codes, _)| codes.clone()).collect();
    assert_eq!(codes, (300..=699).collect::<Vec<u16>>());
    for (codes, judgement) in rows {
        for code in codes {
            assert_eq!(by_default(code, None), judgement);
        }
    }
}
