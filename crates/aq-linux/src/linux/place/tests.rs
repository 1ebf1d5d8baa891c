use super::*;

#[test]
fn a_place_has_a_name_that_a_bpf_file_system_takes() {
    let roots = Roots::default();
    assert_eq!(DevicePlace::new(&roots, "eth0.100", Some("/proc/7/ns/net")).key, "eth0%2e100@%2fproc%2f7%2fns%2fnet");
    assert_ne!(DevicePlace::new(&roots, "a", Some("b")).key, DevicePlace::new(&roots, "a@b", None).key);
}
