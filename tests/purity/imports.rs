//! Who imports whom: the paths that each module names, resolved to the module that defines what
//! they name.

use std::collections::{BTreeMap, BTreeSet};
use std::iter::Peekable;
use std::slice::Iter;

use super::house::Module;
use super::tokens::{Kind, Token};

type Path = Vec<String>;

/// Module -> the modules that it uses, each with the line that says so first.
///
/// What counts: a path in code (also in macros and attributes) and an import, where `super::X`
/// counts for the module that defines `X`, through re-exports. What does not: to declare a
/// module, to re-export a name and not use it oneself, to import a module by its name alone (what
/// is then taken from it counts).
///
/// A parent that calls into its children and defines what they use is in a circle with them. A
/// method that another file adds to a type is not seen: nothing names that file.
pub type Uses = BTreeMap<String, BTreeMap<String, usize>>;

/// What one module says, before it is resolved.
#[derive(Default)]
struct Said {
    /// Names that imports bring in, by the module (also an inline one) that they stand in.
    imports: Vec<Import>,
    /// Paths of two words and more: where they stand, the path, the line.
    paths: Vec<(Path, Path, usize)>,
    /// Every single word.
    words: BTreeSet<String>,
    /// Inline modules.
    inline: Vec<Path>,
}

struct Import {
    place: Path,
    name: String,
    path: Path,
    line: usize,
    public: bool,
}

/// Who uses whom among these modules.
pub fn uses(modules: &[Module]) -> Uses {
    let said: Vec<(&Module, Said)> = modules.iter().map(|module| (module, said(module))).collect();
    let resolver = Resolver::of(&said);
    let mut uses = Uses::new();
    for (module, said) in &said {
        let own = uses.entry(module.path.join("::")).or_default();
        let imported = said
            .imports
            .iter()
            .filter(|import| !import.public || said.words.contains(&import.name))
            .map(|import| (&import.place, &import.path, import.line));
        let named = said.paths.iter().map(|(place, path, line)| (place, path, *line));
        for (place, path, line) in imported.chain(named) {
            if let Some(other) = resolver.definer(place, path).filter(|other| *other != module.path) {
                let first = own.entry(other.join("::")).or_insert(line);
                *first = line.min(*first);
            }
        }
    }
    uses
}

struct Resolver {
    /// Modules with files.
    files: BTreeSet<Path>,
    /// All modules.
    all: BTreeSet<Path>,
    /// What a name stands for in a module that imports it.
    imports: BTreeMap<(Path, String), Path>,
}

impl Resolver {
    fn of(said: &[(&Module, Said)]) -> Self {
        let files: BTreeSet<Path> = said.iter().map(|(module, _)| module.path.clone()).collect();
        let inline = said.iter().flat_map(|(_, said)| said.inline.iter().cloned());
        let all = files.iter().cloned().chain(inline).collect();
        let mut resolver = Self { files, all, imports: BTreeMap::new() };
        for import in said.iter().flat_map(|(_, said)| &said.imports) {
            if let Some(path) = resolver.absolute(&import.place, &import.path) {
                resolver.imports.insert((import.place.clone(), import.name.clone()), path);
            }
        }
        resolver
    }

    /// The path from the crate's root, where it is one of this crate.
    fn absolute(&self, place: &[String], path: &[String]) -> Option<Path> {
        let first = path.first()?;
        let mut at = place.to_vec();
        let rest = match first.as_str() {
            "crate" => {
                at.clear();
                &path[1..]
            }
            "self" => &path[1..],
            "super" => {
                let up = path.iter().take_while(|word| *word == "super").count();
                at.truncate(at.len().checked_sub(up)?);
                &path[up..]
            }
            _ => {
                let child: Path = place.iter().chain([first]).cloned().collect();
                match self.imports.get(&(place.to_vec(), first.clone())) {
                    Some(meant) => at.clone_from(meant),
                    None if self.all.contains(&child) => at = child,
                    None => return None,
                }
                &path[1..]
            }
        };
        at.extend(rest.iter().cloned());
        Some(at)
    }

