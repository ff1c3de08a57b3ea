//! What is kept of all objects of a kind, by the trait that its folder declares for what is asked of it.

use std::any::{Any, TypeId};
use std::fmt;
use std::sync::Arc;

/// The listers of the kinds, by the trait that a kind's folder declares for what its rules ask.
#[derive(Clone, Default)]
pub struct KindListers(Vec<(TypeId, Arc<dyn Any + Send + Sync>)>);

impl fmt::Debug for KindListers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "KindListers({})", self.0.len())
    }
}

impl KindListers {
    /// Adds the lister that answers the questions of `T`, a trait object such as `dyn PackageLister`.
    #[must_use]
    pub fn with<T: ?Sized + Send + Sync + 'static>(mut self, lister: Arc<T>) -> Self {
        self.0.push((TypeId::of::<T>(), Arc::new(lister)));
        self
    }

    /// The lister of a kind, where the cache has one.
    pub fn get<T: ?Sized + Send + Sync + 'static>(&self) -> Option<&T> {
        let (_, lister) = self.0.iter().find(|(id, _)| *id == TypeId::of::<T>())?;
        lister.downcast_ref::<Arc<T>>().map(AsRef::as_ref)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    trait Colors: Send + Sync {
        fn color(&self) -> &'static str;
    }

    trait Shapes: Send + Sync {}

    struct Red;

    impl Colors for Red {
        fn color(&self) -> &'static str {
            "red"
        }
    }

    #[test]
    fn a_lister_is_found_by_its_trait() {
        let listers = KindListers::default().with::<dyn Colors>(Arc::new(Red));
        assert_eq!(listers.get::<dyn Colors>().map(Colors::color), Some("red"));
        assert!(listers.get::<dyn Shapes>().is_none());
    }
}
