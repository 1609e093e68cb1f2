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
const YEN: Currency = Currency {
    chinese: "日元",
    english: ["yen", "yen"],
    english_small: None,
};
const AUSTRALIAN_DOLLAR: Currency = Currency {
    chinese: "澳元",
    english: ["Australian dollar", "Australian dollars"],
    english_small: Some(["cent", "cents"]),
};
const SINGAPORE_DOLLAR: Currency = Currency {
    chinese: "新加坡元",
    english: ["Singapore dollar", "Singapore dollars"],
    english_small: Some(["cent", "cents"]),
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
        "JPY" => YEN,
        "AUD" => AUSTRALIAN_DOLLAR,
        "SGD" => SINGAPORE_DOLLAR,
        _ => return None,
    })
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Unit {
    /// Letters are said by the English voice, as people say them.
    pub chinese: &'static str,
    /// One, and several.
    pub english: [&'static str; 2],
}

/// Written, in Chinese, one in English, several in English.
type UnitRow = (&'static str, &'static str, &'static str, &'static str);

const UNITS: &[UnitRow] = &[
    (
        "km/h",
        "公里每小时",
        "kilometer per hour",
        "kilometers per hour",
    ),
    ("km", "公里", "kilometer", "kilometers"),
    ("cm", "厘米", "centimeter", "centimeters"),
    ("mm", "毫米", "millimeter", "millimeters"),
    ("μm", "微米", "micrometer", "micrometers"),
    ("m", "米", "meter", "meters"),
    ("m/s", "米每秒", "meter per second", "meters per second"),
    ("m²", "平方米", "square meter", "square meters"),
    ("㎡", "平方米", "square meter", "square meters"),
    ("km²", "平方公里", "square kilometer", "square kilometers"),
    ("m³", "立方米", "cubic meter", "cubic meters"),
    ("kg", "公斤", "kilogram", "kilograms"),
    ("mg", "毫克", "milligram", "milligrams"),
    ("g", "克", "gram", "grams"),
    ("t", "吨", "ton", "tons"),
    (
        "μg/m³",
        "微克每立方米",
        "microgram per cubic meter",
        "micrograms per cubic meter",
    ),
    (
        "mg/m³",
        "毫克每立方米",
        "milligram per cubic meter",
        "milligrams per cubic meter",
    ),
    (
        "mg/L",
        "毫克每升",
        "milligram per liter",
        "milligrams per liter",
    ),
    ("ppm", "P P M", "part per million", "parts per million"),
    ("ml", "毫升", "milliliter", "milliliters"),
    ("mL", "毫升", "milliliter", "milliliters"),
    ("L", "升", "liter", "liters"),
    ("kWh", "度", "kilowatt hour", "kilowatt hours"),
    ("MW", "兆瓦", "megawatt", "megawatts"),
    ("kW", "千瓦", "kilowatt", "kilowatts"),
    ("W", "瓦", "watt", "watts"),
    ("kV", "千伏", "kilovolt", "kilovolts"),
    ("V", "伏", "volt", "volts"),
    ("mA", "毫安", "milliampere", "milliamperes"),
    ("Ω", "欧姆", "ohm", "ohms"),
    ("Hz", "赫兹", "hertz", "hertz"),
    ("kHz", "千赫兹", "kilohertz", "kilohertz"),
    ("MHz", "兆赫兹", "megahertz", "megahertz"),
    ("GHz", "吉赫兹", "gigahertz", "gigahertz"),
    ("dB", "分贝", "decibel", "decibels"),
    ("dBm", "分贝毫瓦", "decibel milliwatt", "decibel milliwatts"),
    ("Pa", "帕", "pascal", "pascals"),
    ("hPa", "百帕", "hectopascal", "hectopascals"),
    ("kPa", "千帕", "kilopascal", "kilopascals"),
    ("MPa", "兆帕", "megapascal", "megapascals"),
    (
        "rpm",
        "转每分钟",
        "revolution per minute",
        "revolutions per minute",
    ),
    ("KB", "K", "kilobyte", "kilobytes"),
    ("kB", "K", "kilobyte", "kilobytes"),
    ("KiB", "K", "kibibyte", "kibibytes"),
    ("Ki", "K", "kibibyte", "kibibytes"),
    ("MB", "兆", "megabyte", "megabytes"),
    ("GB", "G", "gigabyte", "gigabytes"),
    ("TB", "T", "terabyte", "terabytes"),
    ("PB", "P", "petabyte", "petabytes"),
    ("MiB", "兆", "mebibyte", "mebibytes"),
    ("Mi", "兆", "mebibyte", "mebibytes"),
    ("GiB", "G", "gibibyte", "gibibytes"),
    ("Gi", "G", "gibibyte", "gibibytes"),
    ("TiB", "T", "tebibyte", "tebibytes"),
    ("Ti", "T", "tebibyte", "tebibytes"),
    ("B/s", "字节每秒", "byte per second", "bytes per second"),
    (
        "KB/s",
        "K每秒",
        "kilobyte per second",
        "kilobytes per second",
    ),
    (
        "kB/s",
        "K每秒",
        "kilobyte per second",
        "kilobytes per second",
    ),
    (
        "MB/s",
        "兆每秒",
        "megabyte per second",
        "megabytes per second",
    ),
    (
        "MiB/s",
        "兆每秒",
        "mebibyte per second",
        "mebibytes per second",
    ),
    (
        "GB/s",
        "G每秒",
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
        "Kbps",
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
        "G比特每秒",
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
    ("μs", "微秒", "microsecond", "microseconds"),
    ("us", "微秒", "microsecond", "microseconds"),
    ("ms", "毫秒", "millisecond", "milliseconds"),
    ("s", "秒", "second", "seconds"),
    ("sec", "秒", "second", "seconds"),
    ("min", "分钟", "minute", "minutes"),
    ("mins", "分钟", "minute", "minutes"),
    ("h", "小时", "hour", "hours"),
    ("hr", "小时", "hour", "hours"),
    ("hrs", "小时", "hour", "hours"),
    ("d", "天", "day", "days"),
    ("℃", "摄氏度", "degree Celsius", "degrees Celsius"),
    ("℉", "华氏度", "degree Fahrenheit", "degrees Fahrenheit"),
    ("°", "度", "degree", "degrees"),
];

/// Letters that mean too much else where a blank stands before them.
const ONLY_ATTACHED: [&str; 8] = ["s", "d", "t", "us", "Ki", "Mi", "Gi", "Ti"];

/// The unit that is written so, with or without a blank before it.
pub(super) fn unit(written: &str, is_attached: bool) -> Option<Unit> {
    let written = match written {
        "°C" => "℃",
        "°F" => "℉",
        other => other,
    };
    if !is_attached && ONLY_ATTACHED.contains(&written) {
        return None;
    }
    UNITS
        .iter()
        .find(|(name, ..)| *name == written)
        .map(|(_, chinese, one, several)| Unit {
            chinese,
            english: [one, several],
        })
}

/// The unit of one part of a length of time such as `1d2h30m5s`, where m is a minute.
pub(super) fn part_of_time(letter: char) -> Option<Unit> {
    let name = match letter {
        'd' => "d",
        'h' => "h",
        'm' => "min",
        's' => "s",
        _ => return None,
    };
    unit(name, true)
}
