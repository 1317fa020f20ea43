import Testing

@testable import SIP

@Suite struct HeaderTests {
    @Test func everyKnownNameIsFoundInEveryForm() {
        for kind in HeaderName.allCases where kind != .other {
            let (long, compact) = kind.names
            for name in [long, long.uppercased(), long.lowercased()] { #expect(HeaderName(name) == kind) }
            if let compact {
                #expect(HeaderName(compact) == kind)
                #expect(HeaderName(compact.uppercased()) == kind)
            }
            #expect(HeaderName(long + "x") == .other)
            #expect(HeaderName("x" + long) == .other)
        }
        #expect(HeaderName("") == .other)
        #expect(HeaderName(String(repeating: "x", count: 1_000)) == .other)
        #expect(HeaderName.allCases.allSatisfy { $0.rawValue < 64 || HeaderName.single & $0.bit == 0 })
    }

    @Test func namesAndCompactFormsAreTheSameHeader() {
        var headers = SIPHeaders()
        headers.append("v", "first")
        headers.append("X-Own", "1")
        headers.append("VIA", "second")
        headers.prepend("Via", "zeroth")
        #expect(headers.all("via") == ["zeroth", "first", "second"])
        #expect(headers["V"] == "zeroth")
        #expect(headers["x-OWN"] == "1")
        #expect(headers["X-Ow"] == nil)
        headers["Via"] = "only"
        #expect(headers.all("v") == ["only"])
        #expect(headers.all.map(\.name) == ["Via", "X-Own"])
        headers["x-own"] = nil
        headers["New"] = "2"
        #expect(headers.all.map(\.value) == ["only", "2"])
        headers.remove("v")
        #expect(!headers.contains("Via"))
        #expect(headers.contains("NEW"))
    }

    @Test func listsAreTakenApartWhereCommasSeparate() {
        var headers = SIPHeaders()
        headers.append("Contact", "\"a, \\\" b\" <sip:a,b@h>;x=\"1,2\" , <sip:c@h>,,")
        headers.append("m", "sip:d@h (one, (two,) \\) three), e")
        headers.append("Contact", "\"never ends, <sip:x>")
        #expect(
            headers.values("Contact") == [
                "\"a, \\\" b\" <sip:a,b@h>;x=\"1,2\"", "<sip:c@h>", "sip:d@h (one, (two,) \\) three)", "e",
                "\"never ends, <sip:x>",
            ])
        #expect(headers.values("None").isEmpty)
        headers["Supported"] = ""
        #expect(headers.values("k").isEmpty)
    }

    @Test func bytesThatAreNotUTF8Survive() throws {
        var bytes = request()
        bytes.removeLast(2)
        bytes += Array("X-Latin: caf".utf8) + [0xE9, 0xFF, 0x80, 0x09, 0x1B] + Array("end\r\n\r\n".utf8)
        let message = try SIPMessage.parse(bytes)
        #expect(message.validate() == nil)
        #expect(message.headers["x-latin"]?.hasPrefix("caf\u{FFFD}") == true)
        var changed = message
        changed.prependVia(SIPVia(transport: "UDP", host: "proxy.example.com", branch: "z9hG4bKp"))
        changed.headers["Subject"] = "x"
        let printed = try changed.encoded()
        let line = Array("X-Latin: caf".utf8) + [0xE9, 0xFF, 0x80, 0x09, 0x1B] + Array("end\r\n".utf8)
        #expect(printed.firstRange(of: line) != nil)
        #expect(try SIPMessage.parse(printed).vias.count == 2)
    }

    @Test func viasAreAddedReplacedAndRemovedOneByOne() throws {
        var message = try SIPMessage.parse(
            request(
                replacing: ["Via": "SIP/2.0/UDP a;branch=z9hG4bKa , SIP/2.0/TCP b;branch=z9hG4bKb"],
                adding: ["v: SIP/2.0/TLS c;branch=z9hG4bKc"]))
        #expect(message.vias.map(\.host) == ["a", "b", "c"])
        message.topVia?.received = "192.0.2.1"
        #expect(message.vias.map(\.received) == ["192.0.2.1", nil, nil])
        message.prependVia(SIPVia(transport: "UDP", host: "p"))
        #expect(message.vias.map(\.host) == ["p", "a", "b", "c"])
        message.removeTopVia()
        message.removeTopVia()
        #expect(message.vias.map(\.host) == ["b", "c"])
        message.topVia = nil
        message.removeTopVia()
        message.removeTopVia()
        #expect(message.topVia == nil)
        #expect(message.vias.isEmpty)
        message.topVia = SIPVia(transport: "UDP", host: "n")
        message.vias += [SIPVia(transport: "UDP", host: "m")]
        #expect(message.vias.map(\.host) == ["n", "m"])
    }

