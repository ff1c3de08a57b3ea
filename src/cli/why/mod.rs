//! `interlock why`: explains an object by its state, its dependencies, its actors and its history.

use std::process::ExitCode;

use clap::Args;
use interlock_core::api::object::meta_str;
use interlock_core::api::suggest;
use kube::Client;

use self::answer::WhyAnswer;
use self::facts::FactReader;
use crate::cli::common::discovery::{NamedObject, ServedKinds, ServedResource};
use crate::cli::common::error::CliError;
use crate::cli::common::output::OutputFlag;
use crate::cli::common::progress::ProgressLine;
use crate::cli::common::reader;
use crate::cli::common::reader::{ReadOutcome, Selection};
use crate::cli::common::target::{TargetFlags, block_on};
use crate::cli::gateway::policies::proxies;
use crate::cli::gateway::policies::source::{FilesFlag, Source};
use crate::cli::gateway::policies::story as story_of_policies;

mod actors;
mod answer;
mod facts;
mod recent_events;
mod story;
mod text;

/// Flags of `interlock why`.
#[derive(Args, Debug)]
pub struct WhyArguments {
    /// The object: KIND/NAMESPACE/NAME, KIND/NAME, or KIND NAME.
    #[arg(value_name = "OBJECT", required = true, num_args = 1..=2)]
    object: Vec<String>,
    #[command(flatten)]
    input: FilesFlag,
    /// Also asks the proxies of its Gateways what they have of a policy, a route or a Gateway: by port-forward to their
    /// administration port, with your rights.
    #[arg(long, conflicts_with = "files")]
    proxy: bool,
    #[command(flatten)]
    form: OutputFlag,
    #[command(flatten)]
    target: TargetFlags,
}

/// Prints the answer.
pub fn main(arguments: WhyArguments) -> ExitCode {
    block_on(run(arguments))
}

async fn run(arguments: WhyArguments) -> anyhow::Result<()> {
    let words: Vec<&str> = arguments.object.iter().map(String::as_str).collect();
    let mut named = NamedObject::parse(&words)?;
    if !arguments.input.files.is_empty() {
        return of_files(&arguments, &named).await;
    }
    let (client, home) = arguments.target.connect().await?;
    let served = ServedKinds::discover(&client).await?;
    let mut source = None;
    // Another group may have a kind Policy.
    if story_of_policies::is_any_policy(&named.kind) && served.find(&named.kind).is_err() {
        let all = Source::of_cluster(&client, &served, home.clone()).await?;
        let found = answer::named(story_of_policies::find_policy(&all, &named)?);
        named = NamedObject { kind: found.kind, namespace: Some(found.namespace), name: found.name };
        source = Some(all);
    }
    let resource = served.find(&named.kind)?;
    let namespace = named.namespace.as_deref().unwrap_or(&home);
    let (at, name) = (if resource.namespaced { namespace } else { "" }, &named.name);
    let place = if at.is_empty() { name.clone() } else { format!("{at}/{name}") };
    let object = match reader::get(&client, resource, at, name).await {
        ReadOutcome::There(object) => object,
        ReadOutcome::Missing => return Err(missing(&client, resource, at, name).await.into()),
        ReadOutcome::Unknown(why) => {
            let what = format!("{} {place} cannot be read", resource.api.kind);
            return Err(CliError::refused(what).why(why).next(can_i("get", resource, at)).into());
        }
    };
    let progress = ProgressLine::start("reading what it depends on and its history");
    let facts = FactReader { client: &client, served: &served }.read_all(object).await;
    drop(progress);
    let mut story = WhyAnswer::of(&facts);
    let is_about_policies = story_of_policies::is_about(&facts.object);
    if is_about_policies {
        let read = match source {
            Some(source) => Ok(source),
            None => Source::of_cluster(&client, &served, home).await,
        };
        match read {
            Ok(source) => {
                story_of_policies::told(&source, &facts.object).into_iter().for_each(|own| story.add(own));
                if arguments.proxy {
                    let told = proxies::told(&client, &source, &facts.object).await;
                    story.add(told.ok_or_else(|| not_carried_out(&story))?);
                }
            }
            Err(error) => story.unknown.push(format!("the policies of the Gateway API: {error}")),
        }
    }
    if arguments.proxy && !is_about_policies {
        return Err(not_carried_out(&story).into());
    }
    Ok(arguments.form.output.print(&story, || text::text(&story))?)
}

fn not_carried_out(story: &WhyAnswer) -> CliError {
    CliError::usage(format!("no proxy has anything of {}", story.object))
        .next("leave --proxy out, or name a RateLimitPolicy, an AuthPolicy, a route or a Gateway")
}

/// The answer from files, which have neither writers nor Events.
async fn of_files(arguments: &WhyArguments, named: &NamedObject) -> anyhow::Result<()> {
    let source = Source::read(&arguments.target, &arguments.input.files).await?;
    // What is odd about the objects is noted.
    source.survey();
    let object = story_of_policies::find(&source, named)?;
    let mut story = WhyAnswer::about(object);
    let told = story_of_policies::told(&source, object).ok_or_else(|| {
        CliError::usage(format!("nothing is known of {} without a cluster", story.object))
            .next("leave -f out, or name a policy, a route or a Gateway")
    })?;
    story.add(told);
    Ok(arguments.form.output.print(&story, || text::text(&story))?)
}

/// The error about an object that does not exist; it names those of its kind.
async fn missing(client: &Client, resource: &ServedResource, namespace: &str, name: &str) -> CliError {
    let kind = &resource.api.kind;
    let (place, among) = match namespace {
        "" => (name.to_owned(), format!("objects of kind {kind}")),
        namespace => {
            (format!("{namespace}/{name}"), format!("objects of kind {kind} in namespace {namespace}"))
        }
    };
    let selection = Selection { namespace: Some(namespace), metadata_only: true, ..Selection::default() };
    // Who may not list them sees no names.
    let listed = reader::list(client, resource, &selection).await.unwrap_or_default();
    let names: Vec<&str> = listed.iter().filter_map(|object| meta_str(object, "name")).collect();
    let remedy = suggest::remedy(name, &among, &names);
    CliError::unreached(format!("{kind} {place} does not exist"))
        .next(remedy.unwrap_or_else(|| "choose another namespace with -n".to_owned()))
}

fn can_i(verb: &str, resource: &ServedResource, namespace: &str) -> String {
    let scope = if namespace.is_empty() { String::new() } else { format!(" -n {namespace}") };
    format!("`kubectl auth can-i {verb} {}{scope}` tells whether you may", resource.name())
}
