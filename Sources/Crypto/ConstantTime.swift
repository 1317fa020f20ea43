/// Whether two byte strings are equal, in a time that depends on their lengths only.
///
/// For signatures and digests: a comparison that stops at the first difference tells an attacker how much was right.
public func constantTimeEqual(_ left: [UInt8], _ right: [UInt8]) -> Bool {
    guard left.count == right.count else { return false }
    var difference: UInt8 = 0
    for (a, b) in zip(left, right) {
        difference |= a ^ b
    }
    return difference == 0
}
