//! Bit vectors, rank, select, packed integers and vector kernels of Tamis.
