//! `interlock override create`.

use std::time::Duration;

use clap::Args;
use interlock_core::api::override_object::{EXPIRATION, Override, OverrideSpec};
use interlock_core::api::rule::Rule;
use interlock_core::api::suggest;
use interlock_kudo::instance::KIND;
use kube::api::{ObjectMeta, PostParams};
use kube::{Api, ResourceExt as _};

use crate::cli::common::error::{CliError, api, of_client};
use crate::cli::common::flags::duration;
use crate::cli::common::output;
use crate::cli::common::target::TargetFlags;
use crate::cli::kudo::instance::InstanceRef;
use crate::cluster::client::self_subject_review;

/// Characters of a reason, as the definition has it.
const MAX_REASON: usize = 256;

/// Flags of `interlock override create`.
#[derive(Args, Debug)]
pub(super) struct CreateFlags {
    /// The Instance, as NAME or instance/NAME.
    #[arg(value_name = "INSTANCE")]
    object: String,
    /// The rule, as its refusal names it in brackets.
    #[arg(long)]
    rule: String,
    /// User who makes the write; by default you, by the name that the API server knows.
    #[arg(long)]
    user: Option<String>,
    /// How long the Override lasts: from a minute to four hours.
    #[arg(long = "for", value_name = "TIME", default_value = "30m", value_parser = expiration)]
    expiration: Duration,
    /// Why, in one line: it goes into Events.
    #[arg(long)]
    reason: String,
}

/// A time within the bounds of an Override.
fn expiration(text: &str) -> Result<Duration, String> {
    let found = duration(text)?;
    let (least, most) = EXPIRATION;
    let fits = i64::try_from(found.as_secs()).is_ok_and(|seconds| (least..=most).contains(&seconds));
    fits.then_some(found).ok_or_else(|| "an Override holds for at least 1m and at most 4h".to_owned())
}

/// Creates an Override.
pub(super) async fn run(flags: &CreateFlags, target: &TargetFlags) -> Result<(), CliError> {
    let name = instance_name(&flags.object)?;
    check_rule(&flags.rule)?;
    check_reason(&flags.reason)?;
    let (client, namespace) = target.connect().await?;
    let subject = InstanceRef::of(client.clone(), &namespace, name);
    let found = subject.objects.get_metadata_opt(name).await;
    let Some(found) = found.map_err(api(format!("{subject} cannot be read")))? else {
        return Err(subject.missing().await);
    };
    let user = match &flags.user {
        Some(user) => user.clone(),
        None => self_subject_review(&client).await.map_err(|error| of_client(&error))?,
    };
    let spec = OverrideSpec {
        object_uid: found.uid().unwrap_or_default(),
        rule: flags.rule.clone(),
        user,
        expiration_seconds: i64::try_from(flags.expiration.as_secs()).unwrap_or(EXPIRATION.1),
        reason: flags.reason.clone(),
    };
    let metadata = ObjectMeta { generate_name: Some(generate_name(name)), ..ObjectMeta::default() };
    let wanted = Override { metadata, spec };
    let created = Api::<Override>::all(client).create(&PostParams::default(), &wanted).await;
    let created = created.map_err(api("the Override is not created"))?;
    let until =
        created.expires().map_or_else(String::new, |at| at.strftime("%Y-%m-%dT%H:%M:%SZ").to_string());
    let OverrideSpec { rule, user, .. } = &created.spec;
    output::line(&format!(
        "override {} created: until {until} it admits what {rule} refuses {user} of {subject}",
        created.name_any()
    ))
}

/// Names that are made have five characters more, and at most 63.
fn generate_name(instance: &str) -> String {
    let start: String = instance.chars().take(50).collect();
    format!("{}-", start.trim_end_matches(['.', '-']))
}

/// The name, which may stand behind its kind.
fn instance_name(object: &str) -> Result<&str, CliError> {
    let (kind, name) = object.rsplit_once('/').unwrap_or(("instance", object));
    let kinds = ["instance", "instances", "instance.kudo.dev", "instances.kudo.dev"];
    if name.is_empty() || !kinds.iter().any(|known| kind.eq_ignore_ascii_case(known)) {
        return Err(CliError::usage(format!("{object:?} is no Instance, and an Override is of one"))
            .next("write it as NAME or instance/NAME"));
    }
    Ok(name)
}

fn check_rule(rule: &str) -> Result<(), CliError> {
    let (can, cannot): (Vec<&Rule>, Vec<&Rule>) =
        KIND.rules.iter().partition(|rule| rule.can_be_overridden());
    let can: Vec<&str> = can.iter().map(|rule| rule.id()).collect();
    if can.contains(&rule) {
        return Ok(());
    }
    if cannot.iter().any(|known| known.id() == rule) {
        return Err(CliError::usage(format!("rule {rule} cannot be overridden"))
            .next(format!("do what its refusal says; those that can be are {}", can.join(", "))));
    }
    let error = CliError::usage(format!("no rule that can be overridden is named {rule:?}"));
    let error = error.next("give the rule that the refusal names in brackets");
    Err(error.next_where(suggest::remedy(rule, "rules that can be overridden", &can)))
}

fn check_reason(reason: &str) -> Result<(), CliError> {
    let length = reason.chars().count();
    if (1..=MAX_REASON).contains(&length) && !reason.chars().any(char::is_control) {
        return Ok(());
    }
    Err(CliError::usage("--reason is no line of 1 to 256 characters")
        .next("write in one line why, such as a ticket"))
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case::name("demo", Some("demo"))]
    #[case::kind("instance/demo", Some("demo"))]
    #[case::plural("Instances.kudo.dev/demo", Some("demo"))]
    #[case::another("dataplane/edge", None)]
    #[case::nothing("instance/", None)]
    fn an_override_is_of_an_instance(#[case] object: &str, #[case] expected: Option<&str>) {
        assert_eq!(instance_name(object).ok(), expected);
    }

    #[rstest]
    #[case::can("parameter-immutable", "")]
    #[case::similar("parameter-imutable", "next:  did you mean parameter-immutable")]
    #[case::lock(
        "plan-status",
        "error: rule plan-status cannot be overridden\n  next:  do what its refusal says; "
    )]
    #[case::freeze("plan-running", "error: rule plan-running cannot be overridden\n")]
    #[case::unknown("RF02", "next:  name one of the rules that can be overridden: parameter-immutable, ")]
    fn only_rules_about_packages(#[case] rule: &str, #[case] expected: &str) {
        let text = check_rule(rule).err().map(|error| error.text()).unwrap_or_default();
        assert!(text.contains(expected) && text.is_empty() == expected.is_empty(), "{text}");
    }

    #[rstest]
    #[case("30m", true)]
    #[case("1m", true)]
    #[case("4h", true)]
    #[case("59s", false)]
    #[case("4h1s", false)]
    #[case("1d", false)]
    #[case("soon", false)]
    fn it_holds_for_a_while(#[case] text: &str, #[case] good: bool) {
        assert_eq!(expiration(text).is_ok(), good);
    }

    #[rstest]
    #[case("ticket 4711", true)]
    #[case("", false)]
    #[case("a\nb", false)]
    #[case(&"x".repeat(257), false)]
    fn a_reason_is_one_line(#[case] text: &str, #[case] good: bool) {
        assert_eq!(check_reason(text).is_ok(), good);
    }

    #[test]
    fn a_name_leaves_room_for_what_is_added() {
        assert_eq!(generate_name("demo"), "demo-");
        assert_eq!(generate_name(&format!("{}.a", "x".repeat(49))), format!("{}-", "x".repeat(49)));
    }
}
