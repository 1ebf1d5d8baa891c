use super::*;

#[test]
fn the_line_lies_above_all_points_and_touches_one() {
    let us = Duration::from_us;
    assert_eq!(line_above(&[]), None);
    assert_eq!(line_above(&[(2, us(7))]), Some((us(7), us(0))));
    // Slope (50 - 10) / (5 - 1); through the first and the last, and through the middle one where that is higher.
    assert_eq!(line_above(&[(1, us(10)), (3, us(20)), (5, us(50))]), Some((us(0), us(10))));
    assert_eq!(line_above(&[(1, us(10)), (3, us(44)), (5, us(50))]), Some((us(14), us(10))));
    // Many switches with shorter links: the line does not fall.
    assert_eq!(line_above(&[(1, us(40)), (2, us(30))]), Some((us(40), us(0))));
}
