//! Who is called with a number, and what they see.

use super::number_pattern::matches_any;
use super::numbering_plan::NumberingPlan;
use super::phone_number::PhoneNumber;

impl NumberingPlan {
    /// The number that somebody sees when they are called: the one that may be shown, or else the platform's. Nobody sees their own: then it is that of the
    /// trunk.
    pub fn caller(&self, shown: Option<String>, called: &PhoneNumber) -> Option<String> {
        let is_another = |digits: &String| digits != called.digits();
        let default = || self.default_caller.clone().filter(is_another);
        shown.filter(is_another).or_else(default)
    }

    /// Who is called, for caps and for one call at a time: the number without its extension, or one line of a switchboard.
    pub fn callee(&self, number: &PhoneNumber) -> String {
        let digits = number.digits();
        match number.extension() {
            Some(extension) if matches_any(&self.switchboards, digits) => {
                format!("{digits}-{}", self.line(extension))
            }
            _ => digits.to_owned(),
        }
    }

    /// The same line for the same extension always, and different ones for extensions in a row.
    fn line(&self, extension: &str) -> u64 {
        let number = extension.bytes().fold(0_u64, |number, key| {
            number.wrapping_mul(10).wrapping_add(u64::from(key))
        });
        number % u64::from(self.switchboard_lines.max(1))
    }
}
