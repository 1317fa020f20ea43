import DNS
import NameServerSupport
import Primitives
import Testing

@Suite struct DNSMessageReaderTests {
    private static let name = "example.org"

    private func read(
        _ type: DNSQuestion.RecordType, _ answers: [ZoneRecord], authorities: [ZoneRecord] = [], code: UInt16 = 0
    ) -> DNSReply {
        var message = DNSMessageWriter(Self.name, type: type.rawValue, answers: answers, authorities: authorities)
        message.code = code
        return DNSMessageReader.read(message.bytes, for: type)
    }

    private func isMalformed(_ reply: DNSReply) -> Bool {
        if case .failed(.malformed) = reply.answer { reply.lifetime == .zero } else { false }
    }

    @Test func recordsOfEachKind() {
        #expect(
            read(.a, [.a(Self.name, "192.0.2.1"), .a(Self.name, "192.0.2.2", lifetime: 20)])
                == DNSReply(.records([.address("192.0.2.1"), .address("192.0.2.2")]), lifetime: .seconds(20)))
        #expect(
            read(.srv, [.srv(Self.name, 1, 2, 5061, "SIP1.Example.org")]).answer
                == .records([.service(SRVRecord(priority: 1, weight: 2, port: 5061, target: "sip1.example.org"))]))
        #expect(
            read(.naptr, [.naptr(Self.name, 10, 20, "S", "SIPS+D2T", "_sips._tcp.example.org")]).answer
                == .records([
                    .rule(
                        NAPTRRecord(
                            order: 10, preference: 20, flags: "s", service: "sips+d2t",
                            replacement: "_sips._tcp.example.org"))
                ]))
    }

    @Test(
        arguments: [
            ([0x2001, 0xDB8, 0, 0, 0, 0, 0, 1], "2001:db8::1"), ([0, 0, 0, 0, 0, 0, 0, 1], "::1"),
            ([0x2001, 0xDB8, 0, 1, 1, 1, 1, 1], "2001:db8:0:1:1:1:1:1"),
            ([0x2001, 0, 0, 1, 0, 0, 0, 1], "2001:0:0:1::1"), ([0xFE80, 0, 0, 0, 0, 0, 0, 0], "fe80::"),
            ([0x2001, 0xDB8, 0, 0, 1, 0, 0, 1], "2001:db8::1:0:0:1"),
        ] as [([UInt16], String)])
    func textOfIPv6(_ groups: [UInt16], _ text: String) {
        #expect(read(.aaaa, [.aaaa(Self.name, groups)]).answer == .records([.address(text)]))
    }

    @Test func aServiceThatIsNotOffered() {
        #expect(
            read(.srv, [.srv(Self.name, 0, 0, 0, "")]).answer
                == .records([.service(SRVRecord(priority: 0, weight: 0, port: 0, target: ""))]))
    }

    @Test func aliasesAreFollowedAndShortenTheLifetime() {
        let reply = read(
            .a,
            [
                .alias(Self.name, to: "one.example.net", lifetime: 500), .a("two.example.net", "192.0.2.1"),
                .alias("One.example.net", to: "two.example.net", lifetime: 7), .a("stranger.example", "192.0.2.9"),
            ])
        #expect(reply == DNSReply(.records([.address("192.0.2.1")]), lifetime: .seconds(7)))
    }

    @Test func aliasesThatGoRoundInCircles() {
        #expect(isMalformed(read(.a, [.alias(Self.name, to: Self.name)])))
        #expect(isMalformed(read(.a, [.alias(Self.name, to: "b.example"), .alias("b.example", to: Self.name)])))
        let chain = (0..<20).map { ZoneRecord.alias($0 == 0 ? Self.name : "n\($0)", to: "n\($0 + 1)") }
        #expect(isMalformed(read(.a, chain + [.a("n20", "192.0.2.1")])))
        #expect(!isMalformed(read(.a, [.alias(Self.name, to: "n13")] + chain.suffix(7) + [.a("n20", "192.0.2.1")])))
    }

    @Test func nothingThere() {
        #expect(read(.a, [], code: 3) == DNSReply(.noSuchName))
        #expect(read(.a, []) == DNSReply(.noData))
        #expect(read(.aaaa, [.a(Self.name, "192.0.2.1")]) == DNSReply(.noData))
        let soa = ZoneRecord.soa(Self.name, minimum: 40, lifetime: 50)
        #expect(read(.a, [], authorities: [soa], code: 3) == DNSReply(.noSuchName, lifetime: .seconds(40)))
        #expect(
            read(.a, [.alias(Self.name, to: "gone.example")], authorities: [.soa(Self.name, minimum: 90, lifetime: 8)])
                == DNSReply(.noData, lifetime: .seconds(8)))
    }

    @Test func lifetimesOutOfRange() {
        #expect(read(.a, [.a(Self.name, "192.0.2.1", lifetime: 0)]).lifetime == .zero)
        #expect(read(.a, [.a(Self.name, "192.0.2.1", lifetime: 0x8000_0000)]).lifetime == .zero)
        #expect(read(.a, [.a(Self.name, "192.0.2.1", lifetime: .max)]).lifetime == .zero)
        #expect(
            read(.a, [.a(Self.name, "192.0.2.1", lifetime: 0x7FFF_FFFF)]).lifetime == .seconds(Int(Int32.max)))
    }

    @Test(arguments: [1, 2, 4, 5, 9, 15] as [UInt16])
    func errorsOfTheServer(_ code: UInt16) {
        guard case .failed(.noServer(let reason)) = read(.a, [], code: code).answer else {
            Issue.record("code \(code) is no failure")
            return
        }
        #expect(!reason.isEmpty)
    }

    @Test func addressesThatAreNobodys() {
        for address in ["0.0.0.0", "0.1.2.3", "224.0.0.1", "255.255.255.255"] {
            #expect(isMalformed(read(.a, [.a(Self.name, address)])), "\(address)")
        }
        let groups: [[UInt16]] = [
            [0, 0, 0, 0, 0, 0, 0, 0], [0xFF02, 0, 0, 0, 0, 0, 0, 1], [0, 0, 0, 0, 0, 0xFFFF, 0x7F00, 1],
        ]
        for group in groups { #expect(isMalformed(read(.aaaa, [.aaaa(Self.name, group)])), "\(group)") }
        // Beside a usable one they are just left out.
        #expect(
            read(.a, [.a(Self.name, "0.0.0.0"), .a(Self.name, "192.0.2.1")]).answer
                == .records([.address("192.0.2.1")]))
    }

    @Test(
        arguments: [
            [1, 2, 3], [1, 2, 3, 4, 5], [], [UInt8](repeating: 9, count: 40),
        ] as [[UInt8]])
    func addressesOfTheWrongLength(_ data: [UInt8]) {
        #expect(isMalformed(read(.a, [ZoneRecord(Self.name, type: 1, data: data)])))
        #expect(isMalformed(read(.aaaa, [ZoneRecord(Self.name, type: 28, data: data)])))
    }

    @Test func namesWithBytesThatNoHostHas() {
        for label in ["a b", "a\0b", "a\u{e9}", "a\nb", "a/b", "$(x)"] {
            let target = [0, 1, 0, 1, 0x13, 0xC4] + [UInt8(label.utf8.count)] + Array(label.utf8) + [0]
            #expect(isMalformed(read(.srv, [ZoneRecord(Self.name, type: 33, data: target)])), "\(label)")
        }
        #expect(isMalformed(read(.srv, [.srv(Self.name, 0, 0, 0, "sip.example.org")])), "port 0")
    }

    @Test func rulesThatMakeNoSense() {
        let strings: [[UInt8]] = [[], [1], [200, 65], [1, 115, 3, 7, 7, 7, 0, 0], [1, 115, 0, 0]]
        for rest in strings {
            #expect(isMalformed(read(.naptr, [ZoneRecord(Self.name, type: 35, data: [0, 1, 0, 1] + rest)])), "\(rest)")
        }
        let trailing = [0, 1, 0, 1, 1, 115, 0, 0, 0, 99] as [UInt8]
        #expect(isMalformed(read(.naptr, [ZoneRecord(Self.name, type: 35, data: trailing)])))
    }

    @Test func tooManyRecordsAreCutOff() {
        let many = (0..<1_000).map { ZoneRecord.a(Self.name, "10.0.\($0 / 250).\($0 % 250)") }
        guard case .records(let records) = read(.a, many).answer else {
            Issue.record("no records")
            return
        }
        #expect(records.count == DNSMessageReader.maximumRecords)
        let same = [ZoneRecord](repeating: .a(Self.name, "192.0.2.1"), count: 1_000)
        #expect(read(.a, same).answer == .records([.address("192.0.2.1")]))
        #expect(read(.a, [ZoneRecord](repeating: .soa("x", minimum: 1), count: 1_000)).answer == .noData)
    }

    @Test func pointersInNames() {
        // Names in answers are usually a pointer to the question at 12.
        var bytes = DNSMessageWriter(Self.name, type: 1).bytes
        bytes[7] = 1
        bytes += [0xC0, 12, 0, 1, 0, 1, 0, 0, 0, 60, 0, 4, 192, 0, 2, 1]
        #expect(DNSMessageReader.read(bytes, for: .a).answer == .records([.address("192.0.2.1")]))
        for pointer: [UInt8] in [
            [0xC0, UInt8(bytes.count - 16)], [0xC0, 0xFF], [0xFF, 0xFF], [0x80, 1], [0x40, 1],
        ] {
            var bad = bytes
            bad.replaceSubrange((bytes.count - 16)..<(bytes.count - 14), with: pointer)
            #expect(isMalformed(DNSMessageReader.read(bad, for: .a)), "\(pointer)")
        }
    }

    @Test func namesThatAreTooLong() {
        let long = [String](repeating: String(repeating: "a", count: 63), count: 4).joined(separator: ".")
        #expect(isMalformed(read(.a, [.a(long, "192.0.2.1")])))
    }

    @Test func messagesThatAreNoAnswers() {
        var message = DNSMessageWriter(Self.name, type: 1, answers: [.a(Self.name, "192.0.2.1")])
        #expect(!isMalformed(DNSMessageReader.read(message.bytes, for: .a)))
        #expect(isMalformed(DNSMessageReader.read(message.bytes, for: .srv)), "another question")
        message.flags = 0
        #expect(isMalformed(DNSMessageReader.read(message.bytes, for: .a)), "a question")
        for questions in [0, 2, 255] as [UInt8] {
            var bytes = DNSMessageWriter(Self.name, type: 1).bytes
            bytes[5] = questions
            #expect(isMalformed(DNSMessageReader.read(bytes, for: .a)))
        }
    }

    @Test func everyPrefixAndManyMutationsAreReadWithoutHarm() {
        let zone: [(DNSQuestion.RecordType, [ZoneRecord])] = [
            (.a, [.alias(Self.name, to: "b.example"), .a("b.example", "192.0.2.1")]),
            (.aaaa, [.aaaa(Self.name, [0x2001, 0xDB8, 0, 0, 0, 0, 0, 1])]),
            (.srv, [.srv(Self.name, 1, 2, 5060, "sip.example.org"), .srv(Self.name, 1, 2, 5060, "")]),
            (.naptr, [.naptr(Self.name, 1, 2, "s", "SIP+D2U", "_sip._udp.example.org")]),
        ]
        var random = RandomSource.seeded(4)
        for (type, records) in zone {
            let bytes = DNSMessageWriter(
                Self.name, type: type.rawValue, answers: records, authorities: [.soa(Self.name, minimum: 60)]
            ).bytes
            for count in 0..<bytes.count where count < bytes.count - 1 {
                if case .records = DNSMessageReader.read(Array(bytes.prefix(count)), for: type).answer {
                    // The answers themselves were whole; only what follows them was cut off.
                    #expect(count > 40)
                }
            }
            for _ in 0..<4_000 {
                var mutated = bytes
                for _ in 0..<Int.random(in: 1...6, using: &random) {
                    mutated[Int.random(in: 2..<mutated.count, using: &random)] = UInt8(random.next() & 0xFF)
                }
                guard case .records(let found) = DNSMessageReader.read(mutated, for: type).answer else { continue }
                #expect(!found.isEmpty && found.count <= DNSMessageReader.maximumRecords)
                for case .service(let service) in found {
                    #expect(service.target.isEmpty || DNSName.isValid(service.target))
                }
            }
        }
    }
}
