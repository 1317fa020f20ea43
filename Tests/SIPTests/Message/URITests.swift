import Testing

@testable import SIP

@Suite struct URITests {
    /// RFC 3261 section 19.1.4, the examples of the text.
    @Test(arguments: [
        ("sip:%61lice@atlanta.com;transport=TCP", "sip:alice@AtLanTa.CoM;Transport=tcp"),
        ("sip:carol@chicago.com", "sip:carol@chicago.com;newparam=5"),
        ("sip:carol@chicago.com", "sip:carol@chicago.com;security=on"),
        ("sip:carol@chicago.com;newparam=5", "sip:carol@chicago.com;security=on"),
        (
            "sip:biloxi.com;transport=tcp;method=REGISTER?to=sip:bob%40biloxi.com",
            "sip:biloxi.com;method=REGISTER;transport=tcp?to=sip:bob%40biloxi.com"
        ),
        (
            "sip:alice@atlanta.com?subject=project%20x&priority=urgent",
            "sip:alice@atlanta.com?priority=urgent&subject=project%20x"
        ),
        ("tel:+1-201-555-0123", "tel:+1(201)555.0123"), ("urn:uuid:1", "URN:uuid:1"),
    ])
    func equivalent(_ left: String, _ right: String) throws {
        let left = try SIPURI(parsing: left)
        let right = try SIPURI(parsing: right)
        #expect(left.isEquivalent(to: right))
        #expect(right.isEquivalent(to: left))
    }

    @Test(arguments: [
        ("SIP:ALICE@AtLanTa.CoM;Transport=udp", "sip:alice@AtLanTa.CoM;Transport=UDP"),
        ("sip:bob@biloxi.com", "sip:bob@biloxi.com:5060"),
        ("sip:bob@biloxi.com", "sip:bob@biloxi.com;transport=udp"),
        ("sip:bob@biloxi.com", "sip:bob@biloxi.com:6000;transport=tcp"),
        ("sip:carol@chicago.com", "sip:carol@chicago.com?Subject=next%20meeting"),
        ("sip:bob@phone21.boxesbybob.com", "sip:bob@192.0.2.4"),
        ("sip:carol@chicago.com;security=on", "sip:carol@chicago.com;security=off"),
        ("sip:a@h", "sips:a@h"), ("sip:a@h", "sip:h"), ("sip:a@h", "sip:a:p@h"), ("sip:a@h;user=phone", "sip:a@h"),
        ("sip:a@h;ttl=1", "sip:a@h"), ("sip:a@h;maddr=x", "sip:a@h"), ("sip:a@h;method=INVITE", "sip:a@h"),
        ("sip:a%3Bb@h", "sip:a;b@h"), ("sip:a@h?x=1", "sip:a@h?x=1&x=1"), ("tel:+1", "sip:+1@h"), ("urn:a", "urn:b"),
    ])
    func notEquivalent(_ left: String, _ right: String) throws {
        let left = try SIPURI(parsing: left)
        let right = try SIPURI(parsing: right)
        #expect(!left.isEquivalent(to: right))
        #expect(!right.isEquivalent(to: left))
    }

