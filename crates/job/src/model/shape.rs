//! Sizes of a model by formula: parameters, floating-point operations, activations.

use units::Problem;

use super::{Family, Gpt, Model, Moe};

/// All sizes of a model.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Shape {
    /// Transformer layers.
    pub layers: u32,
    /// Length of a token's vector, h.
    pub hidden: u32,
    /// Tokens of a sequence, s.
    pub sequence: u32,
    /// Tokens that there are, V.
    pub vocabulary: u32,
    /// Length of a token's keys, and of its values.
    pub key_value: u32,
    /// Length of the inner vector of a feed-forward layer or an expert.
    pub feed_forward: u32,
    /// What else differs.
    pub family: Family,
    /// The experts of each layer, if it has any.
    pub experts: Option<Experts>,
}

/// The experts of a layer.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Experts {
    /// How many.
    pub count: u32,
    /// How many each token goes to.
    pub top_k: u32,
    /// Gini coefficient of their loads.
    pub gini: f64,
}

/// Parameters that one rank has of a part of the model.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Layer {
    /// Parameters that all ranks of a data group have.
    pub dense: u64,
    /// Parameters that every `expert`-th rank of a data group has.
    pub expert: u64,
}

impl Model {
    /// All its sizes.
    pub fn shape(&self) -> Shape {
        let gpt = |layers, hidden| Gpt {
            layers,
            hidden,
            sequence: 2_048,
            vocabulary: 51_200,
            feed_forward: None,
            key_value: None,
            family: Family::Gpt,
        };
        let llama = |layers, hidden, feed_forward| Gpt {
            layers,
            hidden,
            sequence: 8_192,
            vocabulary: 128_256,
            feed_forward: Some(feed_forward),
            key_value: Some(1_024),
            family: Family::Llama,
        };
        match *self {
            Model::Gpt3 => gpt(96, 12_288).shape(),
            Model::Megatron1T => gpt(128, 25_600).shape(),
            Model::Llama8 => llama(32, 4_096, 14_336).shape(),
            Model::Llama70 => llama(80, 8_192, 28_672).shape(),
            Model::Llama405 => llama(126, 16_384, 53_248).shape(),
            Model::Mixtral => Moe {
                layers: 32,
                hidden: 4_096,
                sequence: 4_096,
                vocabulary: 32_000,
                experts: 8,
                top_k: 2,
                expert_hidden: 14_336,
                gini: 0.2,
                key_value: Some(1_024),
                family: Family::Llama,
            }
            .shape(),
            Model::Gpt(gpt) => gpt.shape(),
            Model::Moe(moe) => moe.shape(),
        }
    }
}

impl Gpt {
    fn shape(self) -> Shape {
        let Gpt { layers, hidden, sequence, vocabulary, feed_forward, key_value, family } = self;
        let feed_forward = feed_forward.unwrap_or(hidden.saturating_mul(4));
        let key_value = key_value.unwrap_or(hidden);
        Shape { layers, hidden, sequence, vocabulary, key_value, feed_forward, family, experts: None }
    }
}

impl Moe {
    fn shape(self) -> Shape {
        let Moe { layers, hidden, sequence, vocabulary, experts, top_k, expert_hidden, gini, key_value, family } = self;
        let key_value = key_value.unwrap_or(hidden);
        let experts = Some(Experts { count: experts, top_k, gini });
        Shape { layers, hidden, sequence, vocabulary, key_value, feed_forward: expert_hidden, family, experts }
    }
}

impl Shape {
    /// Checks each size.
    pub(super) fn check(&self) -> Result<(), Problem> {
        let inner = if self.experts.is_some() { "expert_hidden" } else { "feed_forward" };
        for (key, size, most) in [
            ("layers", self.layers, 10_000),
            ("hidden", self.hidden, 1_000_000),
            ("sequence", self.sequence, 10_000_000),
            ("vocabulary", self.vocabulary, 10_000_000),
            ("key_value", self.key_value, 1_000_000),
            (inner, self.feed_forward, 4_000_000),
        ] {
            if size == 0 || size > most {
                return Err(Problem::new(key, format!("{size} is no such size; write one from 1 to {most}")));
            }
        }
        self.check_experts()?;
        let parameters = self.parameters();
        if parameters > 1_000_000_000_000_000 {
            return Err(Problem::new("layers", format!("{parameters} parameters; at most 10^15 are possible")));
        }
        Ok(())
    }

    fn check_experts(&self) -> Result<(), Problem> {
        let Some(Experts { count, top_k, gini }) = self.experts else { return Ok(()) };
        if count == 0 || count > 10_000 {
            return Err(Problem::new("experts", format!("{count} is no such number; write one from 1 to 10000")));
        }
        if top_k == 0 || top_k > count {
            return Err(Problem::new("top_k", format!("a token goes to 1 to {count} experts, and not to {top_k}")));
        }
        let most = 1.0 - 1.0 / f64::from(count);
        if !(gini >= 0.0 && gini <= most) {
            let message = format!("{gini} is no Gini coefficient of {count} experts; write one from 0 to {most:.3}");
            return Err(Problem::new("gini", message));
        }
        let greatest = super::shares(count, gini).into_iter().fold(0.0, f64::max);
        if greatest * f64::from(top_k) > 1.0 + 1e-9 {
            let message = format!(
                "at {gini} one expert would get {greatest:.3} of all choices, and it gets one of a token's {top_k}; \
                 write less: real text has 0.105 to 0.25"
            );
            return Err(Problem::new("gini", message));
        }
        Ok(())
    }

