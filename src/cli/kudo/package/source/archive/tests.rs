use rstest::rstest;

use super::*;

/// An archive of entries as they are given: none of the checks of who makes archives in good faith.
fn archive<N: AsRef<[u8]>, C: AsRef<[u8]>>(entries: &[(EntryType, N, C)]) -> Vec<u8> {
    let mut out = GzEncoder::new(Vec::new(), Compression::fast());
    out.write_all(&tarball(entries)).unwrap();
    out.finish().unwrap()
}

fn tarball<N: AsRef<[u8]>, C: AsRef<[u8]>>(entries: &[(EntryType, N, C)]) -> Vec<u8> {
    let mut out = Vec::new();
    for (kind, name, content) in entries {
        let (name, content) = (name.as_ref(), content.as_ref());
        let mut header = Header::new_gnu();
        header.as_old_mut().name[..name.len()].copy_from_slice(name);
        header.set_entry_type(*kind);
        header.set_mode(0o644);
        header.set_size(content.len() as u64);
        header.set_cksum();
        out.extend_from_slice(header.as_bytes());
        out.extend_from_slice(content);
        out.resize(out.len().next_multiple_of(512), 0);
    }
    out.resize(out.len() + 1024, 0);
    out
}

const FILE: EntryType = EntryType::Regular;

#[test]
fn files_are_found_by_their_paths() {
    let packed = archive(&[
        (EntryType::XGlobalHeader, "pax_global_header", "19 comment=abcdef0\n"),
        (EntryType::Directory, "./", ""),
        (FILE, "./operator.yaml", "name: a"),
        (EntryType::Directory, "templates/", ""),
        (FILE, "templates//sub/./x.yaml", ""),
    ]);
    let expected = [("operator.yaml", "name: a"), ("templates/sub/x.yaml", "")];
    let expected = expected.map(|(path, text)| (path.to_owned(), text.as_bytes().to_vec()));
    assert_eq!(unpack(&packed).unwrap(), Files::from(expected));
}

/// Several files of gzip behind each other are one, as for `gunzip` and Go.
#[test]
fn parts_of_gzip_are_one() {
    let whole = tarball(&[(FILE, "operator.yaml", "name: a")]);
    let mut packed = Vec::new();
    for part in whole.chunks(700) {
        let mut out = GzEncoder::new(Vec::new(), Compression::fast());
        out.write_all(part).unwrap();
        packed.extend(out.finish().unwrap());
    }
    assert_eq!(unpack(&packed).unwrap().len(), 1);
}

#[rstest]
#[case::symbolic_link(&[(EntryType::Symlink, "templates/a.yaml", "")], r#""templates/a.yaml" is a link"#)]
#[case::hard_link(&[(EntryType::Link, "a", "")], r#""a" is a link"#)]
#[case::device(&[(EntryType::Char, "a", "")], r#""a" is a device or a pipe"#)]
#[case::block_device(&[(EntryType::Block, "a", "")], r#""a" is a device or a pipe"#)]
#[case::pipe(&[(EntryType::Fifo, "a", "")], r#""a" is a device or a pipe"#)]
#[case::unknown(&[(EntryType::new(b'Z'), "a", "")], r#""a" is neither a file nor a folder"#)]
#[case::absolute(&[(FILE, "/operator.yaml", "")], r#""/operator.yaml" has an absolute path"#)]
#[case::absolute_folder(&[(EntryType::Directory, "/etc", "")], r#""/etc" has an absolute path"#)]
#[case::above(&[(FILE, "../operator.yaml", "")], r#""../operator.yaml" leads out of the archive with .."#)]
#[case::above_from_below(&[(FILE, "a/../../b", "")], r#""a/../../b" leads out of the archive with .."#)]
#[case::twice(&[(FILE, "a", "1"), (FILE, "a", "1")], r#""a" is there twice"#)]
#[case::twice_in_two_forms(&[(FILE, "a", "1"), (FILE, "./a", "2")], r#""./a" is there twice"#)]
#[case::escapes(&[(FILE, "/\x1b[2K", "")], r#""/\u{1b}[2K" has an absolute path"#)]
fn what_is_no_plain_file_is_refused(#[case] entries: &[(EntryType, &str, &str)], #[case] expected: &str) {
    let error = unpack(&archive(entries)).unwrap_err();
    assert!(error.to_string().contains(expected), "{error}");
    let told = error.of("web.tgz").text();
    assert!(
        told.starts_with("error: the archive cannot be used\n  where: web.tgz\n  why:   its entry "),
        "{told}"
    );
    assert!(told.contains("\n  next:  ") && !told.contains('\u{1b}'), "{told}");
}

