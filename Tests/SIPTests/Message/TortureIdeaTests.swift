import Testing

@testable import SIP

/// The ideas of RFC 4475 and RFC 5118 carried on: more values of each kind than the RFCs' messages have.
@Suite struct TortureIdeaTests {
    @Test func spacesFoldsAndCompactNames() throws {
        let message = try SIPMessage.parse(
            wire(
                """
                INVITE sip:bob@example.com;flag SIP/2.0
                TO :
                 sip:bob@example.com ;   tag    = b1
                f   : "Alice \\\\\\""       <sip:alice@example.com>
                  ;
                  tag = a1
                mAX-fORWARDS: 0068
                i: folds@192.0.2.1
                L   : 3
                cseq: 0009
                  INVITE
                Via  : SIP  /   2.0
                 /UDP
                    192.0.2.2;branch=old
                s :
                X-New:   one
                 two
                X-Odd: ;;,,;;,;
                c: text/plain
                Route:
                 <sip:proxy.example.com;lr;with=value;without>
                v:  SIP  / 2.0  / TCP     second.example.com   ;
                  branch  =   z9hG4bK9ikj8  ,
                 SIP  /    2.0   / UDP  192.168.255.111   ; branch=
                 z9hG4bK30239
                m:"Quoted \\"\\"" <sip:alice@192.0.2.2> ; newparam =
                      newvalue ;
                  second ; q = 0.33

                abc
                """))
        #expect(message.validate() == nil)
        #expect(message.to?.tag == "b1")
        #expect(message.to?.uri.description == "sip:bob@example.com")
        #expect(message.from?.displayName == "Alice \\\"")
        #expect(message.from?.tag == "a1")
        #expect(message.maxForwards == 68)
        #expect(message.callID == "folds@192.0.2.1")
        #expect(message.cseq == SIPCSeq(number: 9, method: .invite))
        #expect(message.vias.map(\.branch) == ["old", "z9hG4bK9ikj8", "z9hG4bK30239"])
        #expect(message.vias.map(\.transport) == ["UDP", "TCP", "UDP"])
        #expect(message.headers["Subject"] == "")
        #expect(message.headers["X-New"] == "one   two")
        #expect(message.headers["X-Odd"] == ";;,,;;,;")
        #expect(message.contentType == "text/plain")
        #expect(message.routes.first?.uri.isLooseRouter == true)
        let contact = try #require(message.contacts.first)
        #expect(contact.displayName == "Quoted \"\"")
        #expect(contact.parameters["newparam"] == "newvalue")
        #expect(contact.parameters["second"] == "")
        #expect(contact.parameters["q"] == "0.33")
        #expect(string(message.body) == "abc")
        let printed = string(try message.encoded())
        #expect(printed.contains("TO: sip:bob@example.com"), "a space before the colon is not passed on")
    }

    @Test func everyCharacterThatTheGrammarAllows() throws {
        let method = "!odd-Method0123456789_*+`.%indeed'~"
        let uri = "sip:1_odd.URI~(to-be!sure)&isn't+it$/mad?,/;;*:&it+has=1,wild!*pas$wo~d.(isn't-it)@example.com"
        let message = try SIPMessage.parse(
            request(
                "\(method) \(uri) SIP/2.0",
                replacing: [
                    "Via": "SIP/2.0/TCP host1.example.com;branch=z9hG4bK-.!%66*_+`'~",
                    "To": "\"BEL:\\\u{7} NUL:\\\u{0} DEL:\\\u{7F}\" <\(uri)>",
                    "From": "t1~` t2'+_ t3*%!.- <sip:a@example.com>;param''~+*_!.-%=\"слово\";tag=_t~1'+*_-.!%66",
                    "Call-ID": "odd.word%ZK-!.*_+'@word`~)(><:\\/\"][?}{",
                ], adding: ["extensionHeader-!.%*+_`'~: \u{FE0F}\u{5927}\u{505C}\u{96FB}"]))
        #expect(message.validate() == nil)
        #expect(message.requestURI?.user == "1_odd.URI~(to-be!sure)&isn't+it$/mad?,/;;*")
        #expect(message.requestURI?.password == "&it+has=1,wild!*pas$wo~d.(isn't-it)")
        #expect(message.requestURI?.description == uri)
        #expect(message.to?.displayName == "BEL:\u{7} NUL:\u{FFFD} DEL:\u{7F}")
        #expect(message.from?.displayName == "t1~` t2'+_ t3*%!.-")
        #expect(message.from?.parameters.unquoted("param''~+*_!.-%") == "слово")
        #expect(withoutLength(try SIPMessage.parse(message.encoded())) == withoutLength(message))
    }

