use rstest::rstest;

use super::*;

/// The index of KUDO's own test (`util/repo/index_test.go`), and what its order leads to.
const INDEX_OF_KUDO: &str = "
apiVersion: v1
entries:
  flink:
  - apiVersion: v1beta1
    name: flink
    urls:
    - https://kudo-repository.storage.googleapis.com/flink-0.1.0.tgz
    operatorVersion: 0.1.0
  - apiVersion: v1beta1
    appVersion: 1.7.2
    name: flink
    urls:
    - https://kudo-repository.storage.googleapis.com/flink-1.7.2_0.1.0.tgz
    operatorVersion: 0.1.0
  kafka:
  - appVersion: 2.2.1
    name: kafka
    operatorVersion: 0.1.0
  - appVersion: 2.2.1
    name: kafka
    operatorVersion: 0.2.0
  - appVersion: 2.3.0
    name: kafka
    operatorVersion: 0.2.0
";

fn package(name: &str, app_version: &str, version: &str) -> IndexedPackage {
    IndexedPackage {
        name: name.to_owned(),
        version: version.to_owned(),
        app_version: (!app_version.is_empty()).then(|| app_version.to_owned()),
        ..IndexedPackage::default()
    }
}

fn versions(index: &RepositoryIndex, name: &str) -> Vec<String> {
    index.packages[name].iter().map(IndexedPackage::versions).collect()
}

#[test]
fn the_newest_is_first() {
    let index = RepositoryIndex::read(INDEX_OF_KUDO).unwrap();
    assert_eq!(versions(&index, "flink"), ["0.1.0 (appVersion 1.7.2)", "0.1.0"]);
    assert_eq!(
        versions(&index, "kafka"),
        ["0.2.0 (appVersion 2.3.0)", "0.2.0 (appVersion 2.2.1)", "0.1.0 (appVersion 2.2.1)"]
    );
    let urls = &index.find("flink", None, None).unwrap().urls;
    assert_eq!(*urls, ["https://kudo-repository.storage.googleapis.com/flink-1.7.2_0.1.0.tgz"]);
}

/// KUDO's own cases (`util/repo/resolver_repo_test.go`), and those that its order leaves to chance.
#[rstest]
#[case::of_a_version_the_newest_application("Foo", Some("1.0.1"), None, "1.0.1 (appVersion 3.0.0)")]
#[case::of_an_application("Foo", None, Some("2.0.0"), "1.0.1 (appVersion 2.0.0)")]
#[case::both("Foo", Some("1.0.1"), Some("2.0.0"), "1.0.1 (appVersion 2.0.0)")]
#[case::no_version_of_an_application("Foo", None, Some("bar"), "1.0.1 (appVersion bar)")]
#[case::without_an_application("Buzz", None, None, "1.0.10")]
#[case::old("Buzz", Some("1.0.1"), None, "1.0.1")]
#[case::a_release_after_its_candidates("Pre", None, None, "1.0.0")]
fn a_name_means_the_newest_that_fits(
    #[case] name: &str,
    #[case] version: Option<&str>,
    #[case] app_version: Option<&str>,
    #[case] expected: &str,
) {
    let mut all = vec![
        package("Foo", "2.0.0", "1.0.1"),
        package("Foo", "3.0.0", "1.0.1"),
        package("Foo", "", "1.0.1"),
        package("Foo", "bar", "1.0.1"),
        package("Buzz", "", "1.0.2"),
        package("Buzz", "", "1.0.10"),
        package("Buzz", "", "1.0.1"),
        package("Pre", "", "1.0.0-rc1"),
        package("Pre", "", "1.0.0"),
    ];
    for _ in 0..2 {
        let index = RepositoryIndex::of(all.clone()).unwrap();
        assert_eq!(index.find(name, version, app_version).unwrap().versions(), expected);
        all.reverse();
    }
}

#[rstest]
#[case::similar("kafak", None, "the repository has no package kafak", "did you mean kafka?")]
#[case::unknown(
    "x",
    None,
    "the repository has no package x",
    "name one of the packages of the repository: flink, kafka"
)]
#[case::version(
    "flink",
    Some("9.0.0"),
    "the repository has no package flink of 9.0.0",
    "name a version that it has: 0.1.0 (appVersion 1.7.2), 0.1.0"
)]
fn what_is_not_there_is_told(
    #[case] name: &str,
    #[case] version: Option<&str>,
    #[case] text: &str,
    #[case] remedy: &str,
) {
    let index = RepositoryIndex::read(INDEX_OF_KUDO).unwrap();
    let error = index.find(name, version, None).unwrap_err();
    assert_eq!((error.to_string().as_str(), error.remedy()), (text, remedy));
}

#[rstest]
#[case::page("<html><body>Not found</body></html>", "it has no apiVersion")]
#[case::no_version("entries: {}", "it has no apiVersion")]
#[case::list("apiVersion: v1\nentries: [a]", "entries must be a mapping, but is a list")]
#[case::no_package("apiVersion: v1\nentries: {a: [{name: a}]}", "entries.a[0] has no operatorVersion")]
#[case::other_type(
    "apiVersion: v1\nentries: {a: [{operatorVersion: [1]}]}",
    "must be a string, but is a list"
)]
#[case::no_yaml("a: [", "it is not YAML: ")]
fn what_is_no_index_is_told(#[case] text: &str, #[case] expected: &str) {
    let error = RepositoryIndex::read(text).unwrap_err().to_string();
    assert!(error.contains(expected), "{error}");
}

/// As KUDO writes it (`util/repo/testdata/flink-index.yaml.golden`).
#[test]
fn an_index_is_written_as_kudo_writes_it() {
    let person =
        |name: &str, email: &str| Maintainer { name: Some(name.to_owned()), email: Some(email.to_owned()) };
    let flink = IndexedPackage {
        description: Some("fancy description is here".to_owned()),
        maintainers: vec![
            person("Fabian Baier", "<fabian@mesosphere.io>"),
            person("Tom Runyon", "<runyontr@gmail.com>"),
        ],
        urls: vec!["http://kudo.dev/flink".to_owned()],
        digest: Some("0787a078e64c73064287751b833d63ca3d1d284b4f494ebf670443683d5b96dd".to_owned()),
        ..package("flink", "0.7.0", "0.3.0")
    };
    let index = RepositoryIndex::of(vec![flink.clone()]).unwrap();
    let text = index.write("2019-08-09T15:04:00Z");
    assert_eq!(
        text,
        r#"apiVersion: v1
entries:
  flink:
  - appVersion: 0.7.0
    description: fancy description is here
    digest: 0787a078e64c73064287751b833d63ca3d1d284b4f494ebf670443683d5b96dd
    maintainers:
    - email: <fabian@mesosphere.io>
      name: Fabian Baier
    - email: <runyontr@gmail.com>
      name: Tom Runyon
    name: flink
    operatorVersion: 0.3.0
    urls:
    - http://kudo.dev/flink
generated: "2019-08-09T15:04:00Z"
"#
    );
    assert_eq!(RepositoryIndex::read(&text).unwrap(), index);
    let twice = RepositoryIndex::of(vec![flink.clone(), flink]).unwrap_err();
    assert_eq!(twice.to_string(), "two packages are flink 0.3.0 (appVersion 0.7.0)");
}
