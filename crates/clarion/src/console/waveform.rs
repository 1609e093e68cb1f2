//! A sound as a picture: how loud it is over time.

use std::fmt::Write;

/// Columns of the picture; each shows the loudest of its samples.
const COLUMNS: usize = 300;
/// Quieter than this the line is drawn at least, so that silence is seen too.
const LEAST: f64 = 0.01;

/// The accent of the style sheet, which an image does not see: on light paper, and on dark.
const ACCENT: &str = "#1f5fbf";
const ACCENT_ON_DARK: &str = "#7db2ff";

/// An SVG of its own: browsers show it as an image.
pub fn draw(samples: &[i16], on_dark: bool) -> String {
    let colour = if on_dark { ACCENT_ON_DARK } else { ACCENT };
    let each = samples.len().div_ceil(COLUMNS).max(1);
    let mut path = String::new();
    for (column, part) in samples.chunks(each).enumerate() {
        let loudest = part.iter().map(|sample| sample.unsigned_abs()).max();
        let height = (f64::from(loudest.unwrap_or(0)) / f64::from(i16::MAX)).clamp(LEAST, 1.0);
        let (top, bottom) = (20.0 - 19.0 * height, 20.0 + 19.0 * height);
        // Writing into a string does not fail.
        let _ = write!(path, "M{column}.5 {top:.1}V{bottom:.1}");
    }
    let width = samples.len().div_ceil(each).max(1);
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} 40\" preserveAspectRatio=\"none\"><path d=\"{path}\" stroke=\"{colour}\" stroke-width=\"0.8\" fill=\"none\"/></svg>"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loud_and_quiet_are_seen() {
        let mut samples = vec![0; 8000];
        samples[4000..].fill(i16::MAX);
        let drawn = draw(&samples, false);
        assert!(drawn.contains("M0.5 19.8V20.2"), "{drawn}");
        assert!(
            drawn.contains("M299.5 1.0V39.0") || drawn.contains("M296.5 1.0V39.0"),
            "{drawn}"
        );
        assert!(draw(&[], false).starts_with("<svg"));
        assert!(draw(&[i16::MIN], true).contains("M0.5 1.0V39.0"));
    }
    #[test]
    fn it_has_the_accent_of_the_pages() {
        let sheet = include_str!("../../assets/console/console.css");
        let accents: Vec<_> = sheet.split("--accent: ").skip(1).collect();
        let [light, dark] = [ACCENT, ACCENT_ON_DARK].map(|colour| format!("{colour};"));
        assert_eq!(accents.len(), 2);
        assert!(accents[0].starts_with(&light) && accents[1].starts_with(&dark));
    }
}