    /// The module with a file that defines what a path names; `None` where the path names a
    /// module itself, or something outside.
    fn definer(&self, place: &[String], path: &[String]) -> Option<Path> {
        let mut path = self.absolute(place, path)?;
        // As many steps as re-exports may be chained.
        for _ in 0..8 {
            let depth = (0..=path.len()).rev().find(|depth| self.all.contains(&path[..*depth]))?;
            let (module, rest) = path.split_at(depth);
            let item = rest.first()?;
            match self.imports.get(&(module.to_vec(), item.clone())) {
                Some(meant) => path = meant.iter().chain(&rest[1..]).cloned().collect(),
                None => {
                    let file = (0..=depth).rev().find(|depth| self.files.contains(&path[..*depth]))?;
                    return Some(path[..file].to_vec());
                }
            }
        }
        panic!("{} is re-exported in a circle", path.join("::"));
    }
}

fn said(module: &Module) -> Said {
    let mut said = Said::default();
    listen(&module.tokens, &module.path, &mut said);
    said
}

fn listen(tokens: &[Token], place: &[String], said: &mut Said) {
    let mut public = false;
    let mut before: [Option<&Token>; 2] = [None, None];
    let mut rest = tokens.iter().peekable();
    while let Some(token) = rest.next() {
        // What stands behind `<T>::` is not looked up from here.
        let inner = before.iter().all(|token| token.is_some_and(|t| t.is_mark(':')));
        before = [before[1], Some(token)];
        match &token.kind {
            Kind::Word(word) if word == "pub" => {
                public = true;
                // `pub(crate)` and the like.
                rest.next_if(|t| t.nested('(').is_some());
                continue;
            }
            // `use<'a>` names lifetimes.
            Kind::Word(word) if word == "use" && !rest.peek().is_some_and(|t| t.is_mark('<')) => {
                tree(&mut rest, Vec::new(), &mut |path, name| {
                    let (place, line) = (place.to_vec(), token.first);
                    said.imports.push(Import { place, name, path, line, public });
                });
            }
            Kind::Word(word) if word == "mod" => {
                let name = rest.next().and_then(Token::word).unwrap_or_default().to_owned();
                if let Some(inner) = rest.peek().and_then(|t| t.nested('{')) {
                    let inside: Path = place.iter().cloned().chain([name]).collect();
                    said.inline.push(inside.clone());
                    listen(inner, &inside, said);
                    rest.next();
                }
            }
            Kind::Word(word) => {
                let path = words(word, &mut rest);
                if !inner {
                    said.words.insert(word.clone());
                    if path.len() > 1 {
                        said.paths.push((place.to_vec(), path, token.first));
                    }
                }
            }
            Kind::Nested(_, inner) => listen(inner, place, said),
            Kind::Mark(_) => {}
        }
        public = false;
    }
}

/// The words of a path, `::` between them, from its first.
fn words(first: &str, rest: &mut Peekable<Iter<'_, Token>>) -> Path {
    let mut path = vec![first.to_owned()];
    loop {
        let mut ahead = rest.clone();
        let colons = [ahead.next(), ahead.next()].iter().all(|t| t.is_some_and(|t| t.is_mark(':')));
        let Some(word) = ahead.next().and_then(Token::word).filter(|_| colons) else { return path };
        path.push(word.to_owned());
        *rest = ahead;
    }
}

/// The imports of a `use` tree below a path: each with the name that it brings in.
fn tree(rest: &mut Peekable<Iter<'_, Token>>, mut path: Path, found: &mut impl FnMut(Path, String)) {
    while let Some(token) = rest.next() {
        match &token.kind {
            Kind::Word(word) if word == "as" => {
                let name = rest.next().and_then(Token::word).unwrap_or_default();
                return found(path, name.to_owned());
            }
            Kind::Word(word) => path.push(word.clone()),
            Kind::Nested(_, inner) => {
                for branch in inner.split(|t| t.is_mark(',')).filter(|branch| !branch.is_empty()) {
                    tree(&mut branch.iter().peekable(), path.clone(), found);
                }
                return;
            }
            Kind::Mark('*') => path.push("*".to_owned()),
            Kind::Mark(';') => break,
            Kind::Mark(_) => {}
        }
    }
    // `a::{self}` brings in `a`.
    if path.len() > 1 && path.last().is_some_and(|last| last == "self") {
        path.pop();
    }
    if let Some(name) = path.last().cloned() {
        found(path, name);
    }
}
