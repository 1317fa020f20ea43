import Testing

@testable import SIP

/// The headers and bodies of transfer and of keys in INFO.
struct TransferHeaderTests {
    @Test(arguments: [
        (
            "98732@sip.example.com;from-tag=r33th4x0r;to-tag=ff87ff", "98732@sip.example.com", "ff87ff", "r33th4x0r",
            false
        ),
        ("12adf2f34456gs5;to-tag=12345;from-tag=54321", "12adf2f34456gs5", "12345", "54321", false),
        ("  87134@171.161.34.23 ; TO-TAG=24796 ;from-tag=0;early-only", "87134@171.161.34.23", "24796", "0", true),
        ("a;to-tag=x;from-tag=y;other=\"q;w\"", "a", "x", "y", false),
    ])
    func replacesIsRead(text: String, callID: String, toTag: String, fromTag: String, isEarlyOnly: Bool) {
        let expected = SIPReplaces(callID: callID, toTag: toTag, fromTag: fromTag, isEarlyOnly: isEarlyOnly)
        #expect(SIPReplaces(parsing: text) == expected)
        #expect(SIPReplaces(parsing: expected.description) == expected)
    }

    @Test(arguments: [
        "", ";to-tag=a;from-tag=b", "a", "a;to-tag=x", "a;from-tag=x", "a;to-tag=x;to-tag=y;from-tag=z",
        "a;to-tag;from-tag=z", "a b;to-tag=x;from-tag=y", "a;to-tag=x;from-tag=y,b;to-tag=x;from-tag=y",
        "a;to-tag=\"x;from-tag=y",
    ])
    func brokenReplacesIsNone(text: String) {
        #expect(SIPReplaces(parsing: text) == nil)
    }

    @Test func referToCarriesReplacesInItsURI() throws {
        let replaces = SIPReplaces(callID: "a;b=c?&d@h", toTag: "t%1", fromTag: "f")
        var uri = SIPURI(user: "carol", host: "example.com")
        uri.headers = [.init(name: "Replaces", value: replaces.description)]
        let text = SIPAddress(uri: uri).description
        let bytes = request("REFER sip:bob@example.com SIP/2.0", adding: ["Refer-To: \(text)", "b: <sip:a@b>"])
        let message = try SIPMessage.parse(bytes)
        #expect(message.validate() == nil)
        let read = try #require(message.referTo?.uri.headers.first)
        #expect(read.name == "Replaces")
        // A semicolon in a Call-ID is beyond the grammar; everything that is within it survives.
        let valid = SIPReplaces(callID: "a?&d=@h", toTag: "t%1", fromTag: "f")
        uri.headers = [.init(name: "Replaces", value: valid.description)]
        let again = try SIPURI(parsing: uri.description)
        #expect(again.headers.first.flatMap { SIPReplaces(parsing: $0.value) } == valid)
        #expect(message.referredBy?.uri.user == "a")
    }

    @Test func twoReferToOrReplacesAreNone() throws {
        let one = "<sip:carol@example.com>"
        let twice = try SIPMessage.parse(
            request("REFER sip:b@example.com SIP/2.0", adding: ["Refer-To: \(one)", "r: \(one)"]))
        #expect(twice.referTo == nil)
        #expect(twice.validate()?.status == 400)
        let list = try SIPMessage.parse(
            request("REFER sip:b@example.com SIP/2.0", adding: ["Refer-To: \(one), \(one)"]))
        #expect(list.referTo == nil)
        let replaces = try SIPMessage.parse(
            request("INVITE sip:b@example.com SIP/2.0", adding: ["Replaces: a;to-tag=x"]))
        #expect(replaces.replaces == nil && replaces.hasReplaces)
    }

    @Test func namesADialogOfItsReceiver() throws {
        var invite = try SIPMessage.parse(request("INVITE sip:bob@example.com SIP/2.0"))
        invite.contacts = [SIPAddress(uri: SIPURI(user: "alice", host: "h"))]
        let dialog = try SIPDialog(asServerFor: invite, localTag: "mine")
        let peerSide = SIPReplaces(callID: dialog.callID, toTag: "mine", fromTag: "9fxced76sl")
        #expect(peerSide.names(dialog))
        #expect(!SIPReplaces(dialog).names(dialog))
        #expect(!SIPReplaces(callID: dialog.callID, toTag: "9fxced76sl", fromTag: "mine").names(dialog))
        #expect(!SIPReplaces(callID: "other", toTag: "mine", fromTag: "9fxced76sl").names(dialog))
    }

