//! Two broadcast trees of one source whose paths to any node share no link and no other node, where the rack has two
//! such paths. Refreshes go over one and the other in turn: if routing does not learn that a link or a node is dead,
//! every node that can be reached hears of a flow by one of two refreshes. Shortest-path trees can't do that, since all
//! of them reach a neighbour of the source by the same link.
//!
//! The nodes are numbered so that each has a neighbour before it and one behind it (an st-numbering; Tarjan: Two
//! streamlined depth-first search algorithms, Fundamenta Informaticae 9, 1986). The source is first, and one neighbour
//! of it last. In one tree each node is below a neighbour with a lower number, in the other below one with a higher
//! number (Itai, Rodeh: The multi-tree approach to reliability in distributed networks, 1988), the one that is nearest
//! to the source. On the paper's 8 x 8 x 8 torus that takes 15 to 23 hops, where shortest paths take 12.

use std::collections::VecDeque;

/// By node: its neighbours.
pub(super) type Neighbours = [Vec<usize>];

/// By node: its parent in the tree of lower numbers, or of higher ones. None for the source, and where no path leads.
pub(super) fn parents(of: &Neighbours, source: usize, higher: bool) -> Vec<Option<usize>> {
    let mut order = numbering(of, source);
    let mut number = vec![usize::MAX; of.len()];
    order.iter().enumerate().for_each(|(place, &node)| number[node] = place);
    let last = order.last().copied().filter(|&last| last != source);
    if higher {
        order[1..].reverse();
    }
    let (mut parents, mut depths) = (vec![None; of.len()], vec![usize::MAX; of.len()]);
    depths[source] = 0;
    for &node in &order[1..] {
        // The link between the source and the last node belongs to the tree of higher numbers.
        let may = |&&by: &&usize| match higher {
            true if by == source => Some(node) == last,
            true => number[by] > number[node],
            false => number[by] < number[node] && !(by == source && Some(node) == last),
        };
        let parent = of[node].iter().filter(|by| depths[**by] < usize::MAX).filter(may).min_by_key(|by| depths[**by]);
        if let Some(&parent) = parent {
            (parents[node], depths[node]) = (Some(parent), depths[parent] + 1);
        }
    }
    // Where there are no two paths, nodes are reached by the one that there is.
    let mut reached: VecDeque<usize> = order.iter().copied().filter(|&node| depths[node] < usize::MAX).collect();
    while let Some(node) = reached.pop_front() {
        for &below in &of[node] {
            if depths[below] == usize::MAX {
                (parents[below], depths[below]) = (Some(node), depths[node] + 1);
                reached.push_back(below);
            }
        }
    }
    parents
}

/// The nodes that a path leads to, in an order in which each but the first and the last has neighbours on both sides,
/// if the graph falls apart without no single node.
fn numbering(of: &Neighbours, source: usize) -> Vec<usize> {
    let Search { visited, parent, low } = Search::from(of, source);
    let mut order: Vec<usize> = visited.iter().take(2).copied().collect();
    // Of nodes on the present path: whether those below that reach back to it go before their parents.
    let mut before = vec![false; of.len()];
    before[source] = true;
    for &node in visited.iter().skip(2) {
        let up = parent[node];
        let place = order.iter().position(|&of| of == up).expect("parents are visited first");
        let here = before[low[node]];
        // Nothing goes before the source.
        order.insert(if here && place > 0 { place } else { place + 1 }, node);
        before[up] = !here;
    }
    order
}

/// A depth-first search.
struct Search {
    visited: Vec<usize>,
    parent: Vec<usize>,
    /// By node: the first visited one that it or a node below reaches by one link.
    low: Vec<usize>,
}

impl Search {
    fn from(of: &Neighbours, source: usize) -> Search {
        let mut when = vec![usize::MAX; of.len()];
        let mut search = Search { visited: vec![source], parent: vec![source; of.len()], low: (0..of.len()).collect() };
        when[source] = 0;
        let mut path = vec![(source, 0)];
        while let Some((node, next)) = path.last_mut() {
            let (node, to) = (*node, of[*node].get(*next).copied());
            *next += 1;
            let reaches = match to {
                Some(to) if when[to] == usize::MAX => {
                    when[to] = search.visited.len();
                    search.visited.push(to);
                    search.parent[to] = node;
                    path.push((to, 0));
                    continue;
                }
                Some(to) if to != search.parent[node] => (node, to),
                Some(_) => continue,
                None => {
                    path.pop();
                    (search.parent[node], search.low[node])
                }
            };
            if when[reaches.1] < when[search.low[reaches.0]] {
                search.low[reaches.0] = reaches.1;
            }
        }
        search
    }
}

#[cfg(test)]
mod tests;
