import Testing

@testable import SIP

/// What an attacker sends to keep the parser busy or to fill the memory: the work grows with the bytes and not with their
/// square, and a claim costs nothing.
@Suite(.serialized) struct AbuseTests {
    /// Limits that let through what the default ones stop, so that what is behind them is tried, too.
    private static let generous = SIPLimits(
        maxMessageBytes: 1 << 24, maxHeaders: 1 << 20, maxHeaderBytes: 1 << 24, maxVias: 1 << 20, maxBodyBytes: 1 << 24,
        maxHeaderSectionBytes: 1 << 24)

    /// Parses, validates and reads everything, by whatever name it is asked for.
    private static func work(_ bytes: [UInt8]) {
        guard let message = try? SIPMessage.parse(bytes, limits: generous) else { return }
        _ = message.validate()
        _ = (message.vias.count, message.contacts.count, message.routes.count, message.cseq, message.callID)
        _ = (message.from?.description, message.to?.uri.description, message.contentLength)
        for name in ["Accept", "Contact", "Subject", "X-Last"] {
            _ = (message.headers.values(name), message.headers[name])
        }
        if let uri = message.requestURI {
            _ = (uri.description, uri.parameters["absent"], uri.isEquivalent(to: uri), uri.headers.count)
        }
        _ = Challenge.challenges(in: message)
        _ = try? message.encoded()
        _ = try? message.response(status: 400, toTag: "t").encoded()
    }

    /// The least of several times, since a machine only ever takes longer.
    private static func time(_ work: () -> Void) -> Double {
        (0..<3).map { _ in processorTime(work) }.min() ?? 0
    }

    struct Shape: CustomTestStringConvertible, Sendable {
        var testDescription: String
        /// How often it is repeated at first.
        var count: Int
        var make: @Sendable (Int) -> [UInt8]

        init(_ name: String, _ count: Int, _ make: @escaping @Sendable (Int) -> [UInt8]) {
            testDescription = name
            self.count = count
            self.make = make
        }
    }

    private static func many(_ text: String, _ count: Int) -> String { String(repeating: text, count: count) }

    static let shapes = [
        Shape("headers", 250) { n in request(adding: (0..<n).map { "X-\($0): 1" }) },
        Shape("the same header", 250) { n in request(adding: Array(repeating: "Accept: text/plain", count: n)) },
        Shape("one long header", 5000) { n in request(adding: ["Subject: " + many("x", n)]) },
        Shape("folds", 1250) { n in request(adding: ["Subject: " + many("\r\n x", n)]) },
        Shape("blanks", 5000) { n in request(adding: ["X-Last  \t:" + many(" ", n) + "x" + many(" ", n)]) },
        Shape("Via lines", 125) { n in request(adding: Array(repeating: "Via: SIP/2.0/UDP h;branch=z9hG4bK1", count: n))
        },
        Shape("Via values", 125) { n in request(adding: ["v: SIP/2.0/UDP h" + many(", SIP/2.0/UDP h", n)]) },
        Shape("Via parameters", 500) { n in request(replacing: ["Via": "SIP/2.0/UDP h" + many(";a=b", n)]) },
        Shape("URI parameters", 500) { n in request("OPTIONS sip:a@h\(many(";p=1", n)) SIP/2.0") },
        Shape("escaped URI parameters", 500) { n in request("OPTIONS sip:a@h\(many(";%70=%31", n)) SIP/2.0") },
        Shape("URI headers", 500) { n in
            request(replacing: ["To": "<sip:a@h?a=b\(many("&c=d", n))>"])
        },
        Shape("at signs", 2500) { n in request("OPTIONS sip:\(many("@", n))h SIP/2.0") },
        Shape("a long user", 5000) { n in request("OPTIONS sip:\(many("%61", n))@h SIP/2.0") },
        Shape("a long host", 5000) { n in request("OPTIONS sip:a@\(many("h.", n))h SIP/2.0") },
        Shape("an IPv6 host", 5000) { n in request("OPTIONS sip:a@[\(many("1:", n))] SIP/2.0") },
        Shape("colons", 5000) { n in request("OPTIONS sip:a@[\(many(":", n))1.2.3.4] SIP/2.0") },
        Shape("contacts", 125) { n in request(adding: ["Contact: <sip:a@h>" + many(", \"b\" <sip:b@h>;q=0.1", n)]) },
        Shape("open quotes", 2500) { n in request(adding: ["Contact: " + many("\"\\", n)]) },
        Shape("open brackets", 2500) { n in request(adding: ["Contact: " + many("<", n)]) },
        Shape("open comments", 2500) { n in request(adding: ["Accept: " + many("(", n)]) },
        Shape("commas", 2500) { n in request(adding: ["Accept: " + many(",", n), "Contact: " + many(",", n)]) },
        Shape("digits", 5000) { n in
            let number = many("9", n)
            return request(
                replacing: ["CSeq": "\(number) OPTIONS", "Content-Length": number, "Max-Forwards": number],
                adding: ["Expires: \(number)", "Retry-After: \(number)"])
        },
        Shape("a long method", 5000) { n in request(many("M", n) + " sip:a@h SIP/2.0") },
        Shape("challenges", 125) { n in request(adding: ["WWW-Authenticate: " + many("Digest realm=\"x\", a=b, ", n)])
        },
        Shape("open challenges", 1250) { n in request(adding: ["WWW-Authenticate: " + many("a=\",\\", n)]) },
        Shape("line ends first", 5000) { n in Array(many("\r\n", n).utf8) + request() },
        Shape("a body", 12500) { n in request(body: many("x", n)) },
        Shape("no end", 5000) { n in Array(request().dropLast(2)) + Array(many("X: y\r\n", n).utf8) },
    ]