    @Test(arguments: [
        ("SIP/2.0 200 OK\r\n", 200, "OK"), ("SIP/2.0 100 Trying", 100, "Trying"), ("sip/2.0  486 Busy\n", 486, "Busy"),
        ("SIP/2.0 603", 603, ""), ("SIP/2.0 180 Ringing\r\nTo: <sip:a@b>\r\n\r\nrest", 180, "Ringing"),
    ])
    func statusFragmentIsRead(text: String, status: Int, reason: String) {
        #expect(SIPStatusFragment(parsing: Array(text.utf8)) == SIPStatusFragment(status: status, reason: reason))
    }

    @Test(arguments: [
        "", "\r\nSIP/2.0 200 OK", "SIP/2.0", "SIP/2.0 99 x", "SIP/2.0 700 x", "SIP/2.0 200OK", "SIP/2.00 200 OK",
        "HTTP/1.1 200 OK", "SIP/2.0 20000000000000000000 x", "INVITE sip:a@b SIP/2.0",
    ])
    func otherBodiesAreNoStatus(text: String) {
        #expect(SIPStatusFragment(parsing: Array(text.utf8)) == nil)
    }

    @Test func statusFragmentIsWrittenSafely() {
        #expect(string(SIPStatusFragment(status: 180).encoded) == "SIP/2.0 180 Ringing\r\n")
        let nasty = SIPStatusFragment(status: 200, reason: "a\r\nTo: b")
        #expect(string(nasty.encoded) == "SIP/2.0 200 aTo: b\r\n")
    }

    @Test func eventAndSubscriptionState() throws {
        let message = try SIPMessage.parse(
            request(
                "NOTIFY sip:b@example.com SIP/2.0",
                adding: ["o: Refer ;id=93", "Subscription-State: terminated;reason=noresource;retry-after=5"]))
        #expect(message.event?.isNamed("refer") == true)
        #expect(message.event?.parameters["id"] == "93")
        #expect(message.subscriptionState?.isNamed("Terminated") == true)
        #expect(message.subscriptionState?.parameters["reason"] == "noresource")
        for broken in ["", ";a", "a b", "a;", "a;b=", "a,b"] {
            #expect(SIPTokenValue(parsing: broken) == nil, "\(broken)")
        }
    }

    @Test(
        arguments: [
            ("Signal=5\r\nDuration=160\r\n", "application/dtmf-relay", "5"),
            ("Signal= *\n", "Application/DTMF-Relay", "*"),
            ("Duration=100\r\nsignal=11", "application/dtmf-relay; x=y", "#"), ("#", "application/dtmf", "#"),
            (" d \r\n", "application/dtmf", "D"), ("10", "application/dtmf", "*"),
        ] as [(String, String, Character)])
    func keysAreRead(body: String, type: String, key: Character) {
        #expect(SIPDTMFBody.key(in: Array(body.utf8), contentType: type) == key)
    }

    @Test(arguments: [
        ("5", "application/dtmf-relay"), ("Signal=55", "application/dtmf-relay"), ("Signal=", "application/dtmf-relay"),
        ("E", "application/dtmf"), ("", "application/dtmf"), ("5", "text/plain"), ("16", "application/dtmf"),
        ("５", "application/dtmf"), (String(repeating: " ", count: 300) + "5", "application/dtmf"),
    ])
    func whatIsNoKeyIsNone(body: String, type: String) {
        #expect(SIPDTMFBody.key(in: Array(body.utf8), contentType: type) == nil)
    }

    @Test func keysAreWritten() {
        let body = SIPDTMFBody.encoded(key: "#", milliseconds: 100)
        #expect(string(body) == "Signal=#\r\nDuration=100\r\n")
        #expect(SIPDTMFBody.key(in: body, contentType: SIPDTMFBody.contentType) == "#")
    }
}