    /// Matrices of attention: queries and the output are h x h, keys and values h x `key_value`; 4h^2 without grouped
    /// queries (Narayanan et al., 2021, section 5.1).
    fn attention(&self) -> u64 {
        let (h, kv) = (u64::from(self.hidden), u64::from(self.key_value));
        2 * h * h + 2 * h * kv
    }

    /// Matrices of a feed-forward layer or an expert: 8h^2 where there are two and the inner vector is 4h.
    fn inner(&self) -> u64 {
        let matrices = match self.family {
            Family::Gpt => 2,
            Family::Llama => 3,
        };
        matrices * u64::from(self.hidden) * u64::from(self.feed_forward)
    }

    /// Parameters of a layer at one of `tensor` ranks, if it is one of `expert` ranks that share the experts.
    ///
    /// Matrices and the biases of their inner vectors are divided among tensor ranks. The biases of outer vectors and
    /// the norms are at all of them. At one rank that is 12h^2 + 13h for a GPT (Narayanan et al., 2021, equation 2).
    pub fn layer(&self, tensor: u32, expert: u32) -> Layer {
        let (h, kv, f) = (u64::from(self.hidden), u64::from(self.key_value), u64::from(self.feed_forward));
        let biases = self.family == Family::Gpt;
        let t = u64::from(tensor);
        let (inner_bias, outer_bias) = if biases { (f, h) } else { (0, 0) };
        let attention = (self.attention() + if biases { h + 2 * kv } else { 0 }) / t + outer_bias;
        let norms = if biases { 4 * h } else { 2 * h };
        let one = (self.inner() + inner_bias) / t + outer_bias;
        match self.experts {
            None => Layer { dense: attention + norms + one, expert: 0 },
            Some(experts) => {
                // The router has a row for each expert.
                let router = h * u64::from(experts.count);
                Layer { dense: attention + norms + router, expert: one * u64::from(experts.count / expert) }
            }
        }
    }

    /// Parameters of an embedding at one of `tensor` ranks: V h. The input's also has learnt positions in a GPT, s h.
    pub fn embedding(&self, tensor: u32, input: bool) -> u64 {
        let h = u64::from(self.hidden);
        let positions = if input && self.family == Family::Gpt { u64::from(self.sequence) * h } else { 0 };
        u64::from(self.vocabulary) * h / u64::from(tensor) + positions
    }

    /// Parameters of the model. For a GPT 12lh^2 (1 + 13/(12h) + (V+s)/(12lh)) (Narayanan et al., 2021, equation 2).
    pub fn parameters(&self) -> u128 {
        let layer = self.layer(1, 1);
        let output = if self.family == Family::Llama { self.embedding(1, false) } else { 0 };
        let layers = u128::from(self.layers) * (u128::from(layer.dense) + u128::from(layer.expert));
        layers + u128::from(self.embedding(1, true)) + u128::from(output)
    }

    /// Operations of attention for a number of tokens, whole sequences: 2 for each token and element of a matrix, and
    /// 4sh a token for scores and the values that they weigh. 8Bsh^2 + 4Bs^2h (Narayanan et al., 2021, appendix).
    pub fn attention_flops(&self, tokens: u64) -> u128 {
        let scores = 4 * u128::from(self.sequence) * u128::from(self.hidden);
        u128::from(tokens) * (2 * u128::from(self.attention()) + scores)
    }

    /// Operations of a feed-forward layer or an expert for this many tokens: 16Bsh^2 where the inner vector is 4h.
    pub fn inner_flops(&self, tokens: u64) -> u128 {
        u128::from(tokens) * 2 * u128::from(self.inner())
    }

    /// Operations of the router, if the layer has experts: 2h for each token and expert.
    pub fn router_flops(&self, tokens: u64) -> u128 {
        let experts = self.experts.map_or(0, |experts| experts.count);
        2 * u128::from(tokens) * u128::from(self.hidden) * u128::from(experts)
    }

    /// Operations from the last layer to the logits: 2BshV (Narayanan et al., 2021, appendix).
    pub fn logit_flops(&self, tokens: u64) -> u128 {
        2 * u128::from(tokens) * u128::from(self.hidden) * u128::from(self.vocabulary)
    }

    /// Operations of one forward pass. With a backward pass of twice as many it is, for a GPT,
    /// 72Bslh^2 (1 + s/(6h) + V/(12lh)); Narayanan et al. (2021, equation 3) have 96 and V/(16lh), with a second
    /// forward pass that computes the layers' activations again.
    pub fn forward_flops(&self, tokens: u64) -> u128 {
        let times = self.experts.map_or(1, |experts| u64::from(experts.top_k));
        let layer = self.attention_flops(tokens) + self.router_flops(tokens) + self.inner_flops(tokens * times);
        u128::from(self.layers) * layer + self.logit_flops(tokens)
    }
}
