//! What kinds of values a walk goes over.

use units::{Bytes, Duration, FlowId, HostId, PortId, Rate, SwitchId};

/// A number that can move.
pub trait Number: Copy {
    /// As 64 bits.
    fn get(self) -> u64;
    /// From 64 bits; only the low ones count.
    fn set(&mut self, to: u64);
}

macro_rules! numbers {
    ($($kind:ty)*) => {$(
        impl Number for $kind {
            #[inline]
            fn get(self) -> u64 {
                u64::from(self)
            }

            #[inline]
            fn set(&mut self, to: u64) {
                *self = to as $kind;
            }
        }

        impl Plain for $kind {
            #[inline]
            fn write(&self, to: &mut Vec<u64>) {
                to.push(u64::from(*self));
            }
        }
    )*};
}

numbers!(u8 u16 u32 u64);

impl Number for Duration {
    #[inline]
    fn get(self) -> u64 {
        self.ps()
    }

    #[inline]
    fn set(&mut self, to: u64) {
        *self = Duration::from_ps(to);
    }
}

/// A value that can be compared.
pub trait Plain {
    /// Appends it.
    fn write(&self, to: &mut Vec<u64>);
}

macro_rules! plain {
    ($($kind:ty: $value:ident => $number:expr,)*) => {$(
        impl Plain for $kind {
            #[inline]
            fn write(&self, to: &mut Vec<u64>) {
                let $value = *self;
                to.push($number);
            }
        }
    )*};
}

plain! {
    bool: value => u64::from(value),
    usize: value => value as u64,
    f64: value => value.to_bits(),
    Bytes: value => value.get(),
    Duration: value => value.ps(),
    Rate: value => value.bps(),
    FlowId: value => u64::from(value.0),
    HostId: value => u64::from(value.0),
    PortId: value => u64::from(value.0),
    SwitchId: value => u64::from(value.0),
    i64: value => value as u64,
}

impl Plain for u128 {
    #[inline]
    fn write(&self, to: &mut Vec<u64>) {
        to.extend([*self as u64, (*self >> 64) as u64]);
    }
}

impl<T: Plain> Plain for Option<T> {
    #[inline]
    fn write(&self, to: &mut Vec<u64>) {
        to.push(u64::from(self.is_some()));
        if let Some(value) = self {
            value.write(to);
        }
    }
}

impl<T: Plain + ?Sized> Plain for &T {
    #[inline]
    fn write(&self, to: &mut Vec<u64>) {
        (**self).write(to);
    }
}

/// How many, then each.
impl<T: Plain> Plain for [T] {
    #[inline]
    fn write(&self, to: &mut Vec<u64>) {
        to.push(self.len() as u64);
        self.iter().for_each(|value| value.write(to));
    }
}

impl<T: Plain, const N: usize> Plain for [T; N] {
    #[inline]
    fn write(&self, to: &mut Vec<u64>) {
        self.iter().for_each(|value| value.write(to));
    }
}

macro_rules! tuples {
    ($(($($name:ident),+))*) => {$(
        impl<$($name: Plain),+> Plain for ($($name,)+) {
            #[inline]
            fn write(&self, to: &mut Vec<u64>) {
                #[allow(non_snake_case)]
                let ($($name,)+) = self;
                $($name.write(to);)+
            }
        }
    )*};
}

tuples!((A, B)(A, B, C)(A, B, C, D)(A, B, C, D, E));
