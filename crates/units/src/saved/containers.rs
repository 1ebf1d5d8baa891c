//! How containers are written: how many items, and each of them.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap, HashMap, HashSet, VecDeque};
use std::hash::{BuildHasher, Hash};
use std::sync::Arc;

use super::{Damaged, Loader, Saved, Saver, Tree};

impl Saved for () {
    fn save(&self, _: &mut Saver) {}

    fn load(&mut self, _: &mut Loader<'_>) -> Result<(), Damaged> {
        Ok(())
    }

    fn make(_: &mut Loader<'_>) -> Result<(), Damaged> {
        Ok(())
    }
}

/// Shared values are built.
impl<T: ?Sized> Saved for Arc<T> {
    fn save(&self, to: &mut Saver) {
        if let Some(tree) = to.drawn() {
            tree.add(Tree::Text("as built".to_owned()));
        }
    }

    fn load(&mut self, _: &mut Loader<'_>) -> Result<(), Damaged> {
        Ok(())
    }

    fn make(from: &mut Loader<'_>) -> Result<Self, Damaged> {
        from.built(std::any::type_name::<T>())
    }
}

impl<T: Saved> Saved for Box<T> {
    fn save(&self, to: &mut Saver) {
        (**self).save(to);
    }

    fn load(&mut self, from: &mut Loader<'_>) -> Result<(), Damaged> {
        (**self).load(from)
    }

    fn make(from: &mut Loader<'_>) -> Result<Self, Damaged> {
        T::make(from).map(Box::new)
    }
}

/// Values behind a trait are built.
#[macro_export]
macro_rules! save_behind {
    ($kind:ty) => {
        impl $crate::Saved for Box<$kind> {
            fn save(&self, to: &mut $crate::saved::Saver) {
                (**self).save(to);
            }

            fn load(&mut self, from: &mut $crate::saved::Loader<'_>) -> Result<(), $crate::saved::Damaged> {
                (**self).load(from)
            }

            fn make(from: &mut $crate::saved::Loader<'_>) -> Result<Self, $crate::saved::Damaged> {
                from.built(stringify!($kind))
            }
        }
    };
}

impl<T: Saved> Saved for Option<T> {
    fn save(&self, to: &mut Saver) {
        to.hidden(self.is_some().into());
        match (self, to.drawn()) {
            (Some(of), _) => of.save(to),
            (None, Some(tree)) => tree.add(Tree::None),
            (None, None) => {}
        }
    }

    fn load(&mut self, from: &mut Loader<'_>) -> Result<(), Damaged> {
        match (bool::make(from)?, &mut *self) {
            (true, Some(of)) => return of.load(from),
            (true, None) => *self = Some(T::make(from)?),
            (false, _) => *self = None,
        }
        Ok(())
    }

    fn make(from: &mut Loader<'_>) -> Result<Self, Damaged> {
        Ok(if bool::make(from)? { Some(T::make(from)?) } else { None })
    }
}

impl<T: Saved, E: Saved> Saved for Result<T, E> {
    fn save(&self, to: &mut Saver) {
        to.hidden(self.is_ok().into());
        match self {
            Ok(of) => of.save(to),
            Err(of) => of.save(to),
        }
    }

    fn load(&mut self, from: &mut Loader<'_>) -> Result<(), Damaged> {
        *self = Saved::make(from)?;
        Ok(())
    }

    fn make(from: &mut Loader<'_>) -> Result<Self, Damaged> {
        Ok(if bool::make(from)? { Ok(T::make(from)?) } else { Err(E::make(from)?) })
    }
}

impl<T: Saved> Saved for Reverse<T> {
    fn save(&self, to: &mut Saver) {
        self.0.save(to);
    }

    fn load(&mut self, from: &mut Loader<'_>) -> Result<(), Damaged> {
        self.0.load(from)
    }

    fn make(from: &mut Loader<'_>) -> Result<Self, Damaged> {
        T::make(from).map(Reverse)
    }
}

/// Writes items one after the other.
fn save_each<'a, T: Saved + 'a>(items: impl ExactSizeIterator<Item = &'a T>, to: &mut Saver) {
    to.begin_list(items.len());
    items.for_each(|of| of.save(to));
    to.end();
}

/// Items of a list that has to be as long as it is.
impl<T: Saved> Saved for [T] {
    fn save(&self, to: &mut Saver) {
        save_each(self.iter(), to);
    }

    fn load(&mut self, from: &mut Loader<'_>) -> Result<(), Damaged> {
        if from.count()? != self.len() {
            return Err(from.damaged("a list has another length"));
        }
        self.iter_mut().try_for_each(|of| of.load(from))
    }

    #[expect(dead_code, reason = "what has no size of its own is not made")]
    fn make(from: &mut Loader<'_>) -> Result<Self, Damaged>
    where
        Self: Sized,
    {
        from.built("a part of a list")
    }
}

impl<T: Saved> Saved for Box<[T]> {
    fn save(&self, to: &mut Saver) {
        (**self).save(to);
    }

    fn load(&mut self, from: &mut Loader<'_>) -> Result<(), Damaged> {
        (**self).load(from)
    }

    fn make(from: &mut Loader<'_>) -> Result<Self, Damaged> {
        Ok(Vec::make(from)?.into())
    }
}

impl<T: Saved, const N: usize> Saved for [T; N] {
    fn save(&self, to: &mut Saver) {
        if let Some(tree) = to.drawn() {
            tree.begin(false);
        }
        self.iter().for_each(|of| of.save(to));
        to.end();
    }

