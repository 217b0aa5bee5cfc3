//! Finding the way around, when tasks would wait for each other.

use std::collections::HashMap;

/// A cycle in a graph, as the nodes on its way with the first one again at the end.
///
/// Walks without recursion: a chain of a hundred thousand tasks is no reason to run out of stack.
pub(crate) fn find<'a>(edges: &HashMap<&'a str, Vec<&'a str>>, starts: &[&'a str]) -> Option<Vec<&'a str>> {
    let mut visits: HashMap<&str, Visit> = HashMap::new();
    for start in starts {
        // The way from the start to where we are, each with the place of the next edge to try.
        let mut way: Vec<(&'a str, usize)> = Vec::new();
        if !visits.contains_key(start) {
            visits.insert(start, Visit::OnTheWay);
            way.push((start, 0));
        }
        while let Some((node, next)) = way.last_mut() {
            let target = edges.get(node).and_then(|targets| targets.get(*next)).copied();
            *next += 1;
            match target.map(|target| (target, visits.get(target))) {
                None => {
                    visits.insert(node, Visit::Left);
                    way.pop();
                }
                Some((target, Some(Visit::OnTheWay))) => return Some(way_around(&way, target)),
                Some((_, Some(Visit::Left))) => {}
                Some((target, None)) => {
                    visits.insert(target, Visit::OnTheWay);
                    way.push((target, 0));
                }
            }
        }
    }
    None
}

#[derive(Clone, Copy)]
enum Visit {
    OnTheWay,
    Left,
}

fn way_around<'a>(way: &[(&'a str, usize)], back_to: &'a str) -> Vec<&'a str> {
    let around = way.iter().map(|(node, _)| *node).skip_while(|node| *node != back_to);
    around.chain([back_to]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cycle_in(edges: &[(&'static str, &'static str)]) -> Option<Vec<&'static str>> {
        let mut graph: HashMap<&str, Vec<&str>> = HashMap::new();
        for (from, to) in edges {
            graph.entry(from).or_default().push(to);
        }
        find(&graph, &edges.iter().map(|(from, _)| *from).collect::<Vec<_>>())
    }

    #[test]
    fn only_a_way_back_is_a_cycle() {
        assert_eq!(cycle_in(&[("a", "b"), ("b", "c"), ("a", "c")]), None);
        assert_eq!(cycle_in(&[("a", "b"), ("a", "c"), ("b", "d"), ("c", "d")]), None);
        assert_eq!(
            cycle_in(&[("x", "a"), ("a", "b"), ("b", "c"), ("c", "a")]),
            Some(vec!["a", "b", "c", "a"])
        );
        assert_eq!(cycle_in(&[("a", "a")]), Some(vec!["a", "a"]));
    }

    #[test]
    fn a_long_chain_does_not_overflow_the_stack() {
        let names: Vec<String> = (0..100_000).map(|number| number.to_string()).collect();
        let chain: HashMap<&str, Vec<&str>> =
            names.windows(2).map(|pair| (pair[0].as_str(), vec![pair[1].as_str()])).collect();
        assert_eq!(find(&chain, &[&names[0]]), None);
    }
}
