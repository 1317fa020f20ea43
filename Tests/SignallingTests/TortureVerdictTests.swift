import Foundation
import Primitives
import SIP
import SinchEnvironment
import Testing
import Token

@testable import Signalling

/// Every message of RFC 4475 and RFC 5118 has a stated verdict at each place that decides: the parser with its validation,
/// a user agent, and the environment's proxy and registrar. The tables are in `SIPTests/Vectors/README.md`.
@Suite struct TortureVerdictTests {
    struct Row: CustomTestStringConvertible, Sendable {
        var folder: String
        var name: String
        var section: String
        var parser: String
        var userAgent: String
        var environment: String
        var testDescription: String { "\(folder)/\(name)" }
    }

    static let folder = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
        .appendingPathComponent("SIPTests/Vectors")

    /// The rows of the tables; a heading such as "RFC 4475" names the folder of those below it.
    static let rows: [Row] = {
        let text = (try? String(contentsOf: folder.appendingPathComponent("README.md"), encoding: .utf8)) ?? ""
        var rows: [Row] = []
        var current = ""
        for line in text.split(separator: "\n") {
            if line.hasPrefix("## RFC ") { current = "rfc" + line.dropFirst(7).prefix { $0.isNumber } }
            guard line.hasPrefix("| `") else { continue }
            let cells = line.split(separator: "|").map { $0.trimmingCharacters(in: .whitespaces) }
            guard cells.count == 7 else { continue }
            rows.append(
                Row(
                    folder: current, name: cells[0].trimmingCharacters(in: ["`"]), section: cells[1], parser: cells[3],
                    userAgent: cells[4], environment: cells[5]))
        }
        return rows
    }()

    static func bytes(_ row: Row) throws -> [UInt8] {
        Array(try Data(contentsOf: folder.appendingPathComponent("\(row.folder)/\(row.name).dat")))
    }

    @Test func everyMessageHasOneRow() throws {
        for (folder, count) in [("rfc4475", 49), ("rfc5118", 12)] {
            let files = try FileManager.default.contentsOfDirectory(
                atPath: Self.folder.appendingPathComponent(folder).path)
            let names = files.filter { $0.hasSuffix(".dat") }.map { String($0.dropLast(4)) }.sorted()
            let rows = Self.rows.filter { $0.folder == folder }
            #expect(rows.map(\.name).sorted() == names)
            #expect(rows.filter { $0.section != "–" }.count == count, "the RFC's number of messages")
        }
    }

    @Test(arguments: rows) func parserDecidesAsStated(_ row: Row) throws {
        let bytes = try Self.bytes(row)
        let verdict = Self.parserVerdict(bytes)
        #expect(verdict == row.parser)
        guard row.parser == "accepted" else { return }
        // What is accepted is passed on unchanged.
        let message = try SIPMessage.parse(bytes)
        let printed = try message.encoded()
        let again = try SIPMessage.parse(printed)
        #expect(again.validate() == nil)
        #expect(again.startLine == message.startLine)
        #expect(again.body == message.body)
        #expect(try again.encoded() == printed)
    }

    @Test(arguments: rows) func userAgentDoesAsStated(_ row: Row) throws {
        let verdict = try Self.userAgentVerdict(try Self.bytes(row))
        #expect(verdict == row.userAgent)
    }

    @Test(arguments: rows) func environmentDoesAsStated(_ row: Row) throws {
        let verdict = try Self.environmentVerdict(try Self.bytes(row))
        #expect(verdict == row.environment)
    }

    // MARK: The three places

    static func parserVerdict(_ bytes: [UInt8]) -> String {
        do throws(SIPParseError) {
            return try SIPMessage.parse(bytes).validate()?.description ?? "accepted"
        } catch {
            return "unreadable: \(error.reason)"
        }
    }

