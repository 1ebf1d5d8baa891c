//! R2C2: a rack's network stack (Costa, Ballani, Razavi, Kash: R2C2: A Network Stack for Rack-scale Computers, SIGCOMM 2015).

pub mod rates;
