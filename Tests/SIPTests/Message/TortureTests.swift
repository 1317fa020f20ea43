import Foundation
import Testing

@testable import SIP

/// What the messages of RFC 4475 are about, in detail. What becomes of each is stated in `Vectors/README.md` and tested by
/// SignallingTests.
@Suite struct TortureTests {
    static var folder: URL {
        URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
            .appendingPathComponent("Vectors")
    }

    static func bytes(_ name: String, of rfc: String = "rfc4475") throws -> [UInt8] {
        Array(try Data(contentsOf: folder.appendingPathComponent("\(rfc)/\(name).dat")))
    }

    /// All messages of both RFCs.
    static func all() throws -> [[UInt8]] {
        try ["rfc4475", "rfc5118"].flatMap { rfc in
            try FileManager.default.contentsOfDirectory(atPath: folder.appendingPathComponent(rfc).path).sorted()
                .map { try bytes(String($0.dropLast(4)), of: rfc) }
        }
    }

    @Test func escapesAreResolvedWhereTheyMeanSomething() throws {
        let message = try SIPMessage.parse(try Self.bytes("esc01"))
        #expect(message.requestURI?.user == "sips:user@example.com")
        #expect(message.requestURI?.host == "example.net")
        #expect(message.to?.uri.user == "user")
        #expect(message.from?.uri.user == "I have spaces")
        #expect(message.contacts.first?.uri.user == "caller")
        #expect(message.contacts.first?.uri.isLooseRouter == true)
        #expect(message.contacts.first?.uri.parameters["name"] == "value%41")
        #expect(message.requestURI?.description == "sip:sips%3Auser%40example.com@example.net")
    }

    @Test func percentSignsInTokensAreNoEscapes() throws {
        let message = try SIPMessage.parse(try Self.bytes("esc02"))
        #expect(message.method?.rawValue == "RE%47IST%45R")
        #expect(message.cseq?.method == message.method)
        #expect(message.to?.displayName == "%Z%45")
        #expect(message.topVia?.branch == "z9hG4bK209%fzsnel234")
        #expect(message.contacts.map(\.uri.user) == ["alias1", "alias3"])
        #expect(message.headers["C%6Fntact"] == "<sip:alias2@host2.example.com>")
    }

    @Test func parametersBelongToWhatTheyFollow() throws {
        let header = try SIPMessage.parse(try Self.bytes("cparam01"))
        #expect(header.contacts.first?.parameters.contains("unknownparam") == true)
        #expect(header.contacts.first?.uri.parameters.isEmpty == true)
        let uri = try SIPMessage.parse(try Self.bytes("cparam02"))
        #expect(uri.contacts.first?.parameters.isEmpty == true)
        #expect(uri.contacts.first?.uri.parameters.contains("unknownparam") == true)
    }

    @Test func theSecondRequestIsCutOff() throws {
        let message = try SIPMessage.parse(try Self.bytes("dblreq"))
        #expect(message.method == .register)
        #expect(message.body.isEmpty)
        #expect(message.callID == "dblreq.0ha0isndaksdj99sdfafnl3lk233412")
    }

    @Test func viasInEveryCaseAndWithSpacesAreOneList() throws {
        let message = try SIPMessage.parse(try Self.bytes("longreq"))
        #expect(message.vias.count == 34)
        #expect(message.vias.map(\.host).prefix(3) == ["sip33.example.com", "sip32.example.com", "sip31.example.com"])
        #expect(message.vias.last?.received == "192.0.2.5")
    }

    @Test func reasonPhrasesKeepTheirText() throws {
        let unicode = try SIPMessage.parse(try Self.bytes("unreason"))
        #expect(unicode.reason == "= 2**3 * 5**2 но сто девяносто девять - простое")
        #expect(try SIPMessage.parse(try Self.bytes("noreason")).reason == "")
    }

    @Test func foreignSchemesAreKept() throws {
        let message = try SIPMessage.parse(try Self.bytes("unksm2"))
        #expect(message.to?.uri.scheme == "isbn")
        #expect(message.to?.uri.opaque == "2983792873")
        #expect(message.from?.uri.description == "http://www.example.com")
        #expect(message.contacts.first?.uri.description == "name:John_Smith")
    }

    @Test func aBinaryPartSurvives() throws {
        let bytes = try Self.bytes("mpart01")
        let message = try SIPMessage.parse(bytes)
        #expect(message.body == bytes.suffix(message.body.count))
        #expect(message.body.count == message.contentLength)
        #expect(Set(message.body).count == 256, "every byte value is in it")
        #expect(try SIPMessage.parse(message.encoded()).body == message.body)
    }

    @Test func aResponseHoldsWhatTheRequestHeld() throws {
        // Its To carries a NUL in a quoted pair, which no text of ours may: it is copied, not written anew.
        let message = try SIPMessage.parse(try Self.bytes("intmeth"))
        let response = try SIPMessage.parse(try message.response(status: 405, toTag: "ours").encoded())
        #expect(response.headers["To"] == message.headers["To"].map { $0 + ";tag=ours" })
        #expect(response.to?.tag == "ours")
        #expect(response.headers["From"] == message.headers["From"])
        var tagged = response
        tagged.addToTag("another")
        #expect(tagged.to?.tag == "ours")
    }

    @Test func whatIsWithinTheBracketsIsTheAddress() throws {
        let ambiguous = try SIPMessage.parse(try Self.bytes("port-ambiguous", of: "rfc5118")).requestURI
        #expect(ambiguous?.host == "[2001:db8::10:5070]" && ambiguous?.port == nil)
        let unambiguous = try SIPMessage.parse(try Self.bytes("port-unambiguous", of: "rfc5118")).requestURI
        #expect(unambiguous?.host == "[2001:db8::10]" && unambiguous?.port == 5070)
        for name in ["via-received-param-with-delim", "via-received-param-no-delim"] {
            #expect(try SIPMessage.parse(try Self.bytes(name, of: "rfc5118")).topVia?.received == "2001:db8::9:255")
        }
    }

    @Test(arguments: [
        ("[2001:db8:::192.0.2.1]", "[2001:db8::192.0.2.1]"), ("[:::192.0.2.1]", "[::192.0.2.1]"),
        ("[1:2:3:4:5:::192.0.2.1]", "[1:2:3:4:5::192.0.2.1]"), ("[2001:db8::::192.0.2.1]", nil),
        ("[2001:db8:::1]", nil), ("[1::2:::192.0.2.1]", nil), ("[2001:::db8::192.0.2.1]", nil),
        ("[1:2:3:4:5:6:::192.0.2.1]", nil), ("[2001:db8:::192.0.2.1.1]", nil), ("[:::]", nil),
    ])
    func threeColonsBeforeIPv4AreTwo(_ text: String, _ host: String?) {
        #expect((try? SIPURI(parsing: "sip:a@" + text))?.host == host)
    }
}
