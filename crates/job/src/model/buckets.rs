//! Which gradients are summed together, and when.

use std::ops::Range;

use super::{Family, Layer, Training};

/// Parameters of a stage that are summed at once: pieces side by side.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Bucket {
    /// Which pieces of the stage.
    pub pieces: Range<usize>,
    /// Their parameters at a rank.
    pub elements: u64,
}

/// The pieces of a stage in the order of a forward pass: the embedding of the input on the first stage, layers, the
/// embedding of the output on the last, unless that is the one of the input.
pub(super) fn pieces(training: &Training, stage: u32) -> Vec<Layer> {
    let (shape, degrees) = (training.model.shape(), training.degrees);
    let dense = |dense| Layer { dense, expert: 0 };
    let layer = shape.layer(degrees.tensor, degrees.expert);
    let mut pieces = Vec::new();
    if stage == 0 {
        pieces.push(dense(shape.embedding(degrees.tensor, true)));
    }
    pieces.extend((0..shape.layers / degrees.pipeline).map(|_| layer));
    let last = stage + 1 == degrees.pipeline;
    // A stage that has the input's too sums a shared one with it.
    if last && (stage > 0 || shape.family == Family::Llama) {
        pieces.push(dense(shape.embedding(degrees.tensor, false)));
    }
    pieces
}

/// The buckets of a stage, from the last pieces to the first.
pub(super) fn buckets(training: &Training, stage: u32, elements_of: impl Fn(&Layer) -> u64) -> Vec<Bucket> {
    let pieces = pieces(training, stage);
    let full = training.bucket_elements();
    let mut buckets = Vec::new();
    let (mut end, mut elements) = (pieces.len(), 0);
    for at in (0..pieces.len()).rev() {
        elements += elements_of(&pieces[at]);
        if elements > 0 && (elements >= full || at == 0) {
            buckets.push(Bucket { pieces: at..end, elements });
            (end, elements) = (at, 0);
        }
    }
    buckets
}