#[test]
fn a_name_is_text() {
    let error = unpack(&archive(&[(FILE, [0xff, b'a'], "")])).unwrap_err().to_string();
    assert!(error.contains("has a name that is not UTF-8 text"), "{error}");
}

/// A name of a header of its own, as GNU's tar and Go's write what does not fit.
#[rstest]
#[case::long(200, None)]
#[case::too_long(2000, Some("has a name of more than 1024 bytes"))]
fn long_names(#[case] length: usize, #[case] expected: Option<&str>) {
    let name = "n".repeat(length);
    let packed = archive(&[(EntryType::GNULongName, "././@LongLink", name.as_str()), (FILE, "short", "x")]);
    match (unpack(&packed), expected) {
        (Ok(files), None) => assert!(files.contains_key(&name), "{:?}", files.keys()),
        (Err(error), Some(expected)) => assert!(error.to_string().contains(expected), "{error}"),
        (found, _) => panic!("{found:?}"),
    }
}

#[test]
fn what_is_too_much_is_refused() {
    let many: Vec<(EntryType, &str, &str)> = vec![(EntryType::Directory, "d/", ""); MAX_ENTRIES + 1];
    let error = unpack(&archive(&many)).unwrap_err();
    assert!(matches!(error, ArchiveError::Entries), "{error}");
    // A few KiB that become 33 MiB.
    let zeros = vec![0_u8; MAX_UNPACKED + (1 << 20)];
    let packed = archive(&[(FILE, "a", zeros)]);
    assert!(packed.len() < 1 << 20, "{}", packed.len());
    let error = unpack(&packed).unwrap_err();
    assert!(matches!(error, ArchiveError::Unpacked), "{error}");
    let error = unpack(&vec![0; MAX_PACKED + 1]).unwrap_err();
    assert!(matches!(error, ArchiveError::Packed), "{error}");
}

#[test]
fn what_is_cut_off_is_refused() {
    let whole = archive(&[(FILE, "operator.yaml", &[b'x'; 5000])]);
    for length in [0, 5, whole.len() / 2, whole.len() - 1] {
        let error = unpack(&whole[..length]).unwrap_err();
        assert!(matches!(error, ArchiveError::Gzip(_)), "{length}: {error}");
    }
    let tar = tarball(&[(FILE, "operator.yaml", &[b'x'; 5000])]);
    let mut short = GzEncoder::new(Vec::new(), Compression::fast());
    short.write_all(&tar[..2048]).unwrap();
    let error = unpack(&short.finish().unwrap()).unwrap_err().to_string();
    assert!(error.contains("ends early"), "{error}");
    // A header that claims more than there is.
    let mut claims = tar.clone();
    let mut header = Header::new_gnu();
    header.as_mut_bytes().copy_from_slice(&claims[..512]);
    header.set_size(1 << 40);
    header.set_cksum();
    claims[..512].copy_from_slice(header.as_bytes());
    let mut out = GzEncoder::new(Vec::new(), Compression::fast());
    out.write_all(&claims).unwrap();
    let error = unpack(&out.finish().unwrap()).unwrap_err().to_string();
    assert!(error.contains("ends early"), "{error}");
    let mut text = GzEncoder::new(Vec::new(), Compression::fast());
    text.write_all(&[b'a'; 1024]).unwrap();
    let error = unpack(&text.finish().unwrap()).unwrap_err();
    assert!(matches!(error, ArchiveError::Tar(_)), "{error}");
}

#[test]
fn what_is_packed_is_found_again_and_always_the_same() {
    let long = format!("templates/{}/{}.yaml", "a".repeat(120), "".repeat(120));
    let files: Files = [("operator.yaml", "name: a"), (long.as_str(), "é"), ("params.yaml", "")]
        .map(|(path, text)| (path.to_owned(), text.as_bytes().to_vec()))
        .into();
    let packed = pack(&files).unwrap();
    assert_eq!(unpack(&packed).unwrap(), files);
    assert_eq!(pack(&files).unwrap(), packed);
}
