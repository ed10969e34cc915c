//! CRC-32C without the CPU instruction: slicing by eight tables, eight bytes per round. Used for comparison only.

const POLYNOMIAL: u32 = 0x82f6_3b78;

/// `TABLES[i][byte]`: the effect of a byte that is followed by `i` more bytes of its round.
static TABLES: [[u32; 256]; 8] = tables();

#[expect(clippy::indexing_slicing, reason = "constant evaluation, indexes below the lengths")]
const fn tables() -> [[u32; 256]; 8] {
    let mut tables = [[0; 256]; 8];
    let mut byte = 0;
    while byte < 256 {
        let mut sum = byte as u32;
        let mut bit = 0;
        while bit < 8 {
            sum = (sum >> 1) ^ (POLYNOMIAL * (sum & 1));
            bit += 1;
        }
        tables[0][byte] = sum;
        byte += 1;
    }
    let mut table = 1;
    while table < 8 {
        let mut byte = 0;
        while byte < 256 {
            let before = tables[table - 1][byte];
            tables[table][byte] = (before >> 8) ^ tables[0][(before & 0xff) as usize];
            byte += 1;
        }
        table += 1;
    }
    tables
}

/// The checksum of a key.
#[expect(clippy::indexing_slicing, reason = "bytes index tables of 256 entries")]
pub(super) fn crc_32c(key: &[u8]) -> u32 {
    let mut sum = u32::MAX;
    let (words, rest) = key.as_chunks::<8>();
    for word in words {
        let bytes = (u64::from_le_bytes(*word) ^ u64::from(sum)).to_le_bytes();
        sum = TABLES.iter().rev().zip(bytes).fold(0, |sum, (table, byte)| sum ^ table[usize::from(byte)]);
    }
    for byte in rest {
        sum = (sum >> 8) ^ TABLES[0][usize::from(sum as u8 ^ byte)];
    }
    !sum
}

#[cfg(test)]
mod tests;
