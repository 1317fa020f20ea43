import Foundation
import Testing

@testable import SIP

/// The messages of RFC 4475, each with the verdict that the RFC gives or, where it leaves a choice, ours.
@Suite struct TortureTests {
    struct Case: CustomTestStringConvertible {
        var file: String
        /// 200 accepted, 0 dropped, else the status of the answer; nil: not even a message.
        var verdict: Int?
        var why: String
        /// What the copy of the file lacks against the RFC.
        var completion = ""
        var testDescription: String { file }
    }

    static let cases = [
        Case(file: "badaspec", verdict: 400, why: "3.1.2.14: spaces within the angle brackets"),
        Case(file: "badbranch", verdict: 400, why: "3.2.1: the branch is the magic cookie and nothing else"),
        Case(file: "baddate", verdict: 200, why: "3.1.2.12: a Date not in GMT may be ignored"),
        Case(file: "baddn", verdict: 400, why: "3.1.2.15: a comma in a name without quotes", completion: "\r\n"),
        Case(file: "badinv01", verdict: 400, why: "3.1.2.1: empty parameters in Via and Contact"),
        Case(file: "bcast", verdict: 200, why: "3.3.9: well formed; who receives it matches it to nothing"),
        Case(file: "bigcode", verdict: nil, why: "3.1.2.19: the status does not exist"),
        Case(file: "cparam01", verdict: 200, why: "3.3.12: the parameter belongs to the header"),
        Case(file: "cparam02", verdict: 200, why: "3.3.13: the parameter belongs to the URI"),
        Case(file: "dblreq", verdict: 200, why: "3.1.1.8: what follows Content-Length is not part of it"),
        Case(file: "esc01", verdict: 200, why: "3.1.1.3: escapes"),
        Case(file: "esc02", verdict: 200, why: "3.1.1.5: a percent sign that is no escape"),
        Case(file: "escruri", verdict: 400, why: "3.1.2.11: headers in the Request-URI"),
        Case(file: "insuf", verdict: 400, why: "3.3.1: mandatory headers missing"),
        Case(file: "inv2543", verdict: 200, why: "3.4.1: RFC 2543 had neither branches nor tags"),
        Case(file: "invut", verdict: 200, why: "3.3.5: the body's type is the user agent's business (415)"),
        Case(file: "longreq", verdict: 200, why: "3.1.1.7: long values"),
        Case(file: "lwsdisp", verdict: 200, why: "3.1.1.6: no space between name and bracket"),
        Case(file: "lwsruri", verdict: 400, why: "3.1.2.8: spaces in the Request-URI"),
        Case(file: "lwsstart", verdict: 400, why: "3.1.2.9: several spaces between the parts of the start line"),
        Case(file: "mismatch01", verdict: 400, why: "3.1.2.17: CSeq names another method"),
        Case(file: "ncl", verdict: 400, why: "3.1.2.3: a negative Content-Length"),
        Case(file: "noreason", verdict: 200, why: "3.1.1.13: an empty reason phrase"),
        Case(file: "novelsc", verdict: 416, why: "3.3.3: a known but foreign scheme"),
        Case(file: "regaut01", verdict: 200, why: "3.3.7: an unknown scheme in Authorization is for the registrar"),
        Case(file: "regbadct", verdict: 400, why: "3.1.2.13: a Contact with `?` and no angle brackets"),
        Case(file: "regescrt", verdict: 200, why: "3.3.14: the same with angle brackets"),
        Case(file: "scalar02", verdict: 400, why: "3.1.2.4: numbers beyond their range"),
        Case(file: "sdp01", verdict: 200, why: "3.3.6: what is in Accept is the user agent's business (406)"),
        Case(file: "test", verdict: nil, why: "not in the RFC: no version, a line without a colon, no Via or CSeq"),
        Case(file: "transports", verdict: 200, why: "3.1.1.10: transports that we do not have"),
        Case(file: "trws", verdict: 400, why: "3.1.2.10: spaces at the end of the start line"),
        Case(file: "unksm2", verdict: 200, why: "3.3.4: unknown schemes in headers are for the registrar"),
        Case(file: "unreason", verdict: 200, why: "3.1.1.12: a reason phrase in UTF-8"),
        Case(file: "zeromf", verdict: 200, why: "3.3.11: who is addressed answers; a proxy sends 483"),
    ]

    static var folder: URL {
        URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
            .appendingPathComponent("Vectors/rfc4475")
    }

    static func bytes(_ name: String, completion: String = "") throws -> [UInt8] {
        Array(try Data(contentsOf: folder.appendingPathComponent(name + ".dat"))) + completion.utf8
    }

    @Test(arguments: cases) func hasTheStatedVerdict(_ item: Case) throws {
        let bytes = try Self.bytes(item.file, completion: item.completion)
        #expect(verdict(bytes) == item.verdict, "\(item.why)")
        guard item.verdict == 200 else { return }
        let message = try SIPMessage.parse(bytes)
        let printed = try message.encoded()
        let again = try SIPMessage.parse(printed)
        #expect(again.validate() == nil)
        #expect(withoutLength(again) == withoutLength(message))
        #expect(try again.encoded() == printed)
    }

    @Test func everyFileHasAVerdict() throws {
        let files = try FileManager.default.contentsOfDirectory(atPath: Self.folder.path)
            .filter { $0.hasSuffix(".dat") }
            .map { String($0.dropLast(4)) }
        #expect(files.sorted() == Self.cases.map(\.file).sorted())
    }

    // MARK: What the RFC's messages are about, in detail

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
}
