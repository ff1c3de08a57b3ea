//! Compatibility: the effect of a change of flavor, by version of Kong, as a table.
//!
//! Sources: the route schema of each version (`kong/db/schema/entities/routes.lua`), the handling of
//! routes that do not fit (`kong/router/{atc,compat,expressions,traditional}.lua`), and the subsystems
//! that a flavor serves (`kong/router/init.lua`). DB-less, as DataPlanes are.

use super::Flavor;
use super::version::KongVersion;

/// Effect of a rolling change: old and new pods run side by side, with one configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InPlace {
    /// It works; a warning names possible differences in matching.
    Warn,
    /// New pods get no configuration, or lose routes.
    Deny,
}

/// Effect of a staged change: a second set of pods takes it, and is promoted when it is ready.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Staged {
    /// It works.
    Allow,
    /// It works; a warning names possible differences in matching.
    Warn,
    /// It works only where the second set of pods has a configuration producer of its own.
    Producer,
    /// It does not work.
    Deny,
}

/// The configuration that the producer sends to the pods now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProducerConfiguration {
    /// An ingress controller's configuration for the flavor: expressions under `expressions`.
    Usual,
    /// Routes with match fields only.
    FieldsOnly,
}

/// Versions of Kong, from one on, up to but excluding another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Versions {
    from: KongVersion,
    below: Option<KongVersion>,
}

const fn since(major: u32, minor: u32, patch: u32) -> Versions {
    Versions { from: KongVersion::new(major, minor, patch), below: None }
}

impl Versions {
    const fn below(self, major: u32, minor: u32, patch: u32) -> Self {
        Self { below: Some(KongVersion::new(major, minor, patch)), ..self }
    }

    fn hold(self, version: KongVersion) -> bool {
        self.from <= version && self.below.is_none_or(|below| version < below)
    }
}

/// A line of the table.
#[derive(Clone, Copy, Debug)]
pub struct MatrixRow {
    /// Current flavor.
    pub from: Flavor,
    /// New flavor.
    pub to: Flavor,
    /// The versions that it applies to.
    pub kong: Versions,
    /// Whether it applies only to configurations without an expression.
    pub fields_only: bool,
    /// Whether new pods load the configuration of running pods; why not.
    pub loads: Loads,
    /// A rolling change.
    pub in_place: InPlace,
    /// A staged change.
    pub staged: Staged,
}

/// Whether new pods load the configuration of running pods, and how.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Loads {
    Yes,
    /// They load it; routes whose regular expression does not compile are silently omitted.
    DropsRoutes,
    /// They reject all of it if one regular expression does not compile.
    AllOrNothing,
    /// One regular expression that does not compile breaks the whole router.
    BreaksRouter,
    /// They reject all of it if a route has a wildcard SNI.
    UnlessWildcardSni,
    /// They do not support match fields.
    NoFields,
    /// They do not support expressions.
    NoExpressions,
}

use Flavor::{Expressions as EX, Traditional as T, TraditionalCompatible as TC};

/// The table. The first matching line counts; every pair of flavors has one from Kong 3.0 on.
#[rustfmt::skip]
pub const MATRIX: [MatrixRow; 13] = [
    //  from  to  Kong                          config   does it load on new pods?  in place       staged
    row(T,  TC, since(3, 0, 0).below(3, 0, 1), Any,    Loads::BreaksRouter,       InPlace::Deny, Staged::Warn),
    row(T,  TC, since(3, 0, 1).below(3, 2, 0), Any,    Loads::DropsRoutes,        InPlace::Warn, Staged::Warn),
    row(T,  TC, since(3, 2, 0),                Any,    Loads::AllOrNothing,       InPlace::Warn, Staged::Allow),
    row(TC, T,  since(3, 0, 0).below(3, 7, 0), Any,    Loads::Yes,                InPlace::Warn, Staged::Warn),
    row(TC, T,  since(3, 7, 0),                Any,    Loads::UnlessWildcardSni,  InPlace::Warn, Staged::Warn),
    row(TC, EX, since(3, 0, 0).below(3, 4, 0), Any,    Loads::NoFields,           InPlace::Deny, Staged::Deny),
    row(TC, EX, since(3, 4, 0).below(3, 7, 0), Any,    Loads::NoFields,           InPlace::Deny, Staged::Producer),
    row(TC, EX, since(3, 7, 0),                Any,    Loads::Yes,                InPlace::Warn, Staged::Allow),
    row(EX, TC, since(3, 7, 0),                Fields, Loads::Yes,                InPlace::Warn, Staged::Allow),
    row(EX, TC, since(3, 0, 0),                Any,    Loads::NoExpressions,      InPlace::Deny, Staged::Producer),
    row(T,  EX, since(3, 0, 0).below(3, 7, 0), Any,    Loads::NoFields,           InPlace::Deny, Staged::Deny),
    row(T,  EX, since(3, 7, 0),                Any,    Loads::Yes,                InPlace::Deny, Staged::Deny),
    row(EX, T,  since(3, 0, 0),                Any,    Loads::NoExpressions,      InPlace::Deny, Staged::Deny),
];

enum Holds {
    Any,
    Fields,
}
use Holds::{Any, Fields};

#[allow(clippy::too_many_arguments)]
const fn row(
    from: Flavor,
    to: Flavor,
    kong: Versions,
    holds: Holds,
    loads: Loads,
    in_place: InPlace,
    staged: Staged,
) -> MatrixRow {
    MatrixRow { from, to, kong, fields_only: matches!(holds, Fields), loads, in_place, staged }
}

/// The line for a change between two flavors.
pub fn find(
    from: Flavor,
    to: Flavor,
    version: KongVersion,
    configuration: ProducerConfiguration,
) -> Option<&'static MatrixRow> {
    MATRIX.iter().find(|row| {
        row.from == from
            && row.to == to
            && row.kong.hold(version)
            && (!row.fields_only || configuration == ProducerConfiguration::FieldsOnly)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_change_has_a_line_from_3_0_on() {
        let versions =
            [(3, 0, 0), (3, 0, 1), (3, 2, 0), (3, 3, 9), (3, 4, 0), (3, 6, 1), (3, 7, 0), (3, 15, 0)];
        for (from, to) in Flavor::ALL.into_iter().flat_map(|from| Flavor::ALL.map(|to| (from, to))) {
            for (major, minor, patch) in versions {
                for configuration in [ProducerConfiguration::Usual, ProducerConfiguration::FieldsOnly] {
                    let row = find(from, to, KongVersion::new(major, minor, patch), configuration);
                    assert_eq!(row.is_some(), from != to, "{from} {to} {major}.{minor}.{patch}");
                }
            }
        }
    }

    /// A staged change may do whatever a rolling change may.
    #[test]
    fn staging_is_never_worse() {
        for row in &MATRIX {
            assert!(row.in_place == InPlace::Deny || row.staged != Staged::Deny, "{row:?}");
        }
    }

    #[test]
    fn nothing_skips_a_step() {
        for row in MATRIX.iter().filter(|row| row.from != TC && row.to != TC) {
            assert_eq!((row.in_place, row.staged), (InPlace::Deny, Staged::Deny));
        }
    }
}