    fn load(&mut self, from: &mut Loader<'_>) -> Result<(), Damaged> {
        self.iter_mut().try_for_each(|of| of.load(from))
    }

    fn make(from: &mut Loader<'_>) -> Result<Self, Damaged> {
        let items = (0..N).map(|_| T::make(from)).collect::<Result<Vec<T>, Damaged>>()?;
        items.try_into().map_err(|_| from.damaged("a list has another length"))
    }
}

macro_rules! lists {
    ($($list:ident: $push:ident,)*) => {$(
        impl<T: Saved> Saved for $list<T> {
            fn save(&self, to: &mut Saver) {
                save_each(self.iter(), to);
            }

            fn load(&mut self, from: &mut Loader<'_>) -> Result<(), Damaged> {
                let count = from.count()?;
                self.truncate(count);
                self.iter_mut().try_for_each(|of| of.load(from))?;
                while self.len() < count {
                    self.$push(T::make(from)?);
                }
                Ok(())
            }

            fn make(from: &mut Loader<'_>) -> Result<Self, Damaged> {
                let mut list = $list::new();
                list.load(from)?;
                Ok(list)
            }
        }
    )*};
}

lists!(Vec: push, VecDeque: push_back,);

/// As it lies in memory, so that it is the same heap again.
impl<T: Saved + Ord> Saved for BinaryHeap<T> {
    fn save(&self, to: &mut Saver) {
        save_each(self.as_slice().iter(), to);
    }

    fn load(&mut self, from: &mut Loader<'_>) -> Result<(), Damaged> {
        *self = Saved::make(from)?;
        Ok(())
    }

    fn make(from: &mut Loader<'_>) -> Result<Self, Damaged> {
        Vec::make(from).map(BinaryHeap::from)
    }
}

macro_rules! sets {
    ($($set:ident<T $(, $hasher:ident: $bound:ident)?>: $($need:ident)+;)*) => {$(
        #[allow(clippy::disallowed_methods, reason = "they are put in order")]
        impl<T: Saved $(+ $need)+ $(, $hasher: $bound + Default)?> Saved for $set<T $(, $hasher)?> {
            fn save(&self, to: &mut Saver) {
                let mut items: Vec<&T> = self.iter().collect();
                items.sort_unstable();
                save_each(items.into_iter(), to);
            }

            fn load(&mut self, from: &mut Loader<'_>) -> Result<(), Damaged> {
                *self = Saved::make(from)?;
                Ok(())
            }

            fn make(from: &mut Loader<'_>) -> Result<Self, Damaged> {
                Vec::make(from).map(Vec::into_iter).map(Iterator::collect)
            }
        }
    )*};
}

sets! {
    BTreeSet<T>: Ord;
    HashSet<T, S: BuildHasher>: Ord Hash;
}

/// Values of keys that were there are read over, because a scenario may have built them.
macro_rules! maps {
    ($($map:ident<K, V $(, $hasher:ident: $bound:ident)?>: $($need:ident)+;)*) => {$(
        #[allow(clippy::disallowed_methods, reason = "they are put in order")]
        impl<K: Saved $(+ $need)+, V: Saved $(, $hasher: $bound + Default)?> Saved for $map<K, V $(, $hasher)?> {
            fn save(&self, to: &mut Saver) {
                let mut items: Vec<(&K, &V)> = self.iter().collect();
                items.sort_unstable_by(|one, other| one.0.cmp(other.0));
                to.begin_list(items.len());
                for (key, value) in items {
                    key.save(to);
                    value.save(to);
                }
                if let Some(tree) = to.drawn() {
                    tree.end_map();
                }
            }

            fn load(&mut self, from: &mut Loader<'_>) -> Result<(), Damaged> {
                let mut before = std::mem::take(self);
                for _ in 0..from.count()? {
                    let key = K::make(from)?;
                    let value = match before.remove(&key) {
                        Some(mut value) => {
                            value.load(from)?;
                            value
                        }
                        None => V::make(from)?,
                    };
                    self.insert(key, value);
                }
                Ok(())
            }

            fn make(from: &mut Loader<'_>) -> Result<Self, Damaged> {
                let mut map = $map::default();
                map.load(from)?;
                Ok(map)
            }
        }
    )*};
}

maps! {
    BTreeMap<K, V>: Ord;
    HashMap<K, V, S: BuildHasher>: Ord Hash;
}

macro_rules! tuples {
    ($(($($name:ident),+))*) => {$(
        impl<$($name: Saved),+> Saved for ($($name,)+) {
            #[allow(non_snake_case)]
            fn save(&self, to: &mut Saver) {
                let ($($name,)+) = self;
                if let Some(tree) = to.drawn() {
                    tree.begin(false);
                }
                $($name.save(to);)+
                to.end();
            }

            #[allow(non_snake_case)]
            fn load(&mut self, from: &mut Loader<'_>) -> Result<(), Damaged> {
                let ($($name,)+) = self;
                $($name.load(from)?;)+
                Ok(())
            }

            fn make(from: &mut Loader<'_>) -> Result<Self, Damaged> {
                Ok(($($name::make(from)?,)+))
            }
        }
    )*};
}

tuples!((A, B)(A, B, C)(A, B, C, D)(A, B, C, D, E));
