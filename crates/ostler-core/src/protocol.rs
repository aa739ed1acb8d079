//! Wire protocols that more than one agent speaks. Pure: bytes in, bytes out.

pub(crate) mod acp;
pub(crate) mod jsonrpc;
#[cfg(test)]
pub(crate) mod testing;
