//! Cluster-scoped objects, which several Instances apply: a label names the creator, an annotation
//! the other users. The last of them deletes the object.

use interlock_core::api::map::{NotAMap, map_at};
use interlock_core::api::meta;
use interlock_core::api::object::annotation;
use serde_json::{Value, json};

/// Maximum of Instances listed in the annotation. With more of them the object stays.
const LISTED: usize = 1000;

/// The Instances that apply an object, by uid.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Users {
    /// The creator; `None` where it is unknown.
    creator: Option<String>,
    others: Vec<String>,
    /// Whether others were listed before: the annotation stays, so that no other Instance claims
    /// the object.
    listed: bool,
}

impl Users {
    fn of(current: &Value) -> Self {
        let list = annotation(current, meta::SHARED_BY);
        let others = list.into_iter().flat_map(|list| list.split(',')).filter(|uid| !uid.is_empty());
        Self {
            creator: creator(current).map(str::to_owned),
            others: others.map(str::to_owned).collect(),
            listed: list.is_some(),
        }
    }

    /// The value of the annotation; `None` where there is none.
    fn list(&self) -> Option<String> {
        let needed = self.creator.is_none() && self.listed;
        (needed || !self.others.is_empty()).then(|| self.others.join(","))
    }
}

/// uid of the Instance that made an object.
pub fn creator(current: &Value) -> Option<&str> {
    current["metadata"]["labels"][meta::INSTANCE_UID].as_str().filter(|uid| !uid.is_empty())
}

/// Whether an Instance is among the users of an object.
pub fn names(current: &Value, uid: &str) -> bool {
    let list = annotation(current, meta::SHARED_BY).unwrap_or_default();
    creator(current) == Some(uid) || list.split(',').any(|other| other == uid)
}

/// The users of the object once this Instance is its creator.
pub fn with_creator(current: &Value, uid: &str) -> Users {
    let mut users = Users::of(current);
    let before = users.creator.replace(uid.to_owned());
    users.others.extend(before);
    users.others.retain(|other| other != uid);
    users
}

/// The users of the object once this Instance is among them.
pub fn with_user(current: &Value, uid: &str) -> Users {
    let mut users = Users::of(current);
    users.listed = true;
    if !users.others.iter().any(|other| other == uid) && users.others.len() < LISTED {
        users.others.push(uid.to_owned());
    }
    users
}

/// Writes the users of an object into its metadata.
pub fn write(object: &mut Value, users: &Users) -> Result<(), NotAMap> {
    let labels = map_at(object, &["metadata", "labels"])?;
    match &users.creator {
        Some(creator) => drop(labels.insert(meta::INSTANCE_UID.to_owned(), creator.as_str().into())),
        None => drop(labels.remove(meta::INSTANCE_UID)),
    }
    let list = users.list();
    let annotations = map_at(object, &["metadata", "annotations"])?;
    match list {
        Some(list) => drop(annotations.insert(meta::SHARED_BY.to_owned(), list.into())),
        None => drop(annotations.remove(meta::SHARED_BY)),
    }
    Ok(())
}

/// The patch by which an Instance leaves an object that others apply; `None` where it is not among
/// them, or is the last. After the creator, the next user becomes the creator.
pub fn leave(current: &Value, uid: &str) -> Option<Value> {
    let mut users = Users::of(current);
    if users.creator.as_deref() == Some(uid) {
        users.others.retain(|other| other != uid);
        if users.others.is_empty() {
            return None;
        }
        users.creator = Some(users.others.remove(0));
    } else {
        let before = users.others.len();
        users.others.retain(|other| other != uid);
        if users.others.len() == before {
            return None;
        }
    }
    let (creator, list) = (&users.creator, users.list());
    Some(json!({"metadata": {
        "labels": {meta::INSTANCE_UID: creator},
        "annotations": {meta::SHARED_BY: list},
    }}))
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    fn object(creator: Option<&str>, others: Option<&str>) -> Value {
        json!({"metadata": {
            "name": "x", "labels": {meta::INSTANCE_UID: creator}, "annotations": {meta::SHARED_BY: others},
        }})
    }

    fn shown(object: &Value) -> (Option<&str>, Option<&str>) {
        (creator(object), annotation(object, meta::SHARED_BY))
    }

    #[rstest]
    #[case::first(None, None, (Some("a"), None))]
    #[case::again(Some("a"), None, (Some("a"), None))]
    #[case::beside_others(Some("a"), Some("b,c"), (Some("a"), Some("b,c")))]
    #[case::given(Some("b"), Some("c"), (Some("a"), Some("c,b")))]
    #[case::given_to_one_of_them(Some("b"), Some("a"), (Some("a"), Some("b")))]
    fn the_maker(
        #[case] creator: Option<&str>,
        #[case] others: Option<&str>,
        #[case] expected: (Option<&str>, Option<&str>),
    ) {
        let mut wanted = object(None, None);
        write(&mut wanted, &with_creator(&object(creator, others), "a")).unwrap();
        assert_eq!(shown(&wanted), expected);
    }

    #[rstest]
    #[case::second(Some("b"), None, (Some("b"), Some("a")))]
    #[case::third(Some("b"), Some("c"), (Some("b"), Some("c,a")))]
    #[case::again(Some("b"), Some("a,c"), (Some("b"), Some("a,c")))]
    #[case::of_an_unknown_maker(None, None, (None, Some("a")))]
    fn another_one(
        #[case] creator: Option<&str>,
        #[case] others: Option<&str>,
        #[case] expected: (Option<&str>, Option<&str>),
    ) {
        let mut wanted = object(Some("a"), None);
        write(&mut wanted, &with_user(&object(creator, others), "a")).unwrap();
        assert_eq!(shown(&wanted), expected);
    }

    #[rstest]
    #[case::the_last(Some("a"), None, None)]
    #[case::the_maker(Some("a"), Some("b,c"), Some((Some("b"), Some("c"))))]
    #[case::the_maker_of_two(Some("a"), Some("b"), Some((Some("b"), None)))]
    #[case::another(Some("b"), Some("c,a"), Some((Some("b"), Some("c"))))]
    #[case::the_only_other(Some("b"), Some("a"), Some((Some("b"), None)))]
    #[case::of_an_unknown_maker(None, Some("a"), Some((None, Some(""))))]
    #[case::a_stranger(Some("b"), Some("c"), None)]
    fn one_leaves(
        #[case] creator: Option<&str>,
        #[case] others: Option<&str>,
        #[case] expected: Option<(Option<&str>, Option<&str>)>,
    ) {
        let mut current = object(creator, others);
        let patch = leave(&current, "a");
        assert_eq!(patch.is_some(), expected.is_some());
        if let (Some(patch), Some(expected)) = (patch, expected) {
            json_patch::merge(&mut current, &patch);
            assert_eq!(shown(&current), expected);
        }
    }

    #[rstest]
    #[case::maker(Some("a"), None, true)]
    #[case::another(Some("b"), Some("c,a"), true)]
    #[case::a_stranger(Some("b"), Some("aa,c"), false)]
    #[case::nobody(None, None, false)]
    fn users(#[case] creator: Option<&str>, #[case] others: Option<&str>, #[case] expected: bool) {
        assert_eq!(names(&object(creator, others), "a"), expected);
    }

    #[test]
    fn the_list_has_an_end() {
        let full: Vec<String> = (0..LISTED).map(|i| i.to_string()).collect();
        let users = with_user(&object(Some("b"), Some(&full.join(","))), "a");
        assert_eq!(users.others.len(), LISTED);
    }
}
