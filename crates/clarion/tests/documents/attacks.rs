//! The attacks that were tried, and the tests that hold them off: `docs/security.md` lists them, and each test exists.

use std::fmt::Write;
use std::path::Path;

use super::{check, root};

/// What was tried, what holds it off within which bound, and the names of its tests.
const ATTACKS: &[(&str, &str, &[&str])] = &[
    (
        "alerts with a wrong token, of 10 MB, of 10,000 alerts, a hundred times a second",
        "401 and 190012 in every case; `http.max_alert_bytes`; three are said and the rest is counted; one notice for an incident",
        &[
            "an_unknown_token_is_refused_like_an_unknown_intake_and_counted",
            "a_body_of_ten_megabytes_is_refused_and_the_answer_is_seen",
            "of_ten_thousand_alerts_three_are_said_and_the_rest_is_counted",
            "the_same_group_a_hundred_times_a_second_is_one_notice",
        ],
    ),
    (
        "a label that names a number of its own; a template that loops or grows",
        "the intake's own people are called, and it is counted; fuel, no statement that keeps a value, a plain sentence instead",
        &[
            "a_label_outside_the_allow_list_calls_the_intakes_own_people_and_is_counted",
            "what_would_fail_at_night_is_refused_when_it_is_saved",
            "a_template_that_loops_all_the_same_is_replaced_by_a_plain_sentence",
        ],
    ),
    (
        "a text that changes language a thousand times",
        "at most 64 pieces and one for every 200 characters; one deadline for the whole text",
        &[
            "a_text_that_changes_language_a_thousand_times_starts_the_voice_less_than_a_hundred_times",
            "one_deadline_holds_for_a_whole_text_however_many_phrases_it_has",
        ],
    ),
    (
        "eight costly texts before another customer's",
        "another customer's text is begun third at the latest, and waits for a phrase of a long text only",
        &[
            "eight_costly_texts_of_a_customer_delay_the_text_of_another_by_one_of_them",
            "a_long_text_is_interrupted_for_a_requester_who_has_no_thread",
        ],
    ),
    (
        "texts that keep a trunk from others while they are spoken",
        "a call gives its channel back after 50 ms and takes one anew; of an account whose 16 calls wait for prompts no more are claimed",
        &["while_the_prompts_of_a_customer_are_made_others_have_the_trunk"],
    ),
    (
        "390 KB of requests that fill 400 MB of disk",
        "files are refused below twice `min_free_mb`, calls below it, with 190014",
        &[
            "a_disk_that_is_nearly_full_refuses_files_and_calls_with_a_code",
            "files_are_refused_first_then_calls_and_both_come_back",
        ],
    ),
    (
        "a disk that others fill while calls are talking; a small disk that calls fill",
        "a reserve is given up for the ends of calls; nothing new begins until there is room, then all goes on by itself",
        &[
            "calls_that_have_begun_end_on_a_full_disk",
            "a_small_disk_that_calls_have_filled_goes_on_when_it_is_freed",
            "a_full_disk_refuses_calls_until_there_is_room_again",
        ],
    ),
    (
        "hours of many short spans with a validity of weeks; emergency numbers as backups",
        "hours are reckoned for two months at most, in one pass; emergency numbers, even permitted ones, are no backups",
        &[
            "nobody_waits_for_longer_than_two_months",
            "wrong_fields_are_refused_by_name_and_nothing_is_queued",
        ],
    ),
    (
        "one file replaced again and again; a small zip of large files; uploads without end",
        "`max_app_mb` and `max_account_mb` count what is on the disk, replaced and unswept files included; `uploads_per_hour`; 190015",
        &[
            "replaced_files_count_until_they_are_swept",
            "a_zip_file_is_refused_whole_if_its_files_exceed_the_quota",
            "uploads_in_an_hour_are_counted",
            "uploads_of_an_account_at_once_never_exceed_its_quota",
        ],
    ),
    (
        "1,500 silent ports as receivers; 100,000 callbacks due",
        "places by account, receiver and address; a look costs the same whatever waits",
        &[
            "silent_ports_of_one_account_do_not_delay_the_callback_of_another",
            "all_silent_ports_of_an_address_count_as_one_receiver",
            "a_hundred_thousand_due_callbacks_of_one_account_do_not_hide_the_one_of_another",
        ],
    ),
    (
        "eight dripping uploads",
        "two places for each account, and a least rate of bytes",
        &[
            "eight_dripping_uploads_of_an_account_leave_places_for_another",
            "an_upload_that_is_slower_than_the_least_rate_is_refused_with_the_rule",
        ],
    ),
    (
        "premium and emergency numbers behind an area code, or behind the country code without its plus",
        "every spelling of a number is one number to every rule",
        &[
            "one_number_is_one_to_every_rule_however_it_is_written",
            "emergency_and_premium_numbers_are_refused_in_every_spelling",
            "what_is_no_number_is_refused",
        ],
    ),
    (
        "one mobile called thirteen times at once by `-0` to `-12`",
        "caps and one call at a time count the number without its extension",
        &[
            "a_callee_who_has_had_the_calls_of_the_day_is_not_called_again",
            "extensions_are_no_way_around_the_cap_of_a_number_unless_it_is_a_switchboard",
        ],
    ),
    (
        "a call that waits for a number which is barred meanwhile",
        "not dialled; a server reads what has changed, not the whole list",
        &[
            "a_number_that_is_barred_while_its_call_waits_is_not_dialled",
            "only_what_has_changed_is_read",
        ],
    ),
    (
        "talks of an account that was suspended",
        "`clarion account suspend --hang-up` ends them",
        &["the_talks_of_a_suspended_account_end_where_the_operator_says_so"],
    ),
    (
        "3,000 silent SIP connections over TCP and TLS",
        "only addresses of trunks are accepted, 64 connections each, 512 in all, 30 s for the first message",
        &[
            "three_thousand_silent_connections_of_a_stranger_cost_nothing_and_a_call_goes_on",
            "a_peer_has_sixty_four_connections_and_says_something_on_each_or_loses_it",
            "nobody_listens_where_the_operator_has_chosen_no_port",
        ],
    ),
    (
        "28,000 OPTIONS a second of a stranger over UDP",
        "dropped in the receive buffer: no transaction, less than 1 MB",
        &["twenty_thousand_requests_of_a_stranger_make_no_transaction_and_a_call_goes_on"],
    ),
    (
        "a Contact or Record-Route to this machine, or to another transport",
        "the request goes to the trunk, by its transport",
        &["a_contact_or_route_to_where_the_trunk_is_not_leads_back_to_the_trunk"],
    ),
    (
        "sound of a stranger to a call with symmetric RTP; ports that can be guessed",
        "only the host of the description and of the SIP peer is believed; ports are drawn at random",
        &[
            "sound_follows_the_host_that_we_signal_with_and_no_stranger",
            "ports_come_in_no_order_and_each_once",
        ],
    ),
    (
        "sixty idle connections of one address, at a server with sixty places",
        "half of the places for one address; strangers give way after 3 s, the oldest first",
        &["idle_connections_of_strangers_keep_nobody_out"],
    ),
    (
        "plain HTTP on the port for TLS",
        "a 400 that can be read",
        &["plain_http_where_tls_is_spoken_gets_an_answer_that_can_be_read"],
    ),
    (
        "a receiver that sends 1xx answers without end",
        "128 KiB until its answer is there",
        &["provisional_answers_without_end_are_a_broken_answer"],
    ),
    (
        "guessing signatures",
        "one line of the log each, five a second of one address, which fail2ban reads",
        &[
            "wrong_signatures_are_logged_for_fail2ban_to_read",
            "a_flood_writes_few_lines_and_hides_no_other_address",
        ],
    ),
    (
        "asking again as soon as one is refused, without end",
        "beyond the limits of an account, and beyond fifty unauthenticated requests a second of an address, a refusal takes a second",
        &[
            "a_request_beyond_the_limits_is_refused_after_a_second",
            "a_flood_of_wrong_signatures_is_answered_slowly",
            "beyond_fifty_a_second_an_address_waits_and_no_other_does",
        ],
    ),
    (
        "another user of the machine reads prompts, or holds the lock file",
        "umask 077, private folders; `clarion check` names what is open",
        &[
            "nobody_else_reads_what_a_server_writes",
            "what_others_can_read_is_a_problem",
        ],
    ),
    (
        "`http.plain` without trusted proxies; missing audio files; broken pages",
        "`clarion check` finds them",
        &[
            "plain_http_without_a_trusted_proxy_is_a_problem",
            "audio_files_without_bytes_and_broken_pages_are_found",
        ],
    ),
    (
        "an empty `--allow-ips`, which opened the account",
        "refused: whoever wants that writes `none`",
        &["mistakes_are_named"],
    ),
    (
        "a change by an operator that nobody remembers",
        "an audit trail that is only added to",
        &[
            "every_change_by_the_command_line_is_noted_on_sqlite",
            "every_change_by_the_command_line_is_noted_on_postgres",
        ],
    ),
    (
        "a bill file that was changed on the disk",
        "checked by its hash before it is served, and made again",
        &["a_bill_file_is_checked_by_its_hash_before_it_is_served"],
    ),
    (
        "formulas in cells: behind LF, in full width, behind a separator",
        "a `'` before each, which can be undone exactly",
        &[
            "a_spreadsheet_gets_no_formula_and_python_reads_the_original_values",
            "what_is_written_reads_back",
        ],
    ),
    (
        "guessing passwords of the console, one after the other or at once",
        "five for a name and twenty of an address, counted before they are verified; two are verified at a time; an unknown name is answered alike",
        &[
            "a_name_is_locked_out_whatever_password_comes_then",
            "an_address_is_locked_out_and_let_in_again_after_a_while",
            "whoever_signs_in_is_not_locked_out_by_it",
        ],
    ),
    (
        "a change in the console by a stranger, a viewer, another site, or with the token of another sign-in",
        "every route of the table is tried by a test",
        &[
            "no_route_answers_who_is_not_signed_in",
            "a_viewer_sees_every_page_and_changes_nothing",
            "a_change_wants_the_token_of_its_own_sign_in_and_a_page_of_our_own",
        ],
    ),
    (
        "script, marks of direction and control characters in names, data and addresses that operators look at",
        "one escaper for every value of every page; nothing inline runs",
        &[
            "hostile_texts_are_shown_as_texts_on_every_page",
            "a_file_for_a_spreadsheet_has_no_formulas",
            "every_answer_tells_the_browser_to_trust_nothing_else",
        ],
    ),
];

#[test]
fn the_table_of_attacks_names_tests_that_exist() {
    let mut sources = String::new();
    for folder in ["crates", "bench"] {
        read_all(&root().join(folder), &mut sources);
    }
    let mut table = "| what was tried | what holds it off | test |\n|---|---|---|\n".to_owned();
    for (tried, bound, tests) in ATTACKS {
        for test in *tests {
            // A scenario of a contract is named once more, in its list.
            let exists = sources.contains(&format!("fn {test}("));
            assert!(exists, "there is no test {test}");
        }
        let tests: Vec<_> = tests.iter().map(|test| format!("`{test}`")).collect();
        writeln!(table, "| {tried} | {bound} | {} |", tests.join(", ")).unwrap();
    }
    check("docs/security.md", "attacks", &table);
}

fn read_all(folder: &Path, sources: &mut String) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            read_all(&path, sources);
        } else if path.extension().is_some_and(|kind| kind == "rs") {
            sources.push_str(&std::fs::read_to_string(&path).unwrap());
        }
    }
}
