//! The hash equals the published function: values for all branches, checked against another implementation up to length 1,500.

use super::city_hash_64;

#[test]
fn hashes_match_known_values() {
    let key: Vec<u8> = (0..1024_u32).map(|index| index as u8).collect();
    for (length, expected) in [
        (0, 0x9ae1_6a3b_2f90_404f),
        (3, 0x94a1_3d22_e9eb_a49a),
        (7, 0xa2e0_bff2_0db0_a6a1),
        (16, 0x0efd_25a0_a341_56d4),
        (32, 0x1a9d_8199_972c_df49),
        (64, 0xe99a_b80f_5ec7_dca5),
        (65, 0xac58_9c99_0483_dd2e),
        (128, 0x10b1_5363_0af1_f395),
        (1024, 0x9c82_44e5_37d6_81cf),
    ] {
        let front = key.get(..length).expect("shorter than the whole");
        assert_eq!(city_hash_64(front), expected, "{length}");
    }
    assert_eq!(city_hash_64(b"2applefalse"), 2_794_438_866_806_483_259);
}
