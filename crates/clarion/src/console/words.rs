//! Every text of the console, in both languages side by side. A text that is missing in one of them, or that no page uses, does not compile.
//!
//! `{name}` in a text is filled in by `fill`.

macro_rules! words {
    ($($key:ident: $english:literal, $chinese:literal;)+) => {
        #[derive(Debug)]
        pub struct Words { $(pub $key: &'static str),+ }

        pub static ENGLISH: Words = Words { $($key: $english),+ };
        pub static CHINESE: Words = Words { $($key: $chinese),+ };

        #[cfg(test)]
        const ALL: &[(&str, &str, &str)] = &[$((stringify!($key), $english, $chinese)),+];
    };
}

/// Puts values into the places of a text.
pub fn fill(text: &str, values: &[(&str, &str)]) -> String {
    let (mut filled, mut rest) = (String::with_capacity(text.len()), text);
    while let Some((before, after)) = rest.split_once('{')
        && let Some((name, after)) = after.split_once('}')
    {
        filled.push_str(before);
        let value = values.iter().find(|(known, _)| *known == name);
        filled.push_str(value.map_or("", |(_, value)| value));
        rest = after;
    }
    filled.push_str(rest);
    filled
}

words! {
    // Every page.
    console: "Clarion console", "Clarion 控制台";
    skip: "Skip to the content", "跳到正文";
    menu: "Main menu", "主菜单";
    nav_now: "Now", "实时";
    nav_calls: "Calls", "通话";
    nav_callbacks: "Callbacks", "回调";
    nav_accounts: "Accounts", "账户";
    nav_audio: "Audio", "语音文件";
    nav_trunks: "Trunks", "中继";
    nav_bills: "Bills", "话单";
    nav_try_it: "Try it", "试呼";
    nav_health: "Health", "体检";
    nav_settings: "Settings", "配置";
    nav_audit: "Audit", "操作日志";
    other_language: "中文", "English";
    signed_in_as: "Signed in as", "当前操作员";
    role_viewer: "viewer", "只读";
    role_admin: "admin", "管理员";
    sign_out: "Sign out", "退出登录";
    zone: "All times are in {zone} (UTC{offset}).", "页面时间均为 {zone}（UTC{offset}）。";
    seconds_ago: "{n} s ago", "{n} 秒前";
    minutes_ago: "{n} min ago", "{n} 分钟前";
    hours_ago: "{n} h ago", "{n} 小时前";
    days_ago: "{n} d ago", "{n} 天前";
    seconds: "{n} s", "{n} 秒";
    minutes: "{n} min", "{n} 分钟";
    hours: "{n} h", "{n} 小时";
    days: "{n} d", "{n} 天";
    soon: "in a moment", "即将";
    stale: "The connection is lost; what you see may be out of date.", "连接已断开，页面内容可能不是最新的。";

    // Sign in.
    sign_in: "Sign in", "登录";
    sign_in_name: "Name", "用户名";
    sign_in_password: "Password", "密码";
    sign_in_wrong: "Name or password is wrong.", "用户名或密码不正确。";
    sign_in_locked: "Too many wrong passwords. Try again in {time}.", "密码输错次数过多，请在 {time}后重试。";
    sign_in_busy: "Too many people are signing in. Try again in a moment.", "登录请求过多，请稍后再试。";
    nobody_title: "No operator yet", "还没有操作员";
    nobody_text: "The console shows nothing until somebody may see it. On the server, add an operator; the password is shown once.", "添加操作员之前，控制台不显示任何数据。请在服务器上执行下面的命令，密码只显示一次。";
    nobody_then: "Then load this page again.", "然后刷新本页。";

    // Refusals.
    refused_title: "That did not work", "操作未完成";
    refused_not_signed_in: "Sign in first.", "请先登录。";
    refused_not_allowed: "Your role may look at this and not change it. Ask an admin.", "当前角色只能查看，不能修改。如需操作，请联系管理员。";
    refused_token: "This form is out of date. Go back, load the page again, and repeat it.", "表单已失效。请返回并刷新页面后重试。";
    refused_origin: "The request did not come from this console.", "该请求不是从本控制台发出的。";
    refused_form: "The form could not be read.", "无法读取提交的表单。";
    refused_not_found: "There is nothing at this address. It may have been removed, or mistyped.", "这里没有内容：可能已被清理，或地址有误。";
    refused_busy: "Too many of these are open. Close one, and try again.", "同时打开得太多了，请关闭一些后重试。";
    refused_too_large: "That is larger than the server takes, or the upload broke off.", "文件超过上限，或上传中断。";
    refused_conflict: "It cannot be done now:", "现在无法执行：";
    refused_failed: "The database did not answer as it should. Try again in a moment.", "数据库没有正常应答，请稍后重试。";
    back_to_now: "Back to the overview", "返回实时概览";

    // Now.
    now_title: "Now", "实时概览";
    hand_title: "What needs a hand", "需要处理";
    hand_nothing: "Nothing. Calls are dialled, trunks answer, callbacks are delivered.", "没有。外呼、中继和回调均正常。";
    hand_stopped: "Dialling is stopped. Calls wait until somebody resumes it: clarion call resume", "已停止外呼，呼叫都在排队；执行 clarion call resume 恢复。";
    hand_not_ready: "This node is not ready: {why}.", "本节点未就绪：{why}。";
    hand_no_trunk: "There is no trunk, so nothing can be dialled. Add a [[trunk]] to the settings.", "没有配置中继，无法外呼。请在配置文件中添加 [[trunk]]。";
    hand_trunk: "Trunk {trunk} carries no calls: {state}.", "中继 {trunk} 不可用：{state}。";
    hand_queue: "The oldest call has waited for {time}.", "最早的呼叫已排队 {time}。";
    hand_callbacks: "The oldest callback has waited for {time}: its receiver does not take it.", "最早的回调已等待 {time}，接收方未成功接收。";
    figure_waiting: "Waiting", "排队中";
    figure_oldest: "the oldest for {time}", "最久 {time}";
    figure_line: "On the line", "进行中";
    figure_line_note: "on all nodes", "所有节点合计";
    figure_packets: "Packets that left late", "迟发语音包";
    figure_packets_of: "of {n} since this node started", "本节点启动以来共 {n} 个";
    hand_disk: "Disk “{disk}” has only {free} left. Below its floor, calls are refused.", "磁盘（{disk}）仅剩 {free}，低于下限后将拒绝新呼叫。";
    hand_late: "More than one packet in a hundred leaves late: this node has too much to do, and callees may hear gaps.", "超过百分之一的语音包迟发：本节点负载过高，被叫听到的声音可能断续。";
    figure_callbacks: "Callbacks waiting", "待送达回调";
    figure_none: "none waits", "无积压";
    trunks_title: "Trunks", "中继";
    trunk_name: "Trunk", "中继";
    trunk_state: "State", "状态";
    trunk_calls: "Calls", "当前呼叫";
    trunk_channels: "Channels", "并发上限";
    trunk_up: "up", "正常";
    trunk_drained: "drained", "已排空";
    trunk_closed: "outside its hours", "不在服务时段";
    trunk_failing: "failing", "连续失败";
    trunk_down: "down", "不通";
    trunk_down_why: "down: {why}", "不通：{why}";
    queue_title: "Queue by account", "各账户排队情况";
    queue_oldest: "Oldest for", "最久等待";
    nodes_title: "Nodes", "节点";
    node_name: "Node", "节点";
    node_state: "State", "状态";
    node_since: "Without a gap since", "连续在线自";
    node_heartbeat: "Last heartbeat", "最近心跳";
    node_alive: "alive", "在线";
    node_gone: "gone", "失联";
    disks_title: "Disks of this node", "本节点磁盘";
    disk_name: "For", "用途";
    disk_free: "Free", "剩余";
    disk_floor: "Calls are refused below", "拒绝呼叫的下限";
    disk_state: "State", "状态";
    disk_enough: "enough", "充足";
    disk_scarce: "scarce", "偏低";
    disk_full: "full", "不足";
    live_title: "Calls under way", "进行中的呼叫";
    live_empty: "No call waits or is under way.", "没有排队或进行中的呼叫。";
    live_empty_next: "See the calls before", "查看通话记录";
    live_more: "The newest {n} are shown.", "只显示最新的 {n} 条。";

    // Calls.
    calls_title: "Calls", "通话记录";
    calls_filter: "Filter", "筛选";
    calls_account: "Account", "账户";
    calls_account_hint: "account sid", "账户 sid";
    calls_app: "Application", "应用";
    calls_app_hint: "application id", "应用 id";
    calls_number: "Number called", "被叫号码";
    calls_from: "Accepted from", "受理时间起";
    calls_to: "until", "止";
    calls_trunk: "Trunk", "中继";
    calls_caller: "Caller shown", "主叫显号";
    calls_user_data: "userData contains", "userData 包含";
    calls_more_filters: "More filters", "更多条件";
    calls_searched: "Calls were searched back to {sid}.", "已查到 {sid} 为止。";
    calls_further: "Search further", "继续往前查";
    calls_which: "Which calls", "范围";
    calls_all: "all", "全部";
    calls_alive: "not ended", "未结束";
    calls_find: "callSid", "callSid";
    calls_find_hint: "opens that call", "直接打开该呼叫";
    calls_apply: "Show", "查询";
    calls_clear: "Clear", "清除条件";
    calls_export: "Download CSV", "导出 CSV";
    calls_newer: "Newest", "最新";
    calls_older: "Older", "更早";
    calls_empty: "No calls here.", "没有符合条件的呼叫。";
    calls_empty_next: "A call appears as soon as an application requests it: docs/api.md, or try: clarion call place", "应用发起请求后呼叫就会出现：参见 docs/api.md，或执行 clarion call place 试一试。";
    calls_bad_account: "An account sid has 32 letters or digits.", "账户 sid 应为 32 位字母或数字。";
    calls_bad_app: "An application id has 32 letters or digits.", "应用 id 应为 32 位字母或数字。";
    calls_bad_number: "That cannot be a number: {why}", "号码有误：{why}";
    calls_bad_time: "Write a time as 2026-11-15T08:00.", "时间格式应为 2026-11-15T08:00。";
    calls_bad_which: "There is no such state and no such outcome.", "没有这种状态或结果。";
    calls_bad_sid: "A callSid has 32 letters or digits.", "callSid 应为 32 位字母或数字。";
    column_time: "Accepted", "受理时间";
    column_to: "To", "被叫";
    column_state: "State", "状态";
    column_outcome: "Outcome", "结果";
    column_account: "Account", "账户";
    column_app: "Application", "应用";
    column_trunk: "Trunk", "中继";
    column_talk: "Talk", "通话时长";
    column_sid: "callSid", "callSid";

    // States and outcomes.
    state_queued: "waiting", "排队中";
    state_claimed: "preparing", "准备中";
    state_dialling: "dialling", "呼叫中";
    state_ringing: "ringing", "振铃中";
    state_answered: "talking", "通话中";
    state_ended: "ended", "已结束";
    outcome_talked: "talked", "已接通";
    outcome_not_answered: "not answered", "无人接听";
    outcome_busy: "busy", "占线";
    outcome_declined: "declined", "拒接";
    outcome_cancelled: "cancelled", "已取消";
    outcome_no_route: "no route", "无路由";
    outcome_trunk_failure: "trunk failure", "中继故障";
    outcome_invalid_number: "invalid number", "空号";
    outcome_expired: "expired", "排队超时";
    outcome_interrupted: "interrupted", "意外中断";
    outcome_prompt_failed: "prompt failed", "语音合成失败";
    outcome_confirmed: "confirmed", "已按键确认";
    outcome_unconfirmed: "not confirmed", "未按键确认";
    outcome_stopped: "wants no more calls", "拒绝再次来电";

    // One call.
    call_title: "Call {sid}", "呼叫 {sid}";
    call_notification: "voice notification", "语音通知";
    call_verification: "voice code", "语音验证码";
    call_notice: "notice with several attempts", "多次尝试的通知";
    call_caller: "Caller shown", "主叫显号";
    call_reason: "Reason", "原因";
    call_cancel: "Cancel", "取消呼叫";
    call_hang_up: "Hang up", "挂断";
    call_cancelled: "The call is being ended.", "正在结束该呼叫。";
    call_resent: "The callback is due now; it is sent within a second.", "回调已重新排入，马上发送。";
    call_over_already: "The call had ended already.", "该呼叫此前已结束。";
    story_title: "What happened", "呼叫过程";
    story_accepted: "accepted", "受理请求";
    story_waits: "waits", "等待";
    story_waits_until: "until {time}", "至 {time}";
    story_dialling: "dialled", "发起呼叫";
    story_over: "{to} over {trunk}", "{to}，经由 {trunk}";
    story_ringing: "ringing", "开始振铃";
    story_answered: "answered", "接听";
    story_key: "key pressed", "按键";
    story_played: "message", "播放内容";
    story_played_of: "{played} s of {whole} s played", "已播放 {played} 秒，全长 {whole} 秒";
    story_refused: "refused", "被拒绝";
    story_refused_by: "{trunk}: {said}", "{trunk}：{said}";
    story_no_answer: "no answer", "无应答";
    story_hung_up: "hung up", "挂机";
    story_by_us: "by us", "我方挂机";
    story_by_them: "by the callee", "对方挂机";
    story_by_unknown: "unknown by whom: the server was lost", "挂机方未知：服务器曾中断";
    story_attempt: "attempt {n}", "第 {n} 次尝试";
    story_attempt_over: "attempt over", "本次尝试结束";
    story_next: "next attempt", "下一次尝试";
    story_redial: "the same number again", "重拨同一号码";
    story_tries_used: "the number has had its tries", "该号码次数已用完，换下一个号码";
    story_no_reason: "no reason to try that number again", "该号码无需重拨，换下一个号码";
    story_turn_over: "the next number has its turn", "轮到下一个号码";
    story_gave_way: "the number may not be called now", "该号码暂不可呼叫，换下一个号码";
    story_ended: "ended", "呼叫结束";
    story_callback_owed: "callback owed", "待发送回调";
    story_callback_delivered: "callback delivered", "回调已送达";
    story_callback_failed: "callback not delivered yet", "回调尚未送达";
    story_callback_given_up: "callback given up", "回调已放弃";
    story_to: "to {host}", "接收方 {host}";
    story_again: "to {host}; again at {time}", "接收方 {host}，{time} 重试";
    quality_title: "Sound", "媒体质量";
    quality_empty: "No sound was sent: nobody answered.", "未发送语音：没有接通。";
    quality_leg: "Leg", "呼叫腿";
    quality_codec: "Codec", "编码";
    quality_sent: "Packets sent", "发包";
    quality_late: "late", "迟发";
    quality_received: "Received", "收包";
    quality_lost: "lost", "丢包";
    quality_jitter: "Jitter", "抖动";
    quality_worst: "{ms} ms, {worst} ms at worst", "{ms} 毫秒，最大 {worst} 毫秒";
    quality_trip: "Round trip", "往返时延";
    quality_ms: "{ms} ms", "{ms} 毫秒";
    callback_title: "Callback", "状态回调";
    callback_empty: "The request named no respUrl, or the call has not ended.", "请求未携带 respUrl，或呼叫尚未结束。";
    callback_to: "Receiver", "接收地址";
    callback_state: "State", "状态";
    callback_waiting: "waiting", "等待发送";
    callback_delivering: "being delivered", "发送中";
    callback_delivered: "delivered", "已送达";
    callback_given_up: "given up", "已放弃";
    callback_superseded: "superseded", "已被后续回调取代";
    callback_body: "What it says", "回调内容";
    callback_attempts: "Attempts", "发送记录";
    callback_time: "Time", "时间";
    callback_verdict: "Result", "结果";
    callback_status: "HTTP", "HTTP";
    callback_took: "Took", "耗时";
    callback_answer: "Answer", "应答";
    callback_resend: "Send again", "重新发送";
    verdict_delivered: "delivered", "已送达";
    verdict_refused: "refused", "接收方拒绝";
    verdict_bad_status: "HTTP error", "HTTP 状态异常";
    verdict_timed_out: "timed out", "超时";
    verdict_unreachable: "unreachable", "无法连接";
    verdict_broken: "broken off", "连接中断";
    verdict_tls_failed: "TLS failed", "TLS 握手失败";
    verdict_blocked: "address not allowed", "地址不允许";
    bill_title: "Bill", "话单";
    bill_empty: "A line is written when an attempt ends.", "每次尝试结束后生成话单。";
    bill_order: "orderId", "orderId";
    bill_seconds: "Seconds", "秒数";
    bill_units: "Units", "计费单元";
    bill_rate: "Rate", "费率";
    bill_fee: "Fee", "费用";
    bill_data: "userData", "userData";
    ladder_title: "SIP messages", "SIP 信令";
    ladder_empty: "No messages of this call are in the memory of this node: they are too old, another node has them, or sip_trace_mb is 0.", "本节点内存中没有该呼叫的信令：可能已被覆盖、在其他节点上，或 sip_trace_mb 为 0。";
    ladder_picture: "Ladder of {n} SIP messages between Clarion and {peers}", "Clarion 与 {peers} 之间的 {n} 条 SIP 信令";
    ladder_sent: "sent", "发出";
    ladder_received: "received", "收到";

    call_again: "Call again", "再次呼叫";
    call_placed: "A new call was placed with the same request.", "已按原请求发起新的呼叫。";

    // Callbacks.
    callbacks_title: "Callbacks", "回调";
    callbacks_receivers: "Who is owed callbacks, those that fail first", "待送达的接收方（失败的在前）";
    callbacks_none_waits: "No callback waits: everybody has been told.", "没有积压的回调，均已送达。";
    callbacks_kind: "Kind", "类型";
    callbacks_final: "results", "结果通知";
    callbacks_events: "events", "状态事件";
    callbacks_failures: "Failures in a row", "连续失败";
    callbacks_last: "Last attempt", "最近一次";
    callbacks_again: "Send many again", "批量重发";
    callbacks_again_about: "Everything that a receiver or an application has missed since a moment. Receivers may get a callback twice; its webhook id stays the same.", "重新发送某接收方或某应用自某时刻起漏收的回调。接收方可能重复收到，webhook id 不变。";
    callbacks_since: "Calls accepted since", "受理时间不早于";
    callbacks_which: "Those that were", "范围";
    callbacks_name_one: "Name a receiver or an application: callbacks of all of them are not sent again together.", "请填写接收方或应用，不能对全部接收方一起重发。";
    callbacks_resent: "{n} callbacks are due now.", "已重新排入 {n} 条回调。";
    callbacks_resent_some: "{n} callbacks are due now. There are more: send again to go on.", "已重新排入 {n} 条回调，还有更多，请再次点击继续。";
    callbacks_each: "Every callback", "回调明细";
    callbacks_owed: "Owed", "产生时间";
    callbacks_next: "Next attempt", "下次发送";
    callbacks_empty: "No callbacks here. One is owed when a call ends whose request named a respUrl.", "没有符合条件的回调。请求携带 respUrl 的呼叫结束后会产生回调。";
    actions: "Actions", "操作";

    // Audio.
    audio_title: "Audio files", "语音文件";
    audio_owner: "Files of", "归属";
    audio_platform: "the platform: every application may play them", "平台（所有应用可用）";
    audio_name: "Name", "文件名";
    audio_length: "Length", "时长";
    audio_bytes: "Bytes", "字节数";
    audio_added: "Added", "上传时间";
    audio_listen: "As the callee hears it", "试听（电话音质）";
    audio_empty: "There are no files here.", "还没有语音文件。";
    audio_empty_next: "Upload a WAV file, or a zip of them; requests then name it in mediaName.", "上传 WAV 文件或其 zip 包后，请求即可在 mediaName 中引用。";
    audio_upload: "Upload", "上传";
    audio_choose: "WAV files, or zip files of them", "WAV 文件，或包含 WAV 的 zip";
    audio_remove: "Remove", "删除";
    audio_is_added: "The files were added.", "文件已上传。";
    audio_is_removed: "The file was removed. Calls that were accepted before still play it.", "文件已删除。此前受理的呼叫仍会播放它。";
    audio_none_chosen: "Choose a file first.", "请先选择文件。";
    sound_sent: "What the callee hears", "播放内容";
    sound_secret: "A voice code is not told again, also not to operators.", "验证码内容不会再次播放，操作员也不例外。";
    sound_download: "Download WAV", "下载 WAV";

    // Trunks.
    trunk_rate: "Calls a second", "每秒呼叫";
    trunk_host: "Host", "地址";
    trunk_prefixes: "Carries", "承载号段";
    trunk_priority: "Priority", "优先级";
    trunk_all_numbers: "all numbers", "全部号码";
    trunk_loopback: "test telephone in this process", "本机测试话机";
    trunk_drain: "Drain", "排空";
    trunk_open: "Use again", "恢复使用";
    trunk_note: "A drained trunk gets no new calls on any node; those in progress finish. States are those of this node.", "排空后，所有节点都不再向该中继发起新呼叫，进行中的通话不受影响。状态为本节点所见。";
    trunk_calls_link: "Calls over it", "查看其通话";
    trunk_is_drained: "The trunk gets no more calls.", "该中继不再承接新呼叫。";
    trunk_is_open: "The trunk is used again.", "该中继已恢复使用。";

    // Bills.
    bills_title: "Bills", "话单";
    bills_empty: "No day has been closed yet. Days close by themselves after midnight in the platform's zone; until then clarion bill export shows the lines of today.", "还没有已结账的日期。每天零点（平台时区）后自动结账；当天的话单可用 clarion bill export 导出。";
    bills_day: "Day", "日期";
    bills_lines: "Lines", "话单数";
    bills_files: "Files", "文件";
    bills_closed: "Closed", "结账时间";
    bills_day_title: "Bill of {day}", "{day} 话单";
    bills_by_account: "By account", "按账户";
    bills_day_empty: "Nobody was billed on this day.", "当天没有产生话单。";
    bills_no_files: "There are no files of this day.", "当天没有话单文件。";
    bills_bytes: "Bytes", "字节数";
    bills_made: "Made", "生成时间";
    bills_verify: "Verify", "核对";
    bills_verified: "All is right: {lines} lines, {fee} in all, as files and calls have it.", "核对一致：共 {lines} 条，合计 {fee}，与文件及呼叫记录相符。";
    bills_faults: "Files, lines and calls do not agree:", "文件、话单与呼叫记录不一致：";
    bills_without_file: "{app} has lines but no file", "{app} 有话单但没有文件";
    bills_calls_differ: "{without} calls have no line, {differing} differ from theirs", "{without} 个呼叫没有话单，{differing} 个呼叫与话单不符";
    bills_back: "All days", "返回日期列表";

    // Try it.
    try_title: "Try it", "试呼";
    try_about: "Fill in a request as an application would send it. See it as JSON, XML and curl, or place the call and watch it.", "像应用那样填写一次请求，查看它的 JSON、XML 和 curl 写法，或直接发起呼叫并观看过程。";
    try_no_app: "No application may call yet. Add an account and an application first.", "还没有可用的应用，请先添加账户和应用。";
    try_app: "The application that asks.", "发起请求的应用。";
    try_more: "More fields", "更多字段";
    try_show: "Show the request", "查看请求";
    try_call: "Call", "呼叫";
    try_request: "The request", "请求内容";
    try_requested: "The call was accepted. What happens appears below.", "呼叫已受理，过程如下。";

    // Settings.
    settings_title: "Settings", "配置";
    settings_about: "As this node has read them when it started: defaults, then the file, then the environment. Secrets are hidden.", "本节点启动时读取的配置，依次为默认值、配置文件、环境变量。密码等敏感内容已隐藏。";
    settings_all: "All settings", "全部配置";
    settings_changed: "Only what differs from the default", "只看与默认值不同的";
    settings_empty: "Nothing differs from the defaults.", "全部为默认值。";
    settings_key: "Setting", "配置项";
    settings_value: "Value", "当前值";
    settings_default: "Default", "默认值";
    settings_meaning: "Meaning", "说明";

    // Health.
    health_title: "Health", "体检";
    health_about: "What clarion check finds on this node at this moment. Nothing is changed by it.", "在本节点上执行 clarion check 的结果，不会修改任何内容。";
    health_ready: "This node is ready.", "本节点已就绪。";
    health_not_ready: "This node is not ready:", "本节点未就绪：";
    health_level: "Level", "级别";
    health_subject: "What", "检查项";
    health_found: "Found", "结果";
    level_ok: "ok", "正常";
    level_warning: "warning", "警告";
    level_problem: "problem", "故障";

    // Audit.
    audit_title: "Audit trail", "操作日志";
    audit_about: "Contains", "包含";
    audit_about_hint: "a command, an account, a number", "命令、账户或号码";
    audit_when: "Time", "时间";
    audit_who: "Who", "操作者";
    audit_from: "From", "来源";
    audit_what: "What", "内容";
    audit_failed: "not done, or not all of it: {why}", "未完成或未全部完成：{why}";
    audit_empty: "Nothing was changed that fits.", "没有符合条件的记录。";
    audit_empty_next: "Every change by a command or in this console is noted here.", "通过命令行或控制台所做的每次修改都会记录在这里。";
    audit_limit: "The newest {n} are shown; name what you look for.", "只显示最新的 {n} 条，可输入关键字缩小范围。";
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn places(text: &str) -> BTreeSet<&str> {
        let parts = text.split('{').skip(1);
        parts.filter_map(|part| part.split('}').next()).collect()
    }

    /// What has no words, or words that Chinese engineers write in English too.
    const THE_SAME: [&str; 6] = [
        "calls_find",
        "column_sid",
        "callback_status",
        "bill_order",
        "bill_data",
        "story_refused_by",
    ];

    #[test]
    fn both_languages_say_everything() {
        for (key, english, chinese) in ALL {
            assert!(!english.is_empty() && !chinese.is_empty(), "{key}");
            assert_eq!(places(english), places(chinese), "{key}");
            let is_chinese = chinese
                .chars()
                .any(|c| ('\u{4e00}'..='\u{9fff}').contains(&c));
            let is_the_same = THE_SAME.contains(key);
            assert!(
                is_chinese || is_the_same || *key == "other_language",
                "{key}"
            );
        }
    }

    #[test]
    fn places_of_a_text_are_filled() {
        let values = [("a", "1"), ("b", "{a}")];
        assert_eq!(fill("x {a} y {b} z {c}", &values), "x 1 y {a} z ");
        assert_eq!(fill("no place { here", &values), "no place { here");
    }
}
