import Primitives
import Testing

@Suite struct NumericAddressTests {
    @Test(arguments: ["::", "::1", "1::", "2001:db8::1", "1:2:3:4:5:6:7:8", "::ffff:192.0.2.1", "fe80::1:2", "1::8"])
    func ipv6(text: String) { #expect(NumericAddress.ipv6(text)?.count == 8) }

    @Test(arguments: [
        "", ":", ":::", "1", "1:2", "1:2:3:4:5:6:7:8:9", "1::2::3", "12345::", "g::", "+1::", "-0::", "1:2:3:4:5:6:7:",
        ":1:2:3:4:5:6:7", "1:2:3:4:5:6:7:8::", "::1.2.3", "1.2.3.4::", "fe80::1%eth0", "1:2:3:4:5:6:7::8:9",
    ])
    func notIPv6(text: String) { #expect(NumericAddress.ipv6(text) == nil) }

    @Test(arguments: ["1.2.3", "1.2.3.4.5", "256.1.1.1", "01.2.3.4", "1.2.3.4 ", "1..2.3", "0x1.2.3.4", ""])
    func notIPv4(text: String) { #expect(NumericAddress.ipv4(text) == nil) }
}
