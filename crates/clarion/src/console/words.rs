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
    nav_intakes: "Intakes", "告警接入";
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
    signed_out: "You are signed out, so nothing here changes any more.", "您已退出登录，页面不再更新。";
    stale: "There is no news at the moment; what you see may be out of date.", "暂时无法更新，页面内容可能不是最新的。";

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
    refused_conflict: "It cannot be done now: {why}", "现在无法执行：{why}";
    refused_failed: "The database did not answer as it should. Try again in a moment.", "数据库没有正常应答，请稍后重试。";
    back_to_now: "Back to the overview", "返回实时概览";

    // Now.
    now_title: "Now", "实时概览";
    hand_title: "What needs a hand", "需要处理";
    hand_nothing: "Nothing. Calls are dialled, trunks answer, callbacks are delivered.", "没有。外呼、中继和回调均正常。";
    hand_stopped: "Dialling is stopped. Calls wait until somebody resumes it on the page Dialling.", "已停止外呼，呼叫都在排队；可在“外呼控制”页恢复。";
    hand_not_ready: "This node is not ready: {why}.", "本节点未就绪：{why}。";
    not_ready_stopping: "it is stopping", "正在停止";
    not_ready_tasks: "a task is down ({names})", "内部任务已停止（{names}）";
    not_ready_clock: "its clock is too far from that of the database", "系统时间与数据库相差过大";
    not_ready_prompts: "messages cannot be made here", "无法生成语音";
    not_ready_quality: "packets of sound leave too late", "语音包发送延迟过大";
    not_ready_disk: "a disk has too little room", "磁盘空间不足";
    not_ready_write: "the database takes no writes", "数据库无法写入";
    hand_elsewhere: "Node {nodes}: ", "节点 {nodes}：";
    hand_no_trunk: "There is no trunk, so nothing can be dialled. Add a [[trunk]] to the settings.", "没有配置中继，无法外呼。请在配置文件中添加 [[trunk]]。";
    hand_trunk: "Trunk {trunk} carries no calls: {state}.", "中继 {trunk} 不可用：{state}。";
    hand_node: "Node {node} is gone. The other nodes have taken over its calls; start it again, or it leaves this list after a while.", "节点 {node} 失联，其呼叫已由其他节点接管；请重新启动该节点，否则稍后会从列表中移除。";
    hand_given_up: "{n} callbacks for calls of the last 24 hours were given up. Send them again on the page Callbacks.", "最近 24 小时有 {n} 个回调已放弃，可在“回调”页重新发送。";
    hand_closed: "Calls that are due wait until a trunk opens: every trunk is outside its hours.", "有呼叫已到时间，但所有中继都不在服务时段，需等中继开放。";
    hand_queue: "A call has been due for {time} and is not dialled yet.", "有呼叫已到拨打时间 {time}，仍未拨出。";
    hand_callbacks: "The oldest callback has waited for {time}: its receiver does not take it.", "最早的回调已等待 {time}，接收方未成功接收。";
    figure_waiting: "Waiting", "排队中";
    figure_oldest: "the oldest for {time}", "最久 {time}";
    figure_later: "{n} for a later time or a busy callee", "{n} 个未到时间或在等被叫空闲";
    figure_line: "On the line", "进行中";
    figure_line_note: "on all nodes", "所有节点合计";
    figure_rate: "Accepted in the last minute", "最近一分钟受理";
    figure_rate_of: "{n} a second", "每秒 {n} 个";
    figure_packets: "Packets that left late", "迟发语音包";
    figure_packets_of: "of {n} in the last {time}, at this node", "本节点最近 {time}内共 {n} 个";
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
    disk_database: "the database", "数据库";
    disk_audio: "audio files", "语音文件";
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
    outcome_machine: "answering machine", "答录机接听";

    // One call.
    call_title: "Call {sid}", "呼叫 {sid}";
    call_notification: "voice notification", "语音通知";
    call_verification: "voice code", "语音验证码";
    call_notice: "notice with several attempts", "多次尝试的通知";
    call_caller: "Caller shown", "主叫显号";
    call_reason: "Reason", "原因";
    call_request: "Name of the request", "请求标识";
    call_priority: "Priority", "优先级";
    call_valid_until: "Dialled until", "最晚拨出";
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
    story_heard: "heard", "线路识别";
    heard_human: "a person", "真人接听";
    heard_machine: "an answering machine", "答录机接听";
    heard_unknown: "not known who", "接听者未知";
    heard_busy: "busy tone", "忙音";
    heard_congestion: "congestion tone", "拥塞音";
    heard_dial: "dial tone", "拨号音";
    heard_special: "tones before an announcement", "通知前的提示音";
    heard_fax: "fax", "传真";
    heard_announcement: "announcement", "语音通知";
    heard_after: "after {seconds} s", "用时 {seconds} 秒";
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
    hung_up_played: "everything was played", "已播放完毕";
    hung_up_playback_failed: "the sound could not be sent any more", "无法继续发送语音";
    hung_up_longest_talk: "it had talked for as long as it may", "已达最长通话时间";
    hung_up_held_too_long: "it was held for too long", "被保持过久";
    hung_up_vanished: "the far end had vanished", "对端已消失";
    hung_up_asked: "it was cancelled, or the server stopped", "已取消，或服务器停止";
    hung_up_machine: "a machine had answered", "由答录机应答";
    hung_up_tone: "the network said by a tone that there is nobody", "网络以提示音表示无人";
    hung_up_bad_answer: "the answer made no sense", "应答无效";
    hung_up_no_answer: "it had rung for as long as it may", "已达最长振铃时间";
    hung_up_no_progress: "nothing rang in time", "未及时振铃";
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

    // Forms.
    form_save: "Save", "保存";
    form_remove: "Remove", "删除";
    form_search: "Search", "查找";
    rule_whole: "That cannot be done: {why}.", "无法完成：{why}。";
    rule_form: "{field}: {why}.", "“{field}”填写有误：{why}。";
    rule_between: "{field} must be a whole number from {least} to {most}.", "“{field}”应为 {least} 到 {most} 之间的整数。";
    rule_unknown: "There is no setting {field}.", "没有设置项“{field}”。";
    rule_choice: "{field}: choose one of those that are offered.", "“{field}”只能从选项中选择。";
    rule_empty: "{field} has nothing between its commas. Leave the field empty to remove the list.", "“{field}”的逗号之间没有内容；要清空列表，请将该项留空。";
    done_saved: "Saved. The servers follow within a second.", "已保存，一秒内生效。";
    done_unchanged: "Nothing was changed: it was so before.", "没有改动：与原来相同。";
    done_suspended: "The account is suspended: its requests are refused, and what waits is not dialled.", "账户已停用：新请求会被拒绝，排队中的呼叫不再外呼。";
    done_suspended_hung_up: "The account is suspended, and its calls are being hung up.", "账户已停用，正在挂断其所有通话。";
    done_resumed: "The account is active again.", "账户已恢复使用。";
    done_app_added: "The application is added. Its requests are taken from now on.", "应用已添加，可以开始使用。";
    done_rate_set: "The rate counts for calls from now on.", "费率已保存，对此后的呼叫生效。";
    done_rate_removed: "The rate is removed: a shorter prefix, or the rates of the settings, count again.", "费率已删除：改按更短的前缀或配置文件中的费率计费。";
    done_list_added: "The list is added.", "号码列表已添加。";
    done_list_set: "The list is saved. Notices under way follow from their next attempt on.", "号码列表已保存，进行中的通知从下一次尝试起按新列表呼叫。";
    done_list_removed: "The list is removed.", "号码列表已删除。";
    done_number_added: "The number is not called from now on.", "该号码已加入名单，不再呼叫。";
    done_number_removed: "The number may be called again.", "该号码已移出名单，可以再次呼叫。";
    done_imported: "All numbers are on the list.", "全部号码均已在名单中。";

    // Accounts.
    accounts_title: "Accounts", "账户";
    accounts_find: "Name or sid", "名称或 sid";
    accounts_more: "The first {n} are shown; look for a part of the name.", "只显示前 {n} 个，可按名称查找。";
    accounts_none: "There is no account yet. Add the first one below; then add an application to it.", "还没有账户。请先在下方添加账户，再为它添加应用。";
    accounts_none_viewer: "There is no account yet. An admin can add one.", "还没有账户，可由管理员添加。";
    accounts_none_found: "No account has this in its name or sid. Search for less of it.", "没有名称或 sid 与之匹配的账户，请缩短搜索内容再试。";
    accounts_add: "Add an account", "添加账户";
    accounts_brought: "Keep the sid and token of another platform", "沿用原平台的 sid 和令牌";
    account_name: "Name", "名称";
    account_name_hint: "What operators call it; requests do not have it.", "仅供操作员识别，不出现在接口中。";
    account_sid: "Account sid", "账户 sid";
    account_sid_hint: "32 letters or digits. Left empty: a new one.", "32 位字母或数字，留空则自动生成。";
    account_token: "Auth token", "鉴权令牌（Auth Token）";
    account_token_hint: "32 letters or digits. Left empty: a random one.", "32 位字母或数字，留空则随机生成。";
    account_state: "State", "状态";
    account_created: "Created", "创建时间";
    account_updated: "Changed", "修改时间";
    account_active: "active", "正常";
    account_not_activated: "not activated", "未激活";
    account_suspended: "suspended", "已停用";
    account_closed: "closed", "已注销";
    account_added: "The account is added", "账户已添加";
    account_rotated: "The account has a new token", "令牌已更换";
    account_calls: "Calls", "通话记录";
    account_changes: "Changes", "操作日志";
    secret_once: "Copy it now: it is shown on this page only, and nobody can look it up later.", "请立即复制保存：令牌或密钥只在本页显示一次，之后无法再查看。";
    secret_onward: "I have copied it", "已复制，继续";
    account_actions: "Access", "访问控制";
    account_suspend: "Suspend", "停用账户";
    account_suspend_text: "Its requests are refused, and its calls that wait are not dialled, until it is resumed.", "停用后拒绝该账户的全部请求，排队中的呼叫也不再外呼，直到恢复使用。";
    account_hang_up: "Hang up its calls that ring or talk, too", "同时挂断正在振铃和通话中的呼叫";
    account_resume: "Resume", "恢复使用";
    app_rotated: "The callbacks have a new secret", "回调签名密钥已更换";
    app_rotate: "New callback secret", "更换回调签名密钥";
    app_rotate_text: "Callbacks are signed with a new random secret, shown once; the old one is used no more within a second. A receiver that does not know the new one yet refuses callbacks: they are sent again.", "生成新的随机密钥，只显示一次，一秒内启用。接收方换上新密钥之前会拒收回调，平台会按计划重发。";
    account_rotate: "New token", "更换令牌";
    account_rotate_text: "The account gets a random token, shown once. The present one stops working within a second: whoever uses it must be given the new one.", "生成新的随机令牌，只显示一次。旧令牌一秒内失效，请及时通知使用方更换。";
    account_settings: "Settings", "账户设置";
    money_spent: "Spent", "累计消费";
    money_reserved: "Reserved for calls under way", "进行中呼叫的预留金额";

    // Settings of accounts and applications.
    setting_on: "on", "开启";
    setting_off: "off", "关闭";
    setting_none: "none", "无";
    setting_default: "the platform’s default", "平台默认";
    setting_is_set: "set, and shown to nobody", "已设置（不显示）";
    group_account: "Account", "基本信息";
    group_app: "Application", "基本信息";
    group_permissions: "Permissions", "权限";
    group_limits: "Limits", "限额";
    group_hours: "Hours", "呼叫时段";
    group_money: "Money", "资金";
    group_callbacks: "Callbacks", "回调";
    group_bills: "Bills", "话单";
    set_name: "Name", "名称";
    set_state: "State", "状态";
    set_account_state_hint: "Only an active account may request calls.", "只有状态正常的账户才能发起呼叫。";
    set_app_state_hint: "Only an active application may request calls.", "只有状态正常的应用才能发起呼叫。";
    set_bill_download: "Download of bills", "话单下载";
    set_bill_download_hint: "Whether the account may download its bills.", "是否允许该账户下载话单。";
    set_custom_display: "Choice of the caller number", "自定义主叫显号";
    set_custom_display_hint: "Whether requests may choose the number that is shown.", "请求中是否可以指定主叫显号。";
    set_display_numbers: "Caller numbers", "可用主叫号码";
    set_display_numbers_hint: "Those that may be shown, with commas between them: +864001234567,+86400*. Empty: none.", "允许显示的号码，用英文逗号分隔，例如 +864001234567,+86400*；留空表示没有。";
    set_allow_ips: "Addresses of requests", "IP 白名单";
    set_allow_ips_hint: "Addresses or networks, with commas between them: 192.0.2.7,198.51.100.0/24. Empty: any.", "IP 或网段，用英文逗号分隔，例如 192.0.2.7,198.51.100.0/24；留空表示不限制。";
    set_requests_second: "Requests per second", "每秒请求数";
    set_requests_once: "Requests at once", "并发请求数";
    set_calls_second: "Calls per second", "每秒呼叫数";
    set_calls_once: "Calls at once", "并发呼叫数";
    set_limit_default: "Empty: the platform’s default.", "留空则使用平台默认值。";
    set_limit_beside: "It counts beside the limit of the account. Empty: only that.", "与账户的限额同时生效；留空则只受账户限额约束。";
    set_hours: "Calls are made", "允许呼叫的时段";
    set_hours_hint: "Days and times, such as 1-5 0800-2100;6-7 1000-1800 (1 is Monday). Empty: at any time.", "星期和时间，例如 1-5 0800-2100;6-7 1000-1800（1 为星期一）；留空表示不限时段。";
    set_urgent: "Urgent calls at any time", "紧急呼叫不受时段限制";
    set_urgent_hint: "Whether calls of priority 1 are made outside these hours.", "优先级为 1 的呼叫是否可以在时段之外外呼。";
    set_balance: "Balance", "余额";
    set_balance_hint: "Prepaid, such as 100.00. Empty: no balance is kept.", "预付费余额，例如 100.00；留空表示不管理余额。";
    set_spending: "Spending limit", "消费上限";
    set_spending_hint: "What may be spent in all, such as 500.00. Empty: no limit.", "累计消费的上限，例如 500.00；留空表示不限制。";
    set_secret: "Callback secret", "回调签名密钥";
    set_secret_hint: "It begins with whsec_. Left empty, it stays as it is; “none” removes it.", "以 whsec_ 开头；留空保持不变，填 none 则取消签名。";
    set_voice: "Voice", "发音人";
    set_voice_hint: "Name of the voice that speaks its texts. Empty: the first voice of the language.", "朗读文本的发音人名称；留空则使用该语言的第一个发音人。";
    set_bill_key: "Name of the address in bill answers", "话单地址的 JSON 字段名";
    set_bill_key_hint: "For clients that know only one spelling.", "供只识别其中一种写法的客户端使用。";

    // Rates.
    rates_title: "Rates", "费率";
    rates_empty: "The account has no rates of its own: those of the settings count ([rates]).", "该账户没有单独的费率，按配置文件中的 [rates] 计费。";
    rates_set: "Set a rate", "设置费率";
    rate_prefix: "Prefix", "号码前缀";
    rate_prefix_hint: "+86138, or * for all numbers; the longest one that fits counts.", "例如 +86138，* 表示所有号码；按最长匹配计费。";
    rate_price: "Price of a unit", "单价";
    rate_price_hint: "Such as 0.055. A unit that has begun counts as whole.", "例如 0.055，不足一个计费单元按一个计算。";
    rate_unit: "Seconds of a unit", "计费单元（秒）";
    rate_unanswered: "Price when nobody answers", "未接通单价";

    // Applications.
    apps_title: "Applications", "应用";
    apps_empty: "An account without an application cannot request calls.", "没有应用的账户无法发起呼叫，请先添加应用。";
    apps_add: "Add an application", "添加应用";
    app_name_hint: "What operators call it.", "仅供操作员识别。";
    app_signs: "Sign its callbacks with a new secret, shown once", "生成回调签名密钥（只显示一次）";
    app_id: "appId", "appId";
    app_created: "Created", "创建时间";
    app_disabled: "disabled", "已禁用";
    app_deleted: "deleted", "已删除";
    app_added: "The application is added", "应用已添加";
    app_settings: "Settings", "设置";

    // Lists.
    lists_title: "Lists of numbers", "号码列表";
    lists_text: "A notice calls who is on a list by its name, such as @night in backupTo, in this order.", "通知可在 backupTo 中用列表名（例如 @night）引用号码列表，按顺序呼叫。";
    lists_empty: "There is no list yet. An admin adds one on this page; requests then name it in backupTo, as @name.", "还没有号码列表。管理员可在本页新建，请求在 backupTo 中以 @名称 引用。";
    lists_add: "Add a list", "添加号码列表";
    list_name: "Name of the list", "列表名";
    list_name_hint: "Up to 32 letters, digits, - or _; requests write @ before it.", "最多 32 位字母、数字、- 或 _，请求中前面加 @。";
    list_numbers: "Numbers", "号码";
    list_numbers_hint: "One a line, in the order of their turns, 1 to 20; a name may follow: 13800000000=Li Wei", "每行一个，按呼叫顺序排列，1 到 20 个；可在号码后写姓名：13800000000=李伟";
    list_place: "Turn", "顺序";
    list_person: "Person", "姓名";
    list_changed: "changed", "修改于";
    list_edit: "Change {name}", "修改 {name}";

    // Do not call.
    unwanted_title: "Do not call", "免打扰名单";
    unwanted_text: "The account calls none of these numbers: a request is refused, and a call that waits is not dialled.", "该账户不会呼叫名单中的号码：请求会被拒绝，排队中的呼叫也不再外呼。";
    unwanted_empty: "No number is on the list. A callee who presses the stop key of a request (stopDtmf) is added, and admins add numbers here.", "名单为空。被叫按下请求设定的拒接键（stopDtmf）后自动加入，管理员也可在本页添加。";
    unwanted_number: "Number", "号码";
    unwanted_number_hint: "Without an extension.", "不含分机号。";
    unwanted_since: "Since", "加入时间";
    unwanted_by: "By", "来源";
    unwanted_by_operator: "an operator", "操作员";
    unwanted_by_import: "an import", "批量导入";
    unwanted_by_callee: "the callee, by a key", "被叫按键退订";
    unwanted_found: "{number} is on the list.", "{number} 在名单中。";
    unwanted_not_found: "{number} is not on the list.", "{number} 不在名单中。";
    unwanted_all: "Whole list", "查看全部";
    unwanted_first: "First page", "首页";
    unwanted_next: "Next page", "下一页";
    unwanted_add: "Add a number", "添加号码";
    unwanted_import: "Add many", "批量导入";
    unwanted_numbers: "Numbers", "号码列表";
    unwanted_import_hint: "One a line, about 3,000 at a time. For a whole file: clarion do-not-call import", "每行一个号码，一次最多约 3000 个；更大的文件请用 clarion do-not-call import 导入。";
    unwanted_import_wrong: "{added} added, {known} there already; {wrong} lines have no number for the list:", "新增 {added} 个，已存在 {known} 个；{wrong} 行不是有效号码：";
    unwanted_line: "Line {n}: {why}.", "第 {n} 行：{why}。";
    unwanted_export: "Download the list", "导出名单";
    call_event: "Event", "事件";
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
    callbacks_bad: "Something in the address of this page is not understood, so it does not narrow the list.", "地址中有无法识别的筛选条件，未按其筛选。";
    callbacks_name_one: "Name a receiver or an application: callbacks of all of them are not sent again together.", "请填写接收方或应用，不能对全部接收方一起重发。";
    callbacks_resent: "{n} callbacks are due now.", "已重新排入 {n} 条回调。";
    callbacks_resent_some: "{n} callbacks are due now. That was only a part: there may be more.", "已重新排入 {n} 条回调。后面可能还有，本次只处理了一部分。";
    callbacks_go_on: "Go on from there", "接着重发";
    callbacks_each: "Every callback", "回调明细";
    callbacks_owed: "Owed", "产生时间";
    callbacks_tries: "Attempts", "发送次数";
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
    sound_sent: "The message, as a callee hears it", "语音内容（电话音质）";
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
    waiting: "Working …", "处理中…";
    nav_dialling: "Dialling", "外呼控制";
    dialling_title: "Dialling", "外呼控制";
    dialling_goes_on: "Calls are dialled as they become due.", "外呼正常进行。";
    dialling_stopped: "Dialling is stopped on all nodes. Calls are accepted and wait.", "所有节点均已停止外呼；请求照常受理，呼叫在队列中等待。";
    dialling_stop: "Stop dialling", "停止外呼";
    dialling_resume: "Resume dialling", "恢复外呼";
    dialling_note: "Calls in progress go on. What waits longer than it may expires.", "进行中的通话不受影响；等待超过有效期的呼叫会过期。";
    dialling_is_stopped: "Dialling is stopped.", "已停止外呼。";
    dialling_is_resumed: "Calls are dialled again.", "已恢复外呼。";
    barred_title: "Barred numbers", "禁呼号码";
    barred_note: "Nobody may call them, whatever the account. A call that waits for such a number is not dialled.", "任何账户都不能呼叫这些号码；已在排队的呼叫也不会拨出。";
    barred_empty: "No number is barred. What an admin bars here is called for no account.", "没有禁呼号码。管理员在本页添加后，任何账户都不会再呼叫该号码。";
    barred_none_found: "No barred number has these digits.", "没有包含这些数字的禁呼号码。";
    barred_more: "The first {n}. Search for others.", "仅显示前 {n} 个，其余请搜索。";
    barred_add: "Bar a number", "添加禁呼号码";
    barred_is_added: "The number is barred.", "该号码已禁呼。";
    barred_is_removed: "The number may be called again.", "该号码已解除禁呼。";
    trunk_test: "Test call", "测试呼叫";
    trunk_test_note: "Calls a number over one trunk alone and plays the test file. The call is recorded and billed for the application like any other.", "仅经所选中继呼叫一个号码并播放测试语音，通话照常留下记录并计入该应用的话单。";
    trunk_test_number: "Number", "被叫号码";
    trunk_test_app: "Application", "应用";
    trunk_test_do: "Call it", "呼叫";
    trunk_history: "How it has fared since this node started", "本节点启动以来的状态变化";
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

    // Intakes.
    intakes_title: "Intakes", "告警接入";
    intakes_text: "An intake is an address with a token of its own, at which a monitoring tool brings alerts. Clarion calls the people that it names until somebody confirms.", "每个接入点有独立的地址和令牌，供监控系统推送告警。Clarion 依次呼叫其中的号码，直到有人确认。";
    intakes_empty: "There is no intake yet. An admin adds one on this page; the monitoring then sends its alerts to the address.", "还没有接入点。管理员可在本页新建，再把地址填到监控系统中。";
    intakes_add: "Add an intake", "添加接入点";
    intake_name: "Name", "名称";
    intake_name_hint: "Letters, digits, - or _. It stands in the address.", "字母、数字、- 或 _，会出现在地址中。";
    intake_format: "Format", "格式";
    intake_format_hint: "Whose alerts it understands.", "接收哪种监控系统的告警。";
    intake_added: "The intake is there", "接入点已添加";
    intake_rotated: "The intake has a new token", "接入点已换发新令牌";
    intake_path: "Address on this server", "地址路径";
    intake_token: "Token", "令牌";
    intake_rotate_text: "The old token stops working at once. The tool sends alerts in vain until it has the new one.", "旧令牌立即失效，监控系统改用新令牌之前推送的告警都会被拒绝。";
    intake_remove_text: "Alerts to it are refused from then on, and its incidents are forgotten. Calls under way go on.", "删除后推送到这里的告警都会被拒绝，未关闭的事件一并清除；正在进行的呼叫不受影响。";
    intake_preview: "What an alert would come to", "告警效果预览";
    intake_preview_button: "Preview", "预览";
    intake_payload: "An alert to try", "测试用的告警内容";
    intake_payload_hint: "The body that the tool sends. Empty: a sample of the format.", "监控系统推送的请求体；留空则使用该格式的示例。";
    intake_says: "It says", "播报内容";
    intake_says_nothing: "Nothing: the incident is over, or nobody needs to know.", "不播报：事件已恢复，或无需通知。";
    intake_calls: "It calls", "呼叫对象";
    intake_template_failed: "The template failed, so a plain sentence is said:", "模板出错，已改用简单播报：";
    intake_not_called: "Those whom the alert names may not be called:", "告警中指定的号码不允许呼叫：";
    intake_test: "Call with a sample", "用示例告警试呼";
    intake_test_text: "The people of this intake are called now, as if such an alert had come.", "立即呼叫该接入点的号码，如同收到了一条示例告警。";
    intake_incidents: "Open incidents", "未关闭的事件";
    intake_incidents_empty: "None is open.", "没有未关闭的事件。";
    incident_key: "Incident", "事件";
    incident_opened: "Opened", "开始";
    incident_seen: "Last alert", "最近一次告警";
    incident_notices: "Notices", "通知次数";
    done_intake_removed: "The intake is removed.", "接入点已删除。";
    group_said: "What is said", "播报内容";
    group_called: "Who is called", "呼叫对象";
    group_incidents: "Incidents", "事件";
    group_silence: "Silence in Alertmanager", "Alertmanager 静默";
    group_plan: "Plan: fields of LandingCall", "呼叫方式（LandingCall 字段）";
    language_chinese: "Chinese", "中文";
    language_english: "English", "英文";
    set_text: "Template", "模板";
    set_text_hint: "Left empty: the usual one, with what, where, how bad and since when. It is tried before it is saved.", "留空使用默认模板：内容、位置、级别、开始时间。保存前会先试运行。";
    set_language: "Language of the usual template", "默认模板的语言";
    set_language_hint: "Without a choice, that of the alert.", "不选则按告警内容判断。";
    set_intake_to: "Whom to call", "呼叫对象";
    set_intake_to_hint: "Numbers and lists of the account, in the order of their turns, with commas: @night,13800000001", "号码或账户名单，按呼叫顺序用逗号分隔，如 @night,13800000001";
    set_allow_numbers: "Numbers that an alert may name", "告警可指定的号码";
    set_allow_numbers_hint: "Patterns with commas, such as +8613800000001,+86139*", "用逗号分隔，如 +8613800000001,+86139*";
    set_to_label: "Label that names whom to call", "指定呼叫对象的标签";
    set_to_label_hint: "Its value is a list of the account, or a number that alerts may name.", "标签值为账户名单，或允许告警指定的号码。";
    set_new_alerts: "An alert that joins calls again", "新告警加入时再次呼叫";
    set_new_alerts_hint: "Also where somebody knows about the group already.", "即使该组告警已有人确认。";
    set_skip_recoveries: "Texts that say Up call nobody", "恢复消息不呼叫";
    set_skip_recoveries_hint: "For smseagle; they close the incident.", "用于 smseagle 格式，收到后关闭事件。";
    set_close_after: "Minutes until an incident closes", "事件自动关闭（分钟）";
    set_close_after_hint: "Counted from its last alert.", "从最近一次告警算起。";
    set_networks_hint: "Where alerts may come from, with commas. Left empty: from anywhere.", "允许推送告警的地址或网段，用逗号分隔；留空不限。";
    set_silence_key: "Key for a silence", "静默键";
    set_silence_key_hint: "Whoever confirms with it silences the group in Alertmanager. The call says so.", "被叫按此键确认的同时在 Alertmanager 中静默该组告警，通话中会提示。";
    set_silence_url: "Address of Alertmanager", "Alertmanager 地址";
    set_silence_url_hint: "Scheme, host and port, as Prometheus knows it. It must be public or in callbacks.allowed_networks.", "协议、主机和端口，与 Prometheus 中的配置相同；须为公网地址或在 callbacks.allowed_networks 中。";
    set_silence_minutes: "Minutes of a silence, at most 240", "静默时长（分钟，最多 240）";

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
    settings_hidden: "(hidden)", "（已隐藏）";

    // Health.
    health_title: "Health", "体检";
    health_about: "What clarion check finds on this node at this moment. Nothing is changed by it.", "在本节点上执行 clarion check 的结果，不会修改任何内容。";
    health_again: "Examine again", "重新检查";
    health_running: "The node is being examined …", "正在检查…";
    health_examined: "Examined", "检查于";
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
    const THE_SAME: [&str; 7] = [
        "app_id",
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