    @Test func typedHeadersReadAndWrite() throws {
        var message = SIPMessage(request: .register, uri: SIPURI(user: nil, host: "example.com"))
        message.from = SIPAddress(uri: SIPURI(user: "a", host: "h"), displayName: "A \"x\" \\")
        message.from?.tag = "1"
        message.to = SIPAddress(uri: SIPURI(user: "b", host: "h"))
        message.callID = "id"
        message.cseq = SIPCSeq(number: 5, method: .register)
        message.maxForwards = 70
        message.expires = 600
        message.contacts = [
            SIPAddress(uri: SIPURI(user: "c", host: "h")), SIPAddress(uri: SIPURI(user: "d", host: "h")),
        ]
        message.routes = [SIPAddress(uri: try SIPURI(parsing: "sip:r;lr"))]
        message.recordRoutes = [SIPAddress(uri: try SIPURI(parsing: "sip:rr;lr"))]
        message.contentType = "text/plain"
        message.body = Array("hello".utf8)
        message.prependVia(SIPVia(transport: "UDP", host: "h", branch: "z9hG4bKx"))
        #expect(message.validate() == nil)
        let again = try SIPMessage.parse(message.encoded())
        #expect(again.from == message.from)
        #expect(again.from?.displayName == "A \"x\" \\")
        #expect(again.contacts == message.contacts)
        #expect(again.routes.first?.uri.isLooseRouter == true)
        #expect(again.recordRoutes == message.recordRoutes)
        #expect(again.cseq == message.cseq)
        #expect(again.expires == 600)
        #expect(again.contentLength == 5)
        #expect(again.method == .register && again.isRequest && again.status == nil && again.reason == nil)
        #expect(again.requestURI == message.requestURI)
        message.contacts = []
        message.expires = nil
        #expect(!message.headers.contains("Contact"))
        #expect(!message.headers.contains("Expires"))
        message.headers["m"] = "*"
        #expect(message.hasStarContact && message.contacts.isEmpty)
    }

    @Test func scalarsReadWhatTheyCanTrust() throws {
        var message = SIPMessage(status: 503)
        #expect(message.reason == "Service Unavailable")
        for (text, seconds) in [
            ("120", 120), ("18000;duration=3600", 18_000), ("120 (I'm in a meeting)", 120), ("soon", nil), ("", nil),
            ("4294967296", nil), ("-1", nil), ("12x", nil),
        ] as [(String, Int?)] {
            message.headers["Retry-After"] = text
            #expect(message.retryAfter == seconds, "\(text)")
        }
        message.headers["Min-Expires"] = "1800"
        #expect(message.minExpires == 1_800)
        message.headers["Expires"] = "1 2"
        #expect(message.expires == nil)
    }

    @Test func aChangedBodyCorrectsItsLength() throws {
        var message = try SIPMessage.parse(request(body: "abc"))
        #expect(message.contentLength == 3)
        message.body = []
        #expect(message.contentLength == 0)
        #expect(message.validate() == nil)
        #expect(string(try message.encoded()).hasSuffix("\r\nContent-Length: 0\r\n\r\n"))
    }

    @Test func responsesCopyWhatTheyMust() throws {
        let message = try SIPMessage.parse(
            request(
                "INVITE sip:bob@example.com SIP/2.0", replacing: ["To": "sip:bob@example.com;x=1"],
                adding: [
                    "v: SIP/2.0/TCP second;branch=z9hG4bK2", "Record-Route: <sip:p1;lr>", "Record-Route: <sip:p2;lr>",
                    "Timestamp: 54", "Subject: not copied",
                ]))
        let trying = message.response(status: 100)
        #expect(trying.headers["Timestamp"] == "54")
        #expect(trying.to?.tag == nil)
        #expect(trying.recordRoutes.isEmpty)
        let answer = message.response(status: 200, toTag: "t1")
        #expect(answer.validate() == nil)
        #expect(answer.status == 200 && answer.reason == "OK" && !answer.isRequest && answer.method == nil)
        #expect(answer.vias == message.vias)
        #expect(answer.from == message.from)
        #expect(answer.to?.tag == "t1")
        #expect(answer.to?.parameters["x"] == "1")
        #expect(answer.callID == message.callID && answer.cseq == message.cseq)
        #expect(answer.recordRoutes == message.recordRoutes && answer.recordRoutes.count == 2)
        #expect(!answer.headers.contains("Subject"))
        #expect(message.response(status: 486, reason: "Busy", toTag: "t").recordRoutes.isEmpty)
        var inDialog = message
        inDialog.to?.tag = "t1"
        #expect(inDialog.response(status: 200, toTag: "t2").to?.tag == "t1")
    }

    @Test func replacingForEverDoesNotGrow() {
        var headers = SIPHeaders()
        headers["Keep"] = "me"
        for round in 0..<2_000 { headers["Subject"] = "round \(round) " + String(repeating: "x", count: 100) }
        #expect(headers.storage.count < 10_000)
        #expect(headers["keep"] == "me")
        #expect(headers["Subject"]?.hasPrefix("round 1999 x") == true)
    }

    @Test func transportsHaveTheirNames() {
        #expect(SIPTransport(viaName: "WSS") == .wss)
        #expect(SIPTransport(viaName: "SCTP") == nil)
        #expect(SIPTransport.tls.viaName == "TLS" && SIPTransport.tls.isSecure && SIPTransport.tls.isReliable)
        #expect(!SIPTransport.udp.isReliable && !SIPTransport.tcp.isSecure)
    }
}