    @Test(arguments: shapes) func fourTimesTheInputTakesLessThanTwelveTimesTheTime(_ shape: Shape) {
        let (small, large) = (shape.make(shape.count), shape.make(4 * shape.count))
        // Enough work that the clock can tell; square growth would make it 16.
        let rounds = 3
        let few = Self.time { for _ in 0..<rounds { Self.work(small) } }
        let many = Self.time { for _ in 0..<rounds { Self.work(large) } }
        #expect(many < 12 * few + 0.002, "\(few) s, \(many) s")
    }

    @Test func whatTheLimitsLetThroughIsQuick() {
        // The largest messages of each shape that the default limits accept.
        for shape in Self.shapes {
            let bytes = shape.make(max(1, 60_000 * shape.count / max(1, shape.make(shape.count).count)))
            let duration = Self.time { _ = (try? SIPMessage.parse(bytes))?.validate() }
            #expect(duration < 0.25, "\(shape.testDescription): \(duration) s in a debug build")
        }
    }

    @Test func theLimitsAreThoseThatAreStated() {
        let limits = SIPLimits.default
        #expect(limits.maxMessageBytes == 65_536 && limits.maxHeaders == 128 && limits.maxVias == 70)
        func isAccepted(_ bytes: [UInt8]) -> Bool { (try? SIPMessage.parse(bytes)) != nil }
        #expect(isAccepted(request(adding: Array(repeating: "Accept: " + Self.many("x", 100), count: 50))))
        #expect(!isAccepted(request(adding: Array(repeating: "Accept: text/plain", count: 5_000))))
        #expect(!isAccepted(request(adding: Array(repeating: "Via: SIP/2.0/UDP h", count: 70))))
        #expect(isAccepted(request(adding: Array(repeating: "Via: SIP/2.0/UDP h", count: 69))))
        #expect(!isAccepted(request(adding: ["Subject: " + Self.many("x", 65_536)])))
        #expect(!isAccepted(request("OPTIONS sip:a@h\(Self.many(";p=1", 10_000)) SIP/2.0")))
    }

    // MARK: Streams

    @Test func aMessageByteByByteCostsItsLength() throws {
        func work(_ bytes: [UInt8]) {
            var framer = SIPStreamFramer(limits: Self.generous)
            for byte in bytes {
                framer.receive(CollectionOfOne(byte))
                _ = try? framer.next()
            }
        }
        for make in [
            { n in request(adding: ["Subject: " + Self.many("x", n)]) }, { n in request(body: Self.many("x", n)) },
            { n in request(adding: Array(repeating: "X: y", count: n / 6)) },
        ] as [(Int) -> [UInt8]] {
            let (small, large) = (make(4_000), make(16_000))
            let few = Self.time { work(small) }
            let many = Self.time { work(large) }
            #expect(many < 12 * few + 0.002, "\(few) s, \(many) s")
        }
    }

    @Test func manyMessagesAtOnceCostTheirNumber() throws {
        let message = request()
        func work(_ count: Int) {
            var framer = SIPStreamFramer()
            framer.receive(Array(repeatElement(message, count: count).joined()))
            var found = 0
            while case .some(.message) = try? framer.next() { found += 1 }
            #expect(found == count)
        }
        let few = Self.time { work(200) }
        let many = Self.time { work(800) }
        #expect(many < 12 * few + 0.002, "\(few) s, \(many) s")
    }

    @Test(arguments: ["4294967295", "10737418240", "9223372036854775807", "18446744073709551616", "65537"])
    func aClaimTakesNoMemory(length: String) {
        var framer = SIPStreamFramer()
        framer.receive(request(replacing: ["Content-Length": length]))
        #expect(throws: SIPParseError.self) { try framer.next() }
        #expect(framer.pendingBytes == 0)
        // Nothing is kept of what comes after, either.
        framer.receive([UInt8](repeating: 0x20, count: 100_000))
        #expect(framer.pendingBytes == 0)
    }

    @Test func aClaimWithinTheLimitHoldsWhatCame() throws {
        var framer = SIPStreamFramer()
        let bytes = request(replacing: ["Content-Length": "60000"])
        framer.receive(bytes)
        #expect(try framer.next() == nil)
        #expect(framer.pendingBytes == bytes.count)
    }
}