    @Test func escapedNULsAreDistinctUsers() throws {
        let message = try SIPMessage.parse(
            request(
                "REGISTER sip:example.com SIP/2.0", replacing: ["To": "sip:null-%00-null@example.com"],
                adding: ["Contact: <sip:%00@host5.example.com>", "Contact: <sip:%00%00@host5.example.com>"]))
        #expect(message.validate() == nil)
        #expect(message.to?.uri.user == "null-\0-null")
        #expect(message.contacts.map(\.uri.user) == ["\0", "\0\0"])
        #expect(
            message.contacts.map(\.uri.description) == ["sip:%00@host5.example.com", "sip:%00%00@host5.example.com"])
    }

    @Test func semicolonsInTheUserAreNotParameters() throws {
        let uri = try SIPURI(parsing: "sip:user;par=u%40example.net@example.com")
        #expect(uri.user == "user;par=u@example.net")
        #expect(uri.parameters.isEmpty)
        #expect(uri.description == "sip:user;par=u%40example.net@example.com")
    }

    @Test func binaryBodiesSurvive() throws {
        var bytes = request(replacing: ["Content-Length": "256"])
        bytes += UInt8.min...UInt8.max
        let message = try SIPMessage.parse(bytes)
        #expect(message.validate() == nil)
        #expect(message.body == Array(UInt8.min...UInt8.max))
        #expect(try SIPMessage.parse(message.encoded()).body == message.body)
    }

    @Test(
        arguments: [
            (["To": "\"Mr. J. User <sip:j.user@example.com>"], 400),
            (["To": "\"Mr. J. User\\\" <sip:j.user@example.com>"], 400),
            (["From": "/"], 400), (["From": "</>"], 400), (["To": "/;tag=1"], 400), (["To": "<>"], 400),
            (["From": "\"name\\\" <sip:a@example.com>;tag=1"], 400),
            (["From": "name\\ <sip:a@example.com>;tag=1"], 400),
            (["From": "\"\\"], 400), (["From": "\""], 400), (["From": "\\"], 400),
            (["From": "<sip:a@example.com"], 400),
            (["To": "sip:a@example.com>"], 400), (["To": "<sip:a@example.com> extra"], 400), (["To": "sip:"], 400),
            (["To": "sip:@example.com"], 400), (["To": "sip:a@"], 400), (["To": "sip:a@b@c"], 400), (["To": ":"], 400),
            (["CSeq": "2147483647 OPTIONS"], 200), (["CSeq": "2147483648 OPTIONS"], 400),
            (["CSeq": "4294967296 OPTIONS"], 400), (["CSeq": "18446744073709551616 OPTIONS"], 400),
            (["CSeq": "-1 OPTIONS"], 400), (["CSeq": "1OPTIONS"], 400), (["CSeq": "1"], 400),
            (["CSeq": "1 options"], 400),
            (["CSeq": "1 OPTIONS x"], 400), (["CSeq": ""], 400), (["CSeq": "0 OPTIONS"], 200),
            (["Max-Forwards": "255"], 200), (["Max-Forwards": "256"], 400), (["Max-Forwards": "-1"], 400),
            (["Max-Forwards": "18446744073709551616"], 400), (["Max-Forwards": "7O"], 400), (["Max-Forwards": ""], 200),
            (["Content-Length": "1"], 400), (["Content-Length": "4294967296"], 400), (["Content-Length": "+0"], 400),
            (["Content-Length": "18446744073709551616"], 400), (["Content-Length": "0x0"], 400),
            (["Content-Length": "0, 0"], 400), (["Content-Length": "00"], 200),
            (["Via": "SIP/2.0/UDP"], 400), (["Via": "SIP/2.0/UDP host:65536;branch=z9hG4bKx"], 400),
            (["Via": "SIP/3.0/UDP host;branch=z9hG4bKx"], 400), (["Via": "SIP/2.0/UDP host;branch=z9hG4bKx, "], 400),
            (["Via": "SIP/2.0/UDP host;;branch=z9hG4bKx"], 400), (["Via": "SIP/2.0/UDP ;branch=z9hG4bKx"], 400),
            (["Via": "SIP/2.0/UDP [2001:db8::9:1]:5060;received=[2001:db8::9:255];branch=z9hG4bKx"], 200),
            (["Via": "SIP/2.0/UDP [2001:db8::9:1];received=2001:db8::9:255;branch=z9hG4bKx"], 200),
            (["Via": "SIP/2.0/UDP 2001:db8::9:1;branch=z9hG4bKx"], 400),
            (["Call-ID": "two words"], 400), (["Call-ID": ""], 400), (["Via": ""], 400), (["From": ""], 400),
            (["To": ""], 400),
        ] as [([String: String], Int)])
    func mandatoryHeaders(_ headers: [String: String], _ status: Int) {
        #expect(verdict(request(replacing: headers)) == status, "\(headers)")
    }

    @Test(arguments: [
        ("From: <sip:a@example.com>;tag=2", 400), ("To: <sip:a@example.com>", 400), ("i: another", 400),
        ("CSeq: 2 OPTIONS", 400), ("Max-Forwards: 70", 400), ("Content-Length: 0", 200), ("l: 5", 400),
        ("Contact: *", 200), ("Contact: *\r\nContact: <sip:a@h>", 400), ("Contact: *, <sip:a@h>", 400),
        ("Contact: /", 400), ("Contact: <sip:a@h>, ", 400), ("Contact: sip:a@h, \"x\" <sip:b@h>;q=0.1", 200),
        ("Route: sip:a@h", 200), ("Route: <tel:1>", 400), ("Record-Route: <sip:a;lr>, <http://b>", 400),
        ("Contact: <mailto:a@h>", 200), ("Route: <sip:a@h>;", 400), ("Record-Route: <sip:a@h;lr>, <sip:b@h;lr", 400),
        ("Expires: 4294967295", 200), ("Expires: 4294967296", 400), ("Expires: soon", 400), ("Min-Expires: -1", 400),
        ("Date: yesterday", 200), ("Require: nothingSupportsThis", 200), ("Warning:", 200),
        ("Content-Type: text/plain\r\nc: text/html", 400), ("Foo bar", 400), (": no name", 400), ("A B: c", 400),
        ("C\u{F6}ntact: x", 400), ("X\t :x", 200), ("Via: SIP/2.0/UDP", 400),
        ("Via: SIP/2.0/UDP a;branch=z9hG4bKa, SIP/2.0/TCP b;branch=z9hG4bKb", 200),
    ])
    func furtherHeaders(_ line: String, _ status: Int) {
        #expect(verdict(request(adding: [line])) == status, "\(line)")
    }

    @Test(
        arguments: [
            ("OPTIONS sip:bob@example.com SIP/2.0", 200), ("OPTIONS sip:bob@example.com sip/2.0", 200),
            ("OPTIONS sip:bob@example.com SIP/7.0", 505), ("OPTIONS sip:bob@example.com SIP/2.1", 505),
            ("OPTIONS sip:bob@example.com SIP/99999999999999999999.0", nil),
            ("OPTIONS sip:bob@example.com HTTP/1.1", nil),
            ("OPTIONS sip:bob@example.com", nil), ("OPTIONS", nil), ("OPTIONS ", nil), (" ", nil), ("/", nil),
            ("OPTIONS <sip:bob@example.com> SIP/2.0", 400), ("OPTIONS sip:bob@example.com\tSIP/2.0", 400),
            ("OPTIONS / SIP/2.0", 400), ("OPTIONS  SIP/2.0", nil), ("OPTIONS sip:bob%zz@example.com SIP/2.0", 400),
            ("OPTIONS nobodyKnows:totallyopaque SIP/2.0", 416), ("OPTIONS tel:+15551234 SIP/2.0", 200),
            ("OPTIONS sips:bob@example.com SIP/2.0", 200), ("OPTIONS sip:[2001:db8::10] SIP/2.0", 200),
            ("OPTIONS sip:2001:db8::10 SIP/2.0", 400), ("OPTIONS sip:[2001:db8::10:5070] SIP/2.0", 200),
            ("OPTIONS sip:[2001:db8::10]:5070 SIP/2.0", 200), ("OPTIONS sip:[::ffff:192.0.2.10] SIP/2.0", 200),
            ("OPTIONS sip:[2001:db8::1::2] SIP/2.0", 400), ("OPTIONS sip:[1:2:3:4:5:6:7:8:9] SIP/2.0", 400),
            ("OPTIONS sip:[1:2:3:4:5:6:7] SIP/2.0", 400), ("OPTIONS sip:[:1] SIP/2.0", 400),
            ("OPTIONS sip:[1:] SIP/2.0", 400), ("OPTIONS sip:[::] SIP/2.0", 200), ("OPTIONS sip:[] SIP/2.0", 400),
            ("OPTIONS sip:[::1 SIP/2.0", 400), ("OPTIONS sip:[::192.0.2.256] SIP/2.0", 400),
            ("OPTIONS sip:a..b SIP/2.0", 400), ("OPTIONS sip:example.com. SIP/2.0", 200),
            ("OPTIONS sip:example.com:0x1 SIP/2.0", 400), ("OPTIONS sip:example.com: SIP/2.0", 400),
            ("OPTIONS sip:example.com:65535 SIP/2.0", 200), ("OPTIONS sip:example.com:65536 SIP/2.0", 400),
            ("OPTIONS sip:h;lr; SIP/2.0", 400), ("OPTIONS sip:h;=x SIP/2.0", 400), ("OPTIONS sip:h? SIP/2.0", 400),
        ] as [(String, Int?)])
    func startLines(_ line: String, _ status: Int?) {
        #expect(verdict(request(line, replacing: ["CSeq": "1 OPTIONS"])) == status, "\(line)")
    }

    @Test(
        arguments: [
            ("SIP/2.0 200 OK", 200), ("SIP/2.0 200", 200), ("sip/2.0 180 Ringing", 200), ("SIP/2.0 699 x", 200),
            ("SIP/2.0 99 x", nil), ("SIP/2.0 700 x", nil), ("SIP/2.0 4294967301 x", nil), ("SIP/2.0 0200 x", nil),
            ("SIP/2.0 2OO OK", nil), ("SIP/2.0 -20 OK", nil), ("SIP/7.0 200 OK", nil), ("SIP/2.0  200 OK", nil),
            ("SIP/2.0 200\tOK", nil), ("SIP/2.0", nil), ("SIP/", nil),
        ] as [(String, Int?)])
    func statusLines(_ line: String, _ status: Int?) {
        #expect(verdict(request(line, replacing: ["CSeq": "1 INVITE"])) == status, "\(line)")
    }

    @Test func faultyResponsesAreDropped() {
        #expect(verdict(request("SIP/2.0 200 OK", replacing: ["CSeq": "36893488147419103232 INVITE"])) == 0)
        #expect(verdict(request("SIP/2.0 200 OK", replacing: ["CSeq": "1 INVITE", "From": "/"])) == 0)
        #expect(verdict(request("SIP/2.0 200 OK", replacing: ["CSeq": "1 INVITE", "Content-Length": "9"])) == 0)
    }

    @Test(arguments: [
        "Subject: a\nb", "Subject: a\rb", "Subject: a\u{0}b", "Subject: a\n", "Subject: \u{0}", "Sub\u{0}ject: x",
        "\rSubject: x", "Subject\r: x",
    ])
    func lineEndsAndNULsThatSmuggleAreRefused(_ line: String) {
        #expect(verdict(request(adding: [line])) == nil)
    }

    @Test func theHeadersNeedAnEnd() {
        let bytes = request()
        for length in 0..<bytes.count {
            #expect(verdict(Array(bytes.prefix(length))) == nil)
        }
        #expect(verdict(bytes) == 200)
        #expect(verdict(wire("\n\n") + bytes) == 200, "line ends before the start line are skipped")
    }
}
