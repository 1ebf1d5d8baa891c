//! The order in which a stage of a pipeline does its micro-batches.

/// One turn of a stage.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Turn {
    /// The forward pass of a micro-batch.
    Forward(u32),
    /// Its backward pass.
    Backward(u32),
}

/// 1F1B with a flush (PipeDream-flush; Narayanan et al., 2021, section 2.2): a stage begins with as many forward passes
/// as there are stages after it, then does one forward and one backward in turn, and ends with the backward passes that
/// are left. A stage has at most as many micro-batches under way as there are stages from it on.
pub fn one_forward_one_backward(stage: u32, stages: u32, micro_batches: u32) -> Vec<Turn> {
    let ahead = (stages - 1 - stage).min(micro_batches);
    let mut turns: Vec<Turn> = (0..ahead).map(Turn::Forward).collect();
    for micro_batch in 0..micro_batches - ahead {
        turns.extend([Turn::Forward(ahead + micro_batch), Turn::Backward(micro_batch)]);
    }
    turns.extend((micro_batches - ahead..micro_batches).map(Turn::Backward));
    turns
}
