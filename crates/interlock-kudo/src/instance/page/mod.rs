//! What the page about a process shows of Instances: those in trouble, the running plans, and a card each.

mod cards;
mod ranked;
mod troubled;

use interlock_core::kinds::INSTANCE;
use interlock_core::kinds::page::{PagePart, SectionName, View, row};

use self::cards::InstanceCard;
use self::ranked::Ranked;

/// Maximum number of shown Instances, those with work first; the rest is counted.
const INSTANCES: usize = 200;

pub(super) fn part(view: &View<'_>) -> PagePart {
    let mut all: Vec<Ranked<'_>> = view.rows(INSTANCE).map(|row| Ranked::of(row, view.now)).collect();
    all.sort_by(|a, b| a.order().cmp(&b.order()));
    let running = all.iter().filter(|ranked| ranked.locked).count();
    let cards: Vec<InstanceCard> =
        all.iter().take(INSTANCES).map(|ranked| InstanceCard::of(view, ranked)).collect();
    PagePart {
        trouble: troubled::all(view, &all),
        sections: vec![(SectionName { name: "plans", place: 0 }, cards::plans(view, &all, running).rows())],
        members: vec![("total", row(&all.len())), ("running", row(&running)), ("instances", row(&cards))],
    }
}
