//! The passes of a pipeline stage: the order in which its ranks compute, sum and exchange. It stands here once, for the
//! code that builds the steps ([`super::iteration`]) and the code that counts them ([`super::count`]).

use std::ops::Range;

use super::{Shape, Training};

/// A receiver of the parts of a pass, such as one that builds steps of them.
pub(super) trait Passes<'a> {
    fn training(&self) -> &'a Training;

    fn shape(&self) -> Shape;

    /// The stage whose passes these are.
    fn stage(&self) -> u32;

    /// How many pieces it has: buckets cover them all.
    fn pieces(&self) -> usize;

    /// Computations follow on all ranks of the stage, each a `tensor`-th of this many operations.
    fn compute(&mut self, flops: u128);

    /// Makes steps of the computations that are pending.
    fn flush(&mut self);

    /// An all-reduce of activations in each tensor group, if it has several ranks: two a layer in each direction
    /// (Shoeybi et al., 2019).
    fn tensor_sum(&mut self, name: &str);

    /// From the router to the experts and back; `factor` 1 forwards, 2 backwards.
    fn through_experts(&mut self, layer: u32, factor: u128);

    /// The first forward pass comes to a piece: if its bucket begins there, it waits for that.
    fn await_parameters(&mut self, piece: usize);

    /// Gradients of buckets that begin with this piece are summed.
    fn sum_buckets_at(&mut self, piece: usize);

    /// Layers of the stage, counted over the model.
    fn layers(&self) -> Range<u32> {
        let each = self.shape().layers / self.training().degrees.pipeline;
        self.stage() * each..(self.stage() + 1) * each
    }

    /// Whether the stage is the last.
    fn is_last(&self) -> bool {
        self.stage() + 1 == self.training().degrees.pipeline
    }

    /// A forward pass, perhaps that of the first micro-batch.
    fn forward(&mut self, first: bool) {
        let gradients = self.training().gradients;
        let awaits = first && gradients.sharded && gradients.overlap;
        let mut piece = 0;
        if self.stage() == 0 {
            if awaits {
                self.await_parameters(piece);
            }
            piece += 1;
            // Each tensor rank has looked up the tokens of its part of the vocabulary (Shoeybi et al., 2019).
            self.tensor_sum("embedding");
        }
        for layer in self.layers() {
            if awaits {
                self.await_parameters(piece);
            }
            piece += 1;
            self.layer_forward(layer);
        }
        if self.is_last() {
            if awaits {
                self.await_parameters(piece);
            }
            self.compute(self.shape().logit_flops(self.training().tokens()));
        }
        self.flush();
    }

    fn layer_forward(&mut self, layer: u32) {
        let (shape, tokens) = (self.shape(), self.training().tokens());
        self.compute(shape.attention_flops(tokens));
        self.tensor_sum("attention");
        match shape.experts {
            None => self.compute(shape.inner_flops(tokens)),
            Some(_) => {
                self.compute(shape.router_flops(tokens));
                self.through_experts(layer, 1);
            }
        }
        self.tensor_sum("feed-forward");
    }

    /// A backward pass computes twice as much as a forward pass (Narayanan et al., 2021, appendix): gradients of
    /// activations and of parameters.
    fn layer_backward(&mut self, layer: u32) {
        let (shape, tokens) = (self.shape(), self.training().tokens());
        match shape.experts {
            None => self.compute(2 * shape.inner_flops(tokens)),
            Some(_) => {
                self.through_experts(layer, 2);
                self.compute(2 * shape.router_flops(tokens));
            }
        }
        self.tensor_sum("feed-forward gradients");
        self.compute(2 * shape.attention_flops(tokens));
        self.tensor_sum("attention gradients");
    }

    /// The backward pass, and with or after that of the last micro-batch the sums of gradients.
    fn backward(&mut self, last: bool) {
        let overlap = self.training().gradients.overlap;
        let layers = self.layers();
        let mut piece = self.pieces();
        if self.is_last() {
            self.compute(2 * self.shape().logit_flops(self.training().tokens()));
            self.tensor_sum("logit gradients");
            if piece > layers.len() + usize::from(self.stage() == 0) {
                piece -= 1;
                self.sum_gradients(last && overlap, piece);
            }
        }
        for layer in layers.rev() {
            if self.training().recompute {
                self.layer_forward(layer);
            }
            self.layer_backward(layer);
            piece -= 1;
            self.sum_gradients(last && overlap, piece);
        }
        if self.stage() == 0 {
            self.sum_gradients(last && overlap, 0);
        }
        self.flush();
        if last && !overlap {
            (0..self.pieces()).rev().for_each(|piece| self.sum_buckets_at(piece));
        }
    }

    /// The gradients of a piece are complete: buckets that it completes are summed, if that may be beside the pass.
    fn sum_gradients(&mut self, beside: bool, piece: usize) {
        if beside {
            self.sum_buckets_at(piece);
        }
    }
}
