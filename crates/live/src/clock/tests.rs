use super::*;

#[test]
fn quantiles_are_those_of_what_was_noted() {
    let mut lateness = Lateness::default();
    for micros in 0..100 {
        lateness.note(Duration::from_us(micros) + Duration::from_ns(500));
    }
    assert_eq!(lateness.quantile(0.5), Duration::from_us(50));
    assert_eq!(lateness.quantile(0.99), Duration::from_us(99));
    assert_eq!(lateness.quantile(1.0), Duration::from_ns(99_500));
    lateness.note(Duration::from_ms(5_000));
    assert_eq!((lateness.quantile(1.0), lateness.max()), (Duration::from_ms(5_000), Duration::from_ms(5_000)));
}
