//! A condition as it is found, before it is written.

use gateway_policies::Condition;

/// See the module.
pub(super) struct Finding {
    pub(super) condition: Condition,
    /// Whether only the next form of what is in force is on its way: that stays so meanwhile.
    pub(super) is_on_its_way: bool,
}

impl From<Condition> for Finding {
    fn from(condition: Condition) -> Self {
        Self { condition, is_on_its_way: false }
    }
}
