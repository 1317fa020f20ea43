import DNS
import Testing

@Suite struct LocalNamesTests {
    private static let text = """
        # comment
        192.0.2.5\tpbx.example PBX # trailing
        2001:db8::5  pbx.example
        192.0.2.6 pbx.example. pbx.example
        127.0.0.9 localhost evil.localhost
        nonsense name
        192.0.2.7
        192.0.2.8 bad/name ok-name

        """

    private let hosts = HostsTable(parsing: Self.text.utf8) {
        $0.contains(".") && !$0.contains("n") || $0.contains(":")
    }

    private func answer(_ name: String, _ type: DNSQuestion.RecordType) -> DNSAnswer? {
        LocalNames.answer(to: DNSQuestion(name, type), hosts: hosts)
    }

    @Test func theHostsFileAnswers() {
        #expect(answer("pbx.example", .a) == .records([.address("192.0.2.5"), .address("192.0.2.6")]))
        #expect(answer("PBX.Example.", .aaaa) == .records([.address("2001:db8::5")]))
        #expect(answer("pbx", .a) == .records([.address("192.0.2.5")]))
        #expect(answer("pbx", .aaaa) == .noData)
        #expect(answer("ok-name", .a) == .records([.address("192.0.2.8")]))
    }

    @Test func servicesOfSuchNamesAreNotAskedFor() {
        for type in [DNSQuestion.RecordType.naptr, .srv] { #expect(answer("pbx.example", type) == .noData) }
        #expect(answer("_sip._tcp.pbx.example", .srv) == .noData)
        #expect(answer("_sips._tcp.localhost", .srv) == .noData)
    }

    @Test func otherNamesAreUnknown() {
        #expect(answer("example", .a) == nil && answer("name", .a) == nil && answer("bad/name", .a) == nil)
        #expect(answer("_sip._tcp.example.org", .srv) == nil)
    }

    @Test func localhostIsThisMachineWhateverTheFileSays() {
        #expect(answer("localhost", .a) == .records([.address("127.0.0.1")]))
        #expect(answer("evil.localhost", .a) == .records([.address("127.0.0.1")]))
        #expect(answer("a.localhost.", .aaaa) == .records([.address("::1")]))
        #expect(answer("sip.invalid", .a) == .noSuchName)
    }

    @Test func aHugeFileIsCutOff() {
        let text = (0..<HostsTable.maximumNames + 10).map { "192.0.2.1 n\($0)\n" }.joined()
        let table = HostsTable(parsing: text.utf8) { _ in true }
        #expect(table.addresses(of: "n1") == ["192.0.2.1"])
        #expect(table.addresses(of: "n\(HostsTable.maximumNames + 5)") == nil)
    }
}