    /// A registered user agent without calls.
    private static func userAgentVerdict(_ bytes: [UInt8]) throws -> String {
        guard let message = try? SIPMessage.parse(bytes) else { return "not seen" }
        var lone = LoneAgent()
        lone.act { $0.start(at: $1) }
        try lone.acceptRegistration()
        lone.sent = []
        let flow = lone.flow
        lone.act { $0.receive(message, from: flow, at: $1) }
        let answers = try statuses(lone.sent)
        return lone.records.isEmpty ? answers : "rings, \(answers)"
    }

    /// An environment that serves the domains of the messages, where caller and callee are registered.
    private static func environmentVerdict(_ bytes: [UInt8]) throws -> String {
        let secret = Array("0123456789abcdef".utf8)
        let application = "a32e5a8d-f7d8-411c-9645-9038e8dd051d"
        let now = MonotonicTime(nanoseconds: 1_000_000_000)
        let unixTime: Int64 = 1_700_000_000
        var configuration = EnvironmentConfiguration(
            applications: [.init(key: application, secret: try ApplicationSecret(bytes: secret))],
            listen: [.udp: TransportAddress(host: "127.0.0.1", port: 5060)])
        configuration.realm = "example.com"
        configuration.domainAliases = ["example.net", "example.org", "[2001:db8::10]"]
        var core = EnvironmentCore(configuration: configuration, random: .seeded(4_475))
        func flow(_ port: UInt16) -> SIPFlow {
            SIPFlow(transport: .udp, remote: TransportAddress(host: "127.0.0.1", port: port))
        }
        func register(_ user: String, over flow: SIPFlow) throws {
            let token = try RegistrationToken.sign(
                applicationKey: application, applicationSecret: ApplicationSecret(bytes: secret), userID: user,
                issuedAt: unixTime, lifetime: 600, nonce: "n")
            let uri = SIPURI(user: user, host: "example.com")
            var request = SIPMessage(request: .register, uri: SIPURI(user: nil, host: "example.com"))
            request.prependVia(
                SIPVia(
                    transport: "UDP", host: "127.0.0.1", port: flow.remote.port, branch: "z9hG4bK\(flow.remote.port)"))
            request.maxForwards = 70
            request.to = SIPAddress(uri: uri)
            var from = SIPAddress(uri: uri)
            from.tag = "registration"
            request.from = from
            request.callID = "registration-\(flow.remote.port)"
            request.cseq = SIPCSeq(number: 1, method: .register)
            request.contacts = [SIPAddress(uri: SIPURI(user: user, host: "127.0.0.1", port: flow.remote.port))]
            request.headers.append("Authorization", "Bearer " + token)
            core.receive(request, from: flow, at: now, unixTime: unixTime)
            while core.nextAction() != nil {}
        }
        if let message = try? SIPMessage.parse(bytes), message.validate() == nil {
            if let caller = message.from?.uri.user { try? register(caller, over: flow(40_001)) }
            if let callee = message.requestURI?.user { try? register(callee, over: flow(40_002)) }
        }
        do throws(SIPParseError) {
            let message = try SIPMessage.parse(bytes)
            core.receive(message, from: flow(40_001), at: now, unixTime: unixTime)
        } catch {
            core.receiveMalformed(bytes, error: error, from: flow(40_001), at: now)
        }
        var sent: [SIPMessage] = []
        while let action = core.nextAction() {
            if case .send(let message, _) = action { sent.append(message) }
        }
        return try statuses(sent)
    }

    /// What was sent, in words. All of it must be good SIP itself.
    private static func statuses(_ sent: [SIPMessage]) throws -> String {
        var words: [String] = []
        for message in sent where message.status != 100 {
            let copy = try SIPMessage.parse(try message.encoded())
            if message.isRequest { #expect(copy.validate() == nil) }
            words.append(message.status.map { String($0) } ?? "forwarded")
        }
        return words.isEmpty ? "nothing" : words.joined(separator: ", ")
    }
}
