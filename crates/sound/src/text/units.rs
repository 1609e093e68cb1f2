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
const UNITS: [(&str, &str, &str, &str); 21] = [
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
    ("MB", "兆", "megabyte", "megabytes"),
    ("min", "分钟", "minute", "minutes"),
    ("h", "小时", "hour", "hours"),
    ("℃", "摄氏度", "degree Celsius", "degrees Celsius"),
    ("℉", "华氏度", "degree Fahrenheit", "degrees Fahrenheit"),
    ("°", "度", "degree", "degrees"),
];

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
