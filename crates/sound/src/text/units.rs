//! Currencies and units that stand beside numbers.

/// Currencies by their sign or code. The small unit is said in English where it has a name people use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Currency {
    pub chinese: &'static str,
    /// One, and several.
    pub english: [&'static str; 2],
    pub english_small: Option<[&'static str; 2]>,
}

pub(super) const YUAN: Currency = Currency {
    chinese: "元",
    english: ["yuan", "yuan"],
    english_small: None,
};
const DOLLAR: Currency = Currency {
    chinese: "美元",
    english: ["dollar", "dollars"],
    english_small: Some(["cent", "cents"]),
};
const EURO: Currency = Currency {
    chinese: "欧元",
    english: ["euro", "euros"],
    english_small: Some(["cent", "cents"]),
};
const POUND: Currency = Currency {
    chinese: "英镑",
    english: ["pound", "pounds"],
    english_small: Some(["penny", "pence"]),
};
const HONG_KONG_DOLLAR: Currency = Currency {
    chinese: "港元",
    english: ["Hong Kong dollar", "Hong Kong dollars"],
    english_small: Some(["cent", "cents"]),
};

pub(super) fn currency(written: &str) -> Option<Currency> {
    Some(match written.to_ascii_uppercase().as_str() {
        "¥" | "RMB" | "CNY" => YUAN,
        "$" | "USD" | "US$" => DOLLAR,
        "€" | "EUR" => EURO,
        "£" | "GBP" => POUND,
        "HKD" | "HK$" => HONG_KONG_DOLLAR,
        _ => return None,
    })
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Unit {
    pub chinese: &'static str,
    pub english: [&'static str; 2],
}

/// Written, in Chinese, one in English, several in English.
const UNITS: [(&str, &str, &str, &str); 55] = [
    (
        "km/h",
        "公里每小时",
        "kilometer per hour",
        "kilometers per hour",
    ),
    ("km", "公里", "kilometer", "kilometers"),
    ("cm", "厘米", "centimeter", "centimeters"),
    ("mm", "毫米", "millimeter", "millimeters"),
    ("m", "米", "meter", "meters"),
    ("kg", "公斤", "kilogram", "kilograms"),
    ("mg", "毫克", "milligram", "milligrams"),
    ("g", "克", "gram", "grams"),
    ("ml", "毫升", "milliliter", "milliliters"),
    ("mL", "毫升", "milliliter", "milliliters"),
    ("L", "升", "liter", "liters"),
    ("kWh", "度", "kilowatt hour", "kilowatt hours"),
    ("kW", "千瓦", "kilowatt", "kilowatts"),
    ("W", "瓦", "watt", "watts"),
    ("V", "伏", "volt", "volts"),
    ("Hz", "赫兹", "hertz", "hertz"),
    ("kHz", "千赫", "kilohertz", "kilohertz"),
    ("MHz", "兆赫", "megahertz", "megahertz"),
    ("GHz", "吉赫", "gigahertz", "gigahertz"),
    ("KB", "千字节", "kilobyte", "kilobytes"),
    ("kB", "千字节", "kilobyte", "kilobytes"),
    ("KiB", "千字节", "kibibyte", "kibibytes"),
    ("Ki", "千字节", "kibibyte", "kibibytes"),
    ("MB", "兆", "megabyte", "megabytes"),
    ("MiB", "兆", "mebibyte", "mebibytes"),
    ("Mi", "兆", "mebibyte", "mebibytes"),
    ("GB", "吉字节", "gigabyte", "gigabytes"),
    ("GiB", "吉字节", "gibibyte", "gibibytes"),
    ("Gi", "吉字节", "gibibyte", "gibibytes"),
    ("TB", "太字节", "terabyte", "terabytes"),
    ("TiB", "太字节", "tebibyte", "tebibytes"),
    ("Ti", "太字节", "tebibyte", "tebibytes"),
    ("PB", "拍字节", "petabyte", "petabytes"),
    ("B/s", "字节每秒", "byte per second", "bytes per second"),
    (
        "KB/s",
        "千字节每秒",
        "kilobyte per second",
        "kilobytes per second",
    ),
    (
        "kB/s",
        "千字节每秒",
        "kilobyte per second",
        "kilobytes per second",
    ),
    (
        "MB/s",
        "兆字节每秒",
        "megabyte per second",
        "megabytes per second",
    ),
    (
        "MiB/s",
        "兆字节每秒",
        "mebibyte per second",
        "mebibytes per second",
    ),
    (
        "GB/s",
        "吉字节每秒",
        "gigabyte per second",
        "gigabytes per second",
    ),
    ("bps", "比特每秒", "bit per second", "bits per second"),
    (
        "kbps",
        "千比特每秒",
        "kilobit per second",
        "kilobits per second",
    ),
    (
        "Mbps",
        "兆比特每秒",
        "megabit per second",
        "megabits per second",
    ),
    (
        "Gbps",
        "吉比特每秒",
        "gigabit per second",
        "gigabits per second",
    ),
    (
        "req/s",
        "次请求每秒",
        "request per second",
        "requests per second",
    ),
    (
        "rps",
        "次请求每秒",
        "request per second",
        "requests per second",
    ),
    ("ms", "毫秒", "millisecond", "milliseconds"),
    ("us", "微秒", "microsecond", "microseconds"),
    ("s", "秒", "second", "seconds"),
    ("sec", "秒", "second", "seconds"),
    ("min", "分钟", "minute", "minutes"),
    ("h", "小时", "hour", "hours"),
    ("d", "天", "day", "days"),
    ("℃", "摄氏度", "degree Celsius", "degrees Celsius"),
    ("℉", "华氏度", "degree Fahrenheit", "degrees Fahrenheit"),
    ("°", "度", "degree", "degrees"),
];

/// What `m` means in a time such as `5m`.
pub(super) const MINUTE: Unit = Unit {
    chinese: "分钟",
    english: ["minute", "minutes"],
};

pub(super) fn unit(written: &str) -> Option<Unit> {
    let written = match written {
        "°C" => "℃",
        "°F" => "℉",
        other => other,
    };
    UNITS
        .iter()
        .find(|(name, ..)| *name == written)
        .map(|(_, chinese, one, several)| Unit {
            chinese,
            english: [one, several],
        })
}
