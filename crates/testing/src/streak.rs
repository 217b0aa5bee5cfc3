//! A map for streams in which the same name comes many times in a row.

use std::collections::HashMap;

/// Values by name. The one that was used last stands aside, so that using it again costs one comparison.
#[derive(Debug)]
pub(crate) struct Streak<T> {
    last: Option<(Box<str>, T)>,
    others: HashMap<Box<str>, T>,
}

impl<T> Default for Streak<T> {
    fn default() -> Self {
        Self { last: None, others: HashMap::new() }
    }
}

impl<T> Streak<T> {
    /// The value of a name, made if there is none.
    pub(crate) fn entry(&mut self, name: &str) -> &mut T
    where
        T: Default,
    {
        if !self.is_last(name) {
            let wanted = self.others.remove_entry(name).unwrap_or_else(|| (Box::from(name), T::default()));
            self.put_aside(wanted);
        }
        // Just put there.
        &mut self.last.get_or_insert_with(|| (Box::from(name), T::default())).1
    }

    /// The value of a name, if there is one.
    pub(crate) fn get_mut(&mut self, name: &str) -> Option<&mut T> {
        if !self.is_last(name) {
            // Where nothing is, a name need not be hashed to know it.
            let wanted = if self.others.is_empty() { None } else { self.others.remove_entry(name) };
            self.put_aside(wanted?);
        }
        self.last.as_mut().map(|(_, value)| value)
    }

    /// Takes a value out.
    pub(crate) fn remove(&mut self, name: &str) -> Option<T> {
        if self.is_last(name) {
            return self.last.take().map(|(_, value)| value);
        }
        if self.others.is_empty() { None } else { self.others.remove(name) }
    }

    pub(crate) fn len(&self) -> usize {
        self.others.len() + usize::from(self.last.is_some())
    }

    /// All of them, in the order of their names, so that the same input says the same.
    pub(crate) fn into_sorted(self) -> Vec<(Box<str>, T)> {
        let mut all: Vec<_> = self.last.into_iter().chain(self.others).collect();
        all.sort_by(|a, b| a.0.cmp(&b.0));
        all
    }

    fn is_last(&self, name: &str) -> bool {
        self.last.as_ref().is_some_and(|(last, _)| **last == *name)
    }

    fn put_aside(&mut self, entry: (Box<str>, T)) {
        if let Some((name, value)) = self.last.replace(entry) {
            self.others.insert(name, value);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// It is a map: whatever is done to it, a plain one says the same.
        #[test]
        fn it_is_a_map(steps in proptest::collection::vec((0u8..3, "[abc]", 0u8..9), 0..40)) {
            let (mut streak, mut plain) = (Streak::<u8>::default(), HashMap::<String, u8>::new());
            for (step, name, value) in steps {
                match step {
                    0 => {
                        *streak.entry(&name) = value;
                        plain.insert(name, value);
                    }
                    1 => prop_assert_eq!(streak.remove(&name), plain.remove(&name)),
                    _ => prop_assert_eq!(streak.get_mut(&name).copied(), plain.get(&name).copied()),
                }
                prop_assert_eq!(streak.len(), plain.len());
            }
            let mut plain: Vec<_> = plain.into_iter().map(|(name, value)| (Box::from(name), value)).collect();
            plain.sort();
            prop_assert_eq!(streak.into_sorted(), plain);
        }
    }
}
