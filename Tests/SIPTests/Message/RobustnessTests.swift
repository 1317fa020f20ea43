import Foundation
import Primitives
import Testing

@testable import SIP

/// Messages made to exhaust or to crash: all must come back quickly with a verdict.
@Suite struct RobustnessTests {
    private func code(_ bytes: [UInt8], limits: SIPLimits = .default) -> SIPParseError.Code? {
        do throws(SIPParseError) {
            _ = try SIPMessage.parse(bytes, limits: limits)
            return nil
        } catch {
            return error.code
        }
    }

    @Test func limitsHold() {
        #expect(code(request(adding: (0..<121).map { "X-\($0): 1" })) == nil)
        #expect(code(request(adding: (0..<122).map { "X-\($0): 1" })) == .limit)
        #expect(code(request(adding: (0..<5_000).map { "X-\($0): 1" })) == .limit)
        #expect(code(request(adding: (0..<1_000).map { "Via: SIP/2.0/UDP h\($0)" })) == .limit)
        let via = "Via: " + Array(repeating: "SIP/2.0/UDP h", count: 69).joined(separator: ",")
        #expect(code(request(adding: [via])) == nil)
        #expect(code(request(adding: [via, "v: SIP/2.0/UDP h"])) == .limit)
        #expect(code(request(adding: ["Subject: " + String(repeating: "x", count: 65_000)])) == .limit)
        #expect(code(request(adding: ["Subject: " + String(repeating: "\r\n x", count: 3_000)])) == .limit)
        #expect(code(request("OPTIONS sip:a@h\(String(repeating: ";p=1", count: 10_000)) SIP/2.0")) == .limit)
        #expect(code(request(body: String(repeating: "x", count: 66_000))) == .limit)
        #expect(
            code(request(body: String(repeating: "x", count: 2_000)), limits: SIPLimits(maxBodyBytes: 1_999)) == .limit)
        #expect(code([]) == .empty)
        #expect(code(wire("\n\n\n")) == .empty)
    }

    @Test func largeMessagesWithinGenerousLimits() throws {
        let limits = SIPLimits(
            maxMessageBytes: 4_000_000, maxHeaders: 10_000, maxHeaderBytes: 2_000_000, maxVias: 5_000,
            maxBodyBytes: 2_000_000)
        let bytes = request(
            adding: (0..<5_000).map { "X-\($0): 1" } + (0..<1_000).map { "Via: SIP/2.0/UDP h\($0);branch=z9hG4bK\($0)" }
                + ["Subject: " + String(repeating: "x", count: 65_536)])
        let duration = try processorTime {
            let message = try SIPMessage.parse(bytes, limits: limits)
            #expect(message.validate() == nil)
            #expect(message.vias.count == 1_001)
            #expect(message.headers["X-4999"] == "1")
        }
        #expect(duration < 2)
    }

    @Test(arguments: [
        "2147483648", "4294967296", "18446744073709551616", "1e9", String(repeating: "9", count: 1_000_000),
    ])
    func numbersOutOfRangeAreNoTrap(_ number: String) throws {
        let limits = SIPLimits(maxMessageBytes: 2_000_000, maxHeaderBytes: 2_000_000)
        #expect(verdict(request(replacing: ["CSeq": "\(number) OPTIONS"]), limits: limits) == 400)
        #expect(verdict(request(replacing: ["Content-Length": number]), limits: limits) == 400)
        #expect(verdict(request(replacing: ["Max-Forwards": number]), limits: limits) == 400)
        #expect(verdict(request("SIP/2.0 \(number) x"), limits: limits) == nil)
        #expect(throws: SIPParseError.self) { try SIPURI(parsing: "sip:h:\(number)") }
        #expect(throws: SIPParseError.self) { try SIPVia(parsing: "SIP/2.0/UDP h:\(number)") }
        let via = try SIPVia(parsing: "SIP/2.0/UDP h;rport=\(number)")
        #expect(via.rport == nil && via.hasRport)
        let message = try SIPMessage.parse(request(adding: ["Retry-After: \(number)"]), limits: limits)
        #expect(message.retryAfter == (number == "2147483648" ? 2_147_483_648 : nil))
    }

    @Test func nestingIsNoRecursion() throws {
        var headers = SIPHeaders()
        headers["Contact"] = String(repeating: "(", count: 1_000_000)
        #expect(headers.values("Contact").count == 1)
        headers["Contact"] = String(repeating: "<", count: 1_000_000)
        #expect(headers.values("Contact").count == 1)
        headers["Contact"] = String(repeating: "\"\\", count: 500_000)
        #expect(headers.values("Contact").count == 1)
        headers["Contact"] = String(repeating: ",", count: 1_000_000)
        #expect(headers.values("Contact").isEmpty)
    }

    /// Reads everything there is to read of a message.
    private func exercise(_ bytes: [UInt8]) -> Bool {
        guard let message = try? SIPMessage.parse(bytes) else { return false }
        let fault = message.validate()
        _ = message.vias
        _ = message.contacts
        _ = message.routes
        _ = message.recordRoutes
        _ = (message.expires, message.minExpires, message.retryAfter, message.contentType, message.contentLength)
        for (name, _) in message.headers.all.prefix(12) {
            _ = message.headers.values(name)
            _ = message.headers[name]
        }
        if let uri = message.requestURI, let other = message.to?.uri {
            _ = uri.isEquivalent(to: other)
            _ = uri.description
        }
        var changed = message
        changed.topVia?.received = "192.0.2.1"
        changed.from = message.from
        changed.to = message.to
        changed.removeTopVia()
        _ = try? changed.encoded()
        _ = try? message.response(status: 200, toTag: "t").encoded()
        if fault == nil {
            guard let printed = try? message.encoded(), let again = try? SIPMessage.parse(printed) else {
                Issue.record("valid, but does not print and parse: \(string(bytes).debugDescription)")
                return true
            }
            if withoutLength(again) != withoutLength(message) || again.validate() != nil {
                Issue.record("changed by printing: \(string(bytes).debugDescription)")
            }
            for address in message.contacts + [message.from, message.to].compactMap({ $0 }) {
                guard let same = try? SIPAddress(parsing: address.description), same == address else {
                    Issue.record("an address changed by printing: \(address.description.debugDescription)")
                    continue
                }
            }
        }
        return true
    }

    @Test func mutationsNeverTrap() throws {
        let seeds =
            try TortureTests.all() + [
                request(adding: ["Contact: \"x\\\"y\" <sip:a%20b:c@[::1]:5060;lr?x=y>;q=0.1;+sip.instance=\"<urn:u>\""])
            ]
        let pieces = [
            "\r\n", "\r", "\n", "\0", "\"", "\\", "<", ">", ";", ",", ":", "%", "%00", "%zz", "(", "[", "]", "@", "?",
            "=", " ", "\t", "\r\n ", "/", "-1", "4294967296", "sip:", "SIP/2.0", "\u{FF}", "Via: ", "l: 5\r\n",
        ].map { Array($0.utf8) }
        var random = RandomSource.seeded(4_475)
        var parsed = 0
        let duration = processorTime {
            for _ in 0..<6_000 {
                var bytes = seeds.randomElement(using: &random) ?? []
                for _ in 0..<Int.random(in: 1...4, using: &random) {
                    let position = Int.random(in: 0...bytes.count, using: &random)
                    switch Int.random(in: 0..<6, using: &random) {
                    case 0 where position < bytes.count: bytes[position] ^= 1 << UInt8.random(in: 0..<8, using: &random)
                    case 1 where position < bytes.count: bytes[position] = UInt8.random(in: 0...255, using: &random)
                    case 2:
                        let end = min(bytes.count, position + Int.random(in: 0...20, using: &random))
                        bytes.removeSubrange(position..<end)
                    case 3:
                        let end = min(bytes.count, position + Int.random(in: 0...40, using: &random))
                        bytes.insert(
                            contentsOf: Array(bytes[position..<end]),
                            at: Int.random(in: 0...bytes.count, using: &random))
                    case 4: bytes.removeLast(bytes.count - position)
                    default: bytes.insert(contentsOf: pieces.randomElement(using: &random) ?? [], at: position)
                    }
                }
                if exercise(bytes) { parsed += 1 }
                var framer = SIPStreamFramer()
                framer.receive(bytes)
                while let frame = try? framer.next() {
                    if case .message(let message) = frame { #expect(!message.isEmpty && message.count <= bytes.count) }
                }
            }
        }
        #expect(parsed > 1_500, "mutations must reach beyond the first check")
        #expect(duration < 60)
    }

    @Test func noiseNeverTraps() {
        var random = RandomSource.seeded(3_261)
        let alphabet = Array("sip:@<>\";,=%\\ \t\r\n()[]/?&.:a1ZVia\0".utf8) + [0xFF]
        for _ in 0..<20_000 {
            let noise = (0..<Int.random(in: 0...40, using: &random)).map { _ in
                alphabet.randomElement(using: &random) ?? 0
            }
            let text = string(noise)
            if let uri = try? SIPURI(parsing: text) { #expect((try? SIPURI(parsing: uri.description)) == uri) }
            if let address = try? SIPAddress(parsing: text) {
                #expect((try? SIPAddress(parsing: address.description)) == address)
            }
            _ = try? SIPVia(parsing: text)
            _ = exercise(noise)
            _ = exercise(Array("OPTIONS sip:a@b SIP/2.0\r\nFrom: ".utf8) + noise + Array("\r\n\r\n".utf8))
        }
    }
}
