import Testing

@testable import SIP

/// What a caller passes in may hold anything; nothing of it may become another field on the wire.
@Suite struct InjectionTests {
    static let poisons = ["a\r\nX-Evil: 1", "a\nb", "a\rb", "a\0b", "\r\n\r\nINVITE", "a\r\n b"]

    static var valid: SIPMessage {
        var message = SIPMessage(request: .options, uri: SIPURI(user: "bob", host: "example.com"))
        message.from = SIPAddress(uri: SIPURI(user: "alice", host: "example.com"))
        message.to = SIPAddress(uri: SIPURI(user: "bob", host: "example.com"))
        return message
    }

    private func refused(_ field: String, _ change: (inout SIPMessage) -> Void) {
        var message = Self.valid
        change(&message)
        do throws(SIPPrintError) {
            let bytes = try message.encoded()
            Issue.record("printed: \(string(bytes))")
        } catch {
            #expect(error.field == field)
            #expect(!error.reason.isEmpty && error.description.hasPrefix(field))
        }
    }

    @Test func aValidMessagePrints() throws {
        #expect(try SIPMessage.parse(Self.valid.encoded()).to?.uri.user == "bob")
    }

    @Test(arguments: poisons) func lineEndsAreRefused(_ poison: String) {
        refused("method") {
            $0.startLine = .request(method: SIPMethod(rawValue: poison), uri: SIPURI(user: nil, host: "h"))
        }
        refused("Request-URI user") { $0.requestURI = SIPURI(user: poison, host: "h") }
        refused("Request-URI host") { $0.requestURI = SIPURI(user: nil, host: poison) }
        refused("Request-URI password") { $0.requestURI?.password = poison }
        refused("Request-URI URI parameter") { $0.requestURI?.parameters["x"] = poison }
        refused("Request-URI URI parameter") { $0.requestURI?.parameters[poison] = "x" }
        refused("Request-URI URI header") { $0.requestURI?.headers = [.init(name: "x", value: poison)] }
        refused("reason") { $0.startLine = .response(status: 200, reason: poison) }
        refused("header name") { $0.headers.append(poison, "x") }
        refused("Subject") { $0.headers["Subject"] = poison }
        refused("X-Own") { $0.headers.append("X-Own", poison) }
        refused("X-Own") { $0.headers.prepend("X-Own", poison) }
        refused("From") { $0.from?.displayName = poison }
        refused("From") { $0.from?.uri.user = poison }
        refused("From") { $0.from?.uri.host = poison }
        refused("From") { $0.from?.tag = poison }
        refused("From") { $0.from?.parameters[poison] = "x" }
        refused("Call-ID") { $0.callID = poison }
        refused("CSeq") { $0.cseq = SIPCSeq(number: 1, method: SIPMethod(rawValue: poison)) }
        refused("Contact") { $0.contacts = [SIPAddress(uri: SIPURI(user: poison, host: "h"))] }
        refused("Via") { $0.prependVia(SIPVia(transport: "UDP", host: poison)) }
        refused("Via") { $0.prependVia(SIPVia(transport: poison, host: "h")) }
        refused("Via") { $0.prependVia(SIPVia(transport: "UDP", host: "h", branch: poison)) }
        refused("Content-Type") { $0.contentType = poison }
        let response = Self.valid.response(status: 200, toTag: poison)
        #expect(throws: SIPPrintError.self) { try response.encoded() }
    }

    @Test(arguments: poisons) func addressesSayWhichPartIsWrong(_ poison: String) {
        let good = SIPAddress(uri: SIPURI(user: "a", host: "h"))
        #expect(good.printFault == nil)
        #expect(SIPAddress(uri: good.uri, displayName: poison).printFault?.field == "display name")
        #expect(SIPAddress(uri: SIPURI(user: poison, host: "h")).printFault?.field == "user")
        #expect(SIPAddress(uri: SIPURI(user: "a", host: poison)).printFault?.field == "host")
        var address = good
        address.tag = poison
        #expect(address.printFault?.field == "parameter tag")
    }

    @Test func whatIsNoLineEndIsEscapedOrQuoted() throws {
        var message = Self.valid
        message.requestURI = SIPURI(user: "bob>;lr SIP/2.0 %0d%0aX: 1", host: "example.com")
        message.from?.displayName = "evil\" <sip:x@y>, \\"
        message.from?.tag = "1;x=2>,"
        let bytes = try message.encoded()
        let again = try SIPMessage.parse(bytes)
        #expect(again.requestURI?.user == "bob>;lr SIP/2.0 %0d%0aX: 1")
        #expect(again.from?.displayName == "evil\" <sip:x@y>, \\")
        #expect(again.from?.uri == message.from?.uri)
        #expect(again.from?.parameters.unquoted("tag") == "1;x=2>,")
        #expect(!string(bytes).contains("%0d%0aX"))
    }

    @Test func otherFieldsThatCannotBePrinted() {
        refused("method") { $0.startLine = .request(method: "", uri: SIPURI(user: nil, host: "h")) }
        refused("method") { $0.startLine = .request(method: "A B", uri: SIPURI(user: nil, host: "h")) }
        refused("Request-URI host") { $0.requestURI = SIPURI(user: nil, host: "h SIP/2.0") }
        refused("Request-URI host") { $0.requestURI = SIPURI(user: nil, host: "") }
        refused("Request-URI user") { $0.requestURI = SIPURI(user: "", host: "h") }
        refused("status") { $0.startLine = .response(status: 700, reason: "") }
        refused("header name") { $0.headers.append("", "x") }
        refused("header name") { $0.headers.append("a b", "x") }
        refused("header name") { $0.headers.append("a:b", "x") }
    }

    @Test func aMalformedRequestURIIsNotPassedOn() throws {
        let message = try SIPMessage.parse(request("OPTIONS <sip:a@h> SIP/2.0"))
        #expect(throws: SIPPrintError.self) { try message.encoded() }
        var repaired = message
        repaired.requestURI = SIPURI(user: "a", host: "h")
        #expect(repaired.validate() == nil)
    }
}
