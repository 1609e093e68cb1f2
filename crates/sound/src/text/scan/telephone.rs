//! Telephone numbers that are written in groups, and other groups of digits.

use super::Scan;
use crate::text::expression::Expression;
use crate::text::numerals::DigitGroups;

impl Scan<'_> {
    /// Digits in groups with dashes: `010-52823298`, `400-810-1234`, `138-0013-8000`; with blanks: `138 0013 8000`.
    pub(super) fn telephone(&mut self) -> Option<Expression> {
        self.spaced().or_else(|| self.dashed())
    }

    fn spaced(&mut self) -> Option<Expression> {
        let (groups, length) = self.groups(' ', 3);
        let sizes: Vec<_> = groups.iter().map(String::len).collect();
        let first = groups[0].as_str();
        let is_number = match sizes.as_slice() {
            [3, 4, 4] => first.starts_with('1') || first.starts_with('0'),
            [3, 3, 4] => first == "400" || first == "800",
            _ => false,
        };
        is_number.then(|| {
            self.at += length;
            Expression::Digits(DigitGroups(groups))
        })
    }

    fn dashed(&mut self) -> Option<Expression> {
        let (groups, length) = self.groups('-', 6);
        if groups.len() < 2 {
            return None;
        }
        let digits: String = groups.concat();
        let is_area = groups[0].starts_with('0') && matches!(groups[0].len(), 3 | 4);
        let is_service = groups[0] == "400" || groups[0] == "800";
        let is_mobile = digits.len() == 11 && digits.starts_with('1');
        // 555-0100 is no range.
        let is_local = groups[0].len() == 3 && groups[1].len() == 4 && groups[1].starts_with('0');
        let is_number = digits.len() >= 7 && (is_area || is_service || is_mobile || is_local);
        // Nor are more than two numbers.
        let is_several = groups.len() >= 3;
        let is_named = digits.len() >= 3 && self.is_named(self.at);
        if !(is_number || is_several || is_named) {
            return None;
        }
        self.at += length;
        let said = groups.iter().flat_map(|group| DigitGroups::of(group).0);
        Some(Expression::Digits(DigitGroups(said.collect())))
    }

    /// All digits of a number behind a plus, without what stands between its groups.
    pub(super) fn international_digits(&self) -> String {
        let (groups, _) = self.behind_plus();
        groups.concat()
    }

    /// `+8613800138000`, `+86 138 0013 8000`, `+1-202-555-0100`.
    pub(super) fn international(&mut self) -> Expression {
        let (groups, length) = self.behind_plus();
        self.at += length;
        let is_foreign = groups.len() > 1 && groups[0] != "86";
        Expression::Digits(if is_foreign {
            DigitGroups(groups)
        } else {
            DigitGroups::international(&groups.concat())
        })
    }

    /// The groups of digits, and how many characters they have with the plus and what stands between them.
    fn behind_plus(&self) -> (Vec<String>, usize) {
        const LONGEST: usize = 15;
        let mut groups: Vec<String> = vec![self.run(self.at + 1)];
        let mut length = 1 + groups[0].len();
        let mut digits = groups[0].len();
        while matches!(self.peek(length), Some(' ' | '-')) && self.is_digit(length + 1) {
            let group = self.run(self.at + length + 1);
            digits += group.len();
            if digits > LONGEST {
                break;
            }
            length += 1 + group.len();
            groups.push(group);
        }
        (groups, length)
    }
}
