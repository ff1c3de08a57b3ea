//! What a change of dialect asks people to do: a configuration producer for the preview, and new pods of the live one.

use interlock_core::api::object::NamespacedName;
use interlock_kong::data_plane::rollout::flavor_change::next_move::FlavorHop;
use interlock_kong::data_plane::rollout::flavor_change::preview_producer::{command, copy_name, described};

use super::producer::ProducerRef;
use crate::cli::common::error::{CliError, plain};
use crate::cli::common::output;

/// Says that the preview needs a producer, and by which command it gets one. A copy that was made for an earlier hop
/// keeps to the dialect of that.
pub(super) async fn say_needed(
    data_plane: &NamespacedName,
    hop: FlavorHop,
    known: Option<&ProducerRef>,
) -> Result<(), CliError> {
    let command = match known {
        None => None,
        Some(producer) => match (producer.copy().find().await, producer.find().await) {
            (Some(_), _) if !hop.crosses_dialects() => return Ok(()),
            (Some(_), _) => {
                let NamespacedName { namespace, .. } = &producer.name;
                Some(format!(
                    "kubectl rollout restart deployment/{} -n {namespace}",
                    copy_name(&producer.name)
                ))
            }
            (None, Some(deployment)) => Some(command(&deployment, &producer.name, data_plane)),
            (None, None) => None,
        },
    };
    let takes_up = if hop.crosses_dialects() { format!("takes up {} and ", hop.to) } else { String::new() };
    output::line(&format!(
        "dataplane {data_plane}: the preview needs a configuration producer that {takes_up}sees no live pod; unless there is \
         one, run"
    ))?;
    output::line(&plain(&format!("  {}", command.unwrap_or_else(|| untold(data_plane)))))
}

/// What to run where no Deployment is known.
fn untold(data_plane: &NamespacedName) -> String {
    format!(
        "{}; with --wait --producer deploy/NAMESPACE/NAME the command for a copy of that Deployment is printed",
        described(data_plane)
    )
}

/// Says what is left to do after a change of dialect.
pub(super) fn say_left(hop: FlavorHop, known: Option<&ProducerRef>, restarted: bool) -> Result<(), CliError> {
    let Some(producer) = known else {
        return output::line(&format!(
            "next: restart the configuration producer of the live pods, so that it takes up {}, and stop that of the preview",
            hop.to
        ));
    };
    let NamespacedName { namespace, name } = &producer.name;
    let delete = format!("`kubectl delete deployment {} -n {namespace}`", copy_name(&producer.name));
    match restarted {
        true => output::line(&format!(
            "next: stop the configuration producer of the preview, such as with {delete}"
        )),
        false => output::line(&format!(
            "next: `kubectl rollout restart deployment/{name} -n {namespace}`, so that it takes up {}, and stop that of the \
             preview, such as with {delete}",
            hop.to
        )),
    }
}
