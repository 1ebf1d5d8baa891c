//! The secret that the machines of a run share: a token, and keys that are derived from it.
//!
//! Tags are BLAKE3's keyed hashes, cut to 16 bytes. Keys are derived from the token and from random numbers that both
//! sides draw for this run, so that messages of an earlier run are invalid in a later one. Nothing is encrypted.

use units::Problem;

/// Bytes of a tag.
pub const TAG_BYTES: usize = 16;

/// Characters that a token has at least: whoever overhears a run may try tokens at home.
const TOKEN_CHARACTERS_MIN: usize = 16;

/// The secret that the machines of a run share.
#[derive(Clone)]
pub struct Token(Key);

/// What tags are made with.
#[derive(Clone)]
pub(crate) struct Key([u8; 32]);

impl Token {
    /// Of a text, without the blanks around it.
    ///
    /// # Errors
    /// Where it is so short that it could be found by trying.
    pub fn new(text: &str) -> Result<Token, Problem> {
        let text = text.trim();
        let count = text.chars().count();
        if count < TOKEN_CHARACTERS_MIN {
            let message = format!(
                "it has {count} characters, and needs {TOKEN_CHARACTERS_MIN} at least; `openssl rand -hex 32` makes one"
            );
            return Err(Problem::new("token", message));
        }
        Ok(Token(Key(blake3::derive_key("clearway live: token of the machines of a run", text.as_bytes()))))
    }

    /// A key for one use, of which nobody learns another.
    pub(crate) fn key(&self, purpose: &str, nonces: &[&[u8]]) -> Key {
        let mut hasher = blake3::Hasher::new_keyed(&self.0.0);
        for part in std::iter::once(purpose.as_bytes()).chain(nonces.iter().copied()) {
            hasher.update(&(part.len() as u64).to_be_bytes());
            hasher.update(part);
        }
        Key(*hasher.finalize().as_bytes())
    }
}

impl std::fmt::Debug for Token {
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        to.write_str("Token(..)")
    }
}

impl Key {
    /// One that says nothing of anybody.
    pub fn nobodys() -> Key {
        Key([0; 32])
    }

    /// The tag of some bytes.
    pub fn tag(&self, bytes: &[u8]) -> [u8; TAG_BYTES] {
        let mut tag = [0; TAG_BYTES];
        tag.copy_from_slice(&blake3::keyed_hash(&self.0, bytes).as_bytes()[..TAG_BYTES]);
        tag
    }

    /// Whether a tag is that of these bytes. It takes as long whatever is wrong.
    pub fn is_right(&self, bytes: &[u8], tag: &[u8; TAG_BYTES]) -> bool {
        let whole = |tag: &[u8; TAG_BYTES]| {
            let mut whole = [0; 32];
            whole[..TAG_BYTES].copy_from_slice(tag);
            blake3::Hash::from_bytes(whole)
        };
        whole(&self.tag(bytes)) == whole(tag)
    }
}

/// A number that is drawn once.
pub(crate) fn nonce() -> std::io::Result<[u8; 32]> {
    use rand::TryRng;
    let mut nonce = [0; 32];
    rand::rngs::SysRng.try_fill_bytes(&mut nonce).map_err(std::io::Error::other)?;
    Ok(nonce)
}

#[cfg(test)]
mod tests;