    @Test func isTakenApart() throws {
        let uri = try SIPURI(
            parsing: "SIPS:al%69ce:s%25cret@[2001:DB8::1]:5061;LR;Transport=TLS;x=%22?Subject=a%20b&to=c")
        #expect(uri.scheme == "sips")
        #expect(uri.isSIP && uri.isSecure && uri.isLooseRouter)
        #expect(uri.user == "alice")
        #expect(uri.password == "s%cret")
        #expect(uri.host == "[2001:db8::1]")
        #expect(uri.port == 5061)
        #expect(uri.transport == "tls")
        #expect(uri.parameters["lr"] == "")
        #expect(uri.parameters["X"] == "\"")
        #expect(uri.parameters["none"] == nil)
        #expect(uri.headers == [.init(name: "Subject", value: "a b"), .init(name: "to", value: "c")])
        #expect(
            uri.description
                == "sips:alice:s%25cret@[2001:db8::1]:5061;LR;Transport=TLS;x=%22?Subject=a%20b&to=c")
        #expect(try SIPURI(parsing: uri.description) == uri)
    }

    @Test func madeUpURIsEscapeWhatTheyMust() throws {
        var uri = SIPURI(user: "a b@c:d;e?f%41", host: "::1", port: 5070)
        uri.parameters["transport"] = "tcp"
        uri.parameters["odd name"] = "a;b=c?"
        uri.headers = [.init(name: "Reason", value: "x&y=z")]
        #expect(
            uri.description
                == "sip:a%20b%40c%3Ad;e?f%2541@[::1]:5070;transport=tcp;odd%20name=a%3Bb%3Dc%3F?Reason=x%26y%3Dz")
        let again = try SIPURI(parsing: uri.description)
        #expect(again == uri)
        #expect(again.hashValue == uri.hashValue)
        #expect(again.user == "a b@c:d;e?f%41")
        #expect(again.parameters["odd name"] == "a;b=c?")
        #expect(again.headers.first?.value == "x&y=z")
        #expect(SIPURI(user: nil, host: "Example.COM", secure: true).description == "sips:example.com")
    }

    @Test func escapesThatAreNotUTF8Survive() throws {
        let uri = try SIPURI(parsing: "sip:%ff%FE@h;p=%80?x=%C0")
        #expect(uri.description == "sip:%FF%FE@h;p=%80?x=%C0")
        #expect(uri.user == "\u{FFFD}\u{FFFD}")
        #expect(uri != (try SIPURI(parsing: "sip:%fe%FF@h;p=%80?x=%C0")))
    }

    @Test func parametersBehaveAsDictionaryInOrder() {
        var parameters = SIPParameters()
        parameters["Tag"] = "1"
        parameters.setFlag("lr")
        parameters["tag"] = "2"
        #expect(parameters.all.map(\.name) == ["Tag", "lr"])
        #expect(parameters["TAG"] == "2")
        #expect(parameters.contains("LR"))
        #expect(parameters.all[1].value == nil)
        parameters["lr"] = nil
        parameters.remove("tag")
        #expect(parameters.isEmpty)
        var uri = SIPURI(user: nil, host: "h")
        #expect(uri.parameters == SIPParameters())
        parameters["a"] = "b c"
        uri.parameters = parameters
        #expect(uri.parameters == parameters)
        #expect(uri.description == "sip:h;a=b%20c")
    }

    @Test func headerParametersAreQuotedWhenTheyMustBe() throws {
        var address = SIPAddress(uri: SIPURI(user: "a", host: "h"))
        address.parameters["+sip.instance"] = "<urn:uuid:1>"
        address.parameters["quoted"] = "\"<x>\""
        address.parameters["text"] = "say \"hi\"; ok"
        address.tag = "abc=="
        #expect(
            address.description
                == "<sip:a@h>;+sip.instance=\"<urn:uuid:1>\";quoted=\"<x>\";text=\"say \\\"hi\\\"; ok\";tag=abc==")
        let again = try SIPAddress(parsing: address.description)
        #expect(again.parameters.unquoted("+sip.instance") == "<urn:uuid:1>")
        #expect(again.parameters.unquoted("text") == "say \"hi\"; ok")
        #expect(again.tag == "abc==")
    }

    @Test(arguments: [
        ("sip:a@h;tag=1", nil, "sip:a@h"), ("<sip:a@h;x>;tag=1", nil, "sip:a@h;x"),
        ("Bob <sip:a@h>;tag=1", "Bob", "sip:a@h"), ("Bob  B. <sip:a@h>;tag=1", "Bob  B.", "sip:a@h"),
        ("\"B, <b> \\\\ \\\" ü\"<sip:a@h> ; tag=1", "B, <b> \\ \" ü", "sip:a@h"),
        ("\"\"<sip:a@h>;tag=1", "", "sip:a@h"),
        ("Zoë <tel:+1>;tag=1", "Zoë", "tel:+1"), ("sip:h;tag=1", nil, "sip:h"), ("tel:+1;tag=1", nil, "tel:+1"),
    ])
    func addressesRoundTrip(_ text: String, _ name: String?, _ uri: String) throws {
        let address = try SIPAddress(parsing: text)
        #expect(address.displayName == name)
        #expect(address.uri.description == uri)
        #expect(address.tag == "1")
        #expect(try SIPAddress(parsing: address.description) == address)
    }

    @Test func viaRoundTrips() throws {
        var via = try SIPVia(parsing: "sip/2.0/tls Host.Example.com : 5061 ; rport ; branch=z9hG4bK1")
        #expect(via.transport == "TLS")
        #expect(via.host == "host.example.com")
        #expect(via.port == 5061)
        #expect(via.hasRport && via.rport == nil)
        via.parameters["rport"] = "4711"
        via.received = "2001:db8::1"
        #expect(via.rport == 4711)
        #expect(
            via.description
                == "SIP/2.0/TLS host.example.com:5061;rport=4711;branch=z9hG4bK1;received=2001:db8::1")
        #expect(try SIPVia(parsing: via.description) == via)
        #expect(
            SIPVia(transport: "udp", host: "::1", port: 5060, branch: "b").description
                == "SIP/2.0/UDP [::1]:5060;branch=b")
    }

    @Test func tenThousandParametersAreNoTrouble() throws {
        let text = "sip:a@h" + (0..<10_000).map { ";p\($0)=\($0)" }.joined()
        let uri = try SIPURI(parsing: text)
        #expect(uri.parameters.all.count == 10_000)
        #expect(uri.description == text)
        let duration = ContinuousClock().measure { #expect(uri.isEquivalent(to: uri)) }
        #expect(duration < .seconds(1))
    }
}
