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
        "alerts of 4 MiB that drip, or that are a million empty ones",
        "those above 64 KiB have eight places, two of an account, and a least rate; a thousand alerts are kept and the others counted, off the threads that serve",
        &[
            "long_alerts_of_an_account_are_taken_two_at_a_time_and_short_ones_at_once",
            "an_alert_that_drips_is_refused_with_the_rule",
            "of_a_million_alerts_a_thousand_are_kept_and_the_firing_ones_counted",
            "whatever_is_no_text_is_passed_over_and_the_rest_is_read",
            "the_servers_memory_stays_bounded_under_attack",
        ],
    ),
    (
        "an incident with every alert, and never an end",
        "10,000 open ones of an intake, then 503; none below `min_free_mb`",
        &[
            "an_intake_has_ten_thousand_open_incidents_and_no_more",
            "a_new_incident_beyond_ten_thousand_open_ones_is_refused_and_comes_again",
            "an_alert_for_which_there_is_no_room_opens_no_incident_and_comes_again",
        ],
    ),
    (
        "a hundred filters of a long bill",
        "one of an account is made at a time, two in all; `max_filtered_files`, `max_filtered_mb`, and room on the disk first",
        &[
            "there_is_an_end_to_different_keywords_that_are_asked_for_at_once",
            "files_of_keywords_have_a_quota_of_their_account_and_want_room_on_the_disk",
        ],
    ),
    (
        "a text of a thousand clauses for the natural voice",
        "one process writes the phonemes of a phrase, however many clauses it has",
        &["a_text_of_a_thousand_clauses_is_written_by_one_process"],
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
        "prompts that fill the disk; a log that a full disk fills",
        "no prompt is kept below twice `min_free_mb`; one line when a disk becomes full and one when it is clearly free again; what fails meanwhile writes two lines a minute at last",
        &[
            "no_prompt_is_kept_on_a_disk_below_its_floor",
            "a_full_disk_is_one_line_of_the_log_and_a_free_one_another",
            "what_goes_on_for_an_hour_is_said_ever_more_seldom_and_counted",
        ],
    ),
    (
        "a disk that others fill while calls are talking; a small disk that calls fill",
        "a reserve is given up for what has begun, its last half for the ends and the progress of calls alone; nothing new begins until there is room, then all goes on by itself",
        &[
            "calls_that_have_begun_end_on_a_full_disk",
            "the_last_half_of_the_reserve_is_for_the_ends_of_calls",
            "what_is_no_end_of_a_call_leaves_the_last_half_of_the_reserve_alone",
            "what_waits_for_the_writer_while_the_disk_becomes_full_is_refused_then",
            "a_small_disk_that_calls_have_filled_goes_on_when_it_is_freed",
            "a_full_disk_refuses_calls_until_there_is_room_again",
            "calls_that_talk_while_the_disk_of_postgresql_is_full_end_once_and_none_is_lost",
        ],
    ),
    (
        "a quota of the file system that is used up",
        "counts as a full disk: calls are refused until there is room, those that have begun end in the reserve",
        &[
            "a_quota_that_is_used_up_is_a_full_disk",
            "calls_that_have_begun_end_when_a_quota_is_used_up",
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
        "a callee whose telephone says that the account is shut, that money is missing or that a password is wrong",
        "no code and no words put a trunk down by default: they count as refused numbers of their account, and only those of three accounts stop a trunk",
        &[
            "no_code_of_one_accounts_calls_stops_a_trunk_and_those_of_several_accounts_do",
            "words_about_a_shut_account_count_like_a_refused_number_because_a_callee_can_say_them_too",
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
        "a hundred downloads over HTTP/2 of which nobody reads a byte; a token of a bill that opens any number of compressed files",
        "sent as they are read, never held; 64 at once, four of an account, until their last byte is taken",
        &[
            "a_hundred_downloads_that_nobody_reads_take_little_memory_and_no_place_of_others",
            "a_token_of_a_bill_opens_only_so_many_downloads_at_once",
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
            "one_mobile_by_thirteen_extensions_is_one_call_at_a_time",
            "one_mobile_by_thirteen_extensions_is_one_call_at_a_time_on_postgres",
            "a_callee_who_has_had_the_calls_of_the_day_is_not_called_again",
            "a_callee_who_has_had_the_calls_of_the_day_is_not_called_again_on_postgres",
            "extensions_are_no_way_around_the_cap_of_a_number_unless_it_is_a_switchboard",
            "extensions_are_no_way_around_the_cap_of_a_switchboard_on_postgres",
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
        "only addresses of trunks are accepted, 64 connections each, 512 in all, 10 s for the handshake of TLS, 30 s for the first message, 300 s of silence",
        &[
            "three_thousand_silent_connections_of_a_stranger_cost_nothing_and_a_call_goes_on",
            "a_peer_has_sixty_four_connections_and_says_something_on_each_or_loses_it",
            "a_stranger_gets_no_handshake_and_a_peer_that_does_not_finish_it_holds_no_place_for_ever",
            "a_connection_on_which_nothing_more_comes_is_closed",
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
        "the request goes to the trunk, by its transport; to this machine only if the trunk is there",
        &[
            "a_call_leads_to_this_machine_only_if_its_trunk_is_there",
            "a_contact_or_route_to_where_the_trunk_is_not_leads_back_to_the_trunk",
            "a_contact_or_route_does_not_change_the_transport",
        ],
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
        "all places of the server taken by connections of customers, so that monitoring takes it for dead",
        "four places more for `http.metrics_networks`, and nobody waits behind those who wait for a place",
        &[
            "whoever_watches_is_answered_when_all_places_are_taken",
            "whoever_watches_has_places_that_no_other_takes",
        ],
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
        "guessing signatures, and tokens of bills",
        "one line of the log each, five a second of one address, which fail2ban reads; beyond fifty a second of an address, each is answered after a second",
        &[
            "wrong_signatures_are_logged_for_fail2ban_to_read",
            "a_flood_of_made_up_tokens_is_counted_and_answered_slowly",
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
        "telling accounts and intakes that exist from those that do not",
        "the same answer after the same work, not before 2 ms",
        &[
            "an_unknown_account_is_answered_as_a_wrong_sig_is",
            "an_unknown_token_is_refused_like_an_unknown_intake_and_counted",
        ],
    ),
    (
        "telling applications of other accounts from those that do not exist",
        "111181 for both, and both are remembered for half a second alike",
        &[
            "an_application_of_another_is_remembered_as_one_that_does_not_exist",
            "an_application_must_be_active_and_of_this_account",
            "bills.rs::what_is_wrong_with_a_request_has_its_code",
        ],
    ),
    (
        "a network of IPv6 that asks from 10,000 of its addresses",
        "a network /64 is one client to every limit",
        &[
            "a_network_of_ipv6_is_one_client_and_an_address_of_ipv4_another",
            "beyond_fifty_a_second_an_address_waits_and_no_other_does",
        ],
    ),
    (
        "events and silences to addresses of the own network",
        "the address policy of callbacks judges them too",
        &["events_and_silences_go_through_the_address_policy"],
    ),
    (
        "another user of the machine reads prompts, or holds the lock file",
        "umask 077, private folders; a start takes `data_dir` and the files of the database from others; `clarion check` names what is open",
        &[
            "nobody_else_reads_what_a_server_writes",
            "what_others_can_read_is_a_problem",
            "secrets_recordings_and_a_library_that_others_can_reach_are_problems",
        ],
    ),
    (
        "another user of the machine reads tokens in a list of processes",
        "tokens and secrets come from a file or standard input",
        &["a_secret_comes_from_a_file_or_from_standard_input"],
    ),
    (
        "one callee called again and again",
        "`dispatch.callee_caps = \"considerate\"`: 1 a minute, 5 an hour, 20 a day",
        &[
            "considerate_caps_are_one_a_minute_five_an_hour_and_twenty_a_day",
            "caps_for_callees_are_recommended_until_they_are_set",
            "a_callee_who_has_had_the_calls_of_the_day_is_not_called_again",
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
        &["an_empty_list_of_addresses_does_not_open_an_account"],
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
        "checked by its hash each time before it is served, whatever the file system says of it, and made again",
        &["a_bill_file_is_checked_by_its_hash_before_it_is_served"],
    ),
    (
        "formulas in cells: behind LF, in full width, behind a separator",
        "a `'` before each, which can be undone exactly",
        &[
            "a_spreadsheet_gets_no_formula_and_python_reads_the_original_values",
            "csv.rs::what_is_written_reads_back",
        ],
    ),
    (
        "guessing passwords of the console, one after the other or at once",
        "five for a name at one network and twenty of an address, counted before they are verified; two are verified at a time; an unknown name is answered alike",
        &[
            "a_name_is_locked_out_whatever_password_comes_then",
            "an_address_is_locked_out_and_let_in_again_after_a_while",
            "whoever_signs_in_is_not_locked_out_by_it",
            "a_stranger_does_not_keep_an_operator_out_who_is_elsewhere_and_many_strangers_are_bounded",
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
    let mut sources = Vec::new();
    for folder in ["crates", "bench"] {
        read_all(&root().join(folder), &mut sources);
    }
    let mut table = "| what was tried | what holds it off | test |\n|---|---|---|\n".to_owned();
    for (tried, bound, tests) in ATTACKS {
        for test in *tests {
            let files = files_of(test, &sources);
            assert_eq!(files.len(), 1, "{test} is a test of one file: {files:?}");
        }
        let tests: Vec<_> = tests.iter().map(|test| format!("`{test}`")).collect();
        writeln!(table, "| {tried} | {bound} | {} |", tests.join(", ")).unwrap();
    }
    check("docs/security.md", "attacks", &table);
}

/// Where there is such a test. One whose name stands in several files is written with its own: `file.rs::name`.
fn files_of<'a>(test: &str, sources: &'a [(String, String)]) -> Vec<&'a str> {
    let (file, name) = match test.split_once("::") {
        Some((file, name)) => (format!("/{file}"), name),
        None => (String::new(), test),
    };
    let of_file = sources.iter().filter(|(path, _)| path.ends_with(&file));
    let having = of_file.filter(|(_, source)| is_test(name, source));
    having.map(|(path, _)| path.as_str()).collect()
}

/// A function with the attribute of a test, or a scenario that a contract lists.
fn is_test(name: &str, source: &str) -> bool {
    let function = format!("fn {name}(");
    let Some(at) = source.find(&function) else {
        return false;
    };
    let mut before = source[..at].rsplit('\n');
    let own = before.next().unwrap_or_default().trim();
    let is_plain = matches!(own, "" | "async" | "pub" | "pub async");
    let attributes = before
        .map(str::trim)
        .take_while(|line| line.starts_with('#'));
    let has_attribute = attributes
        .into_iter()
        .any(|line| line.starts_with("#[test]") || line.starts_with("#[tokio::test"));
    let listed = source
        .split_once("contract! {")
        .and_then(|(_, rest)| rest.split_once('}'));
    let is_listed = listed.is_some_and(|(list, _)| {
        let mut names = list.split(',').map(str::trim);
        names.any(|listed| listed == name)
    });
    is_plain && (has_attribute || is_listed)
}

#[test]
fn a_test_is_told_from_what_only_has_its_name() {
    let source = "contract! {\n    a_listed_one,\n}\n#[test]\nfn a_test() {}\n\n#[tokio::test(flavor = \"x\")]\n#[ignore]\nasync fn another() {}\n\nfn a_helper() {}\nasync fn a_listed_one(database: Database) {}\n";
    for (name, wanted) in [
        ("a_test", true),
        ("another", true),
        ("a_listed_one", true),
        ("a_helper", false),
        ("nothing", false),
    ] {
        assert_eq!(is_test(name, source), wanted, "{name}");
    }
    let sources = ["x/a.rs", "x/b.rs"].map(|path| (path.to_owned(), source.to_owned()));
    assert_eq!(files_of("a_test", &sources).len(), 2);
    assert_eq!(files_of("b.rs::a_test", &sources), ["x/b.rs"]);
}

fn read_all(folder: &Path, sources: &mut Vec<(String, String)>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            read_all(&path, sources);
        } else if path.extension().is_some_and(|kind| kind == "rs") {
            let source = std::fs::read_to_string(&path).unwrap();
            sources.push((path.display().to_string(), source));
        }
    }
}
