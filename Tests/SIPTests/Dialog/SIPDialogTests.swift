import Primitives
import SIP
import Testing

@Suite("Dialogs")
struct SIPDialogTests {
    private static func uri(_ text: String) throws -> SIPURI { try SIPURI(parsing: text) }

    private static func address(_ text: String) throws -> SIPAddress { try SIPAddress(parsing: text) }

    /// An INVITE of alice's and a response of bob's to it.
    private static func exchange(
        status: Int = 200, tag: String? = "bob-tag", recordRoutes: [String] = [],
        contact: String? = "<sip:bob@192.0.2.9:5070>"
    ) throws -> (invite: SIPMessage, response: SIPMessage) {
        var invite = LayerProbe.request(.invite, sequence: 17)
        invite.vias = [SIPVia(transport: "UDP", host: "198.51.100.7", port: 5060, branch: "z9hG4bKx")]
        var response = invite.response(status: status, toTag: tag)
        response.recordRoutes = try recordRoutes.map(address)
        response.contacts = try [contact].compactMap(\.self).map(address)
        return (invite, response)
    }

    @Test("the calling side: tags, target, reversed route set, sequence (12.1.2)")
    func client() throws {
        let (invite, response) = try Self.exchange(recordRoutes: ["<sip:p2.example.com;lr>", "<sip:p1.example.com;lr>"])
        var dialog = try SIPDialog(asClientFor: invite, response: response)
        #expect(dialog.id == SIPDialog.ID(callID: "call-1", localTag: "alice-tag", remoteTag: "bob-tag"))
        #expect(dialog.remoteTarget.description == "sip:bob@192.0.2.9:5070")
        #expect(dialog.routeSet.map(\.uri.host) == ["p1.example.com", "p2.example.com"])
        #expect(dialog.localSequence == 17)
        #expect(dialog.remoteSequence == nil)
        #expect(!dialog.isEarly)
        #expect(!dialog.isSecure)
        let bye = dialog.request(.bye)
        #expect(bye.cseq == SIPCSeq(number: 18, method: .bye))
        #expect(bye.from?.tag == "alice-tag")
        #expect(bye.to?.tag == "bob-tag")
        #expect(bye.from?.uri.user == "alice")
        #expect(bye.requestURI?.description == "sip:bob@192.0.2.9:5070")
        #expect(bye.routes.map(\.uri.host) == ["p1.example.com", "p2.example.com"])
        #expect(bye.maxForwards == 70)
        #expect(bye.callID == "call-1")
        #expect(dialog.request(.info).cseq?.number == 19)
    }

    @Test("the called side: tags the other way round, route set in order, contact required (12.1.1)")
    func server() throws {
        var (invite, _) = try Self.exchange()
        invite.recordRoutes = [
            try Self.address("<sip:p1.example.com;lr>"), try Self.address("<sip:p2.example.com;lr>"),
        ]
        var dialog = try SIPDialog(asServerFor: invite, localTag: "bob-tag")
        #expect(dialog.id == SIPDialog.ID(callID: "call-1", localTag: "bob-tag", remoteTag: "alice-tag"))
        #expect(dialog.routeSet.map(\.uri.host) == ["p1.example.com", "p2.example.com"])
        #expect(dialog.remoteSequence == 17)
        #expect(dialog.isEarly)
        dialog.confirm()
        #expect(!dialog.isEarly)
        let bye = dialog.request(.bye)
        #expect(bye.cseq?.number == 1)
        #expect(bye.from?.uri.user == "bob")
        #expect(bye.from?.tag == "bob-tag")
        #expect(bye.to?.tag == "alice-tag")
        #expect(bye.requestURI?.host == "198.51.100.7")
        invite.headers.remove("Contact")
        #expect(throws: SIPDialogError.missing(header: "Contact")) {
            try SIPDialog(asServerFor: invite, localTag: "bob-tag")
        }
    }

    @Test("what makes no dialog")
    func refusals() throws {
        for status in [100, 302, 486] {
            let (invite, response) = try Self.exchange(status: status)
            #expect(throws: SIPDialogError.status(status)) { try SIPDialog(asClientFor: invite, response: response) }
        }
        var (invite, response) = try Self.exchange()
        response.callID = "other"
        #expect(throws: SIPDialogError.mismatch) { try SIPDialog(asClientFor: invite, response: response) }
        invite.from = SIPAddress(uri: SIPURI(user: "alice", host: "example.com"))
        #expect(throws: SIPDialogError.missing(header: "From")) {
            try SIPDialog(asClientFor: invite, response: response)
        }
    }

    @Test("a strict router becomes the request URI and the target the last route (12.2.1.1)")
    func strictRouting() throws {
        let (invite, response) = try Self.exchange(
            recordRoutes: ["<sip:p2.example.com;lr>", "<sip:strict@p1.example.com;method=INVITE?Subject=x>"])
        var dialog = try SIPDialog(asClientFor: invite, response: response)
        let bye = dialog.request(.bye)
        #expect(bye.requestURI?.description == "sip:strict@p1.example.com")
        #expect(bye.routes.map(\.uri.description) == ["sip:p2.example.com;lr", "sip:bob@192.0.2.9:5070"])
        let ack = dialog.ack(for: 17)
        #expect(ack.requestURI == bye.requestURI)
        #expect(ack.routes == bye.routes)
    }

    @Test("the ACK of a 2xx: the INVITE's number, the route set, its credentials, no new number")
    func ack() throws {
        var (invite, response) = try Self.exchange(recordRoutes: ["<sip:p1.example.com;lr>"])
        invite.headers["Proxy-Authorization"] = "Digest username=\"alice\""
        var dialog = try SIPDialog(asClientFor: invite, response: response)
        let ack = dialog.ack(for: 17, credentialsFrom: invite)
        #expect(ack.cseq == SIPCSeq(number: 17, method: .ack))
        #expect(ack.requestURI == dialog.remoteTarget)
        #expect(ack.routes.count == 1)
        #expect(ack.headers["Proxy-Authorization"] == "Digest username=\"alice\"")
        #expect(dialog.request(.bye).cseq?.number == 18)
    }

    @Test("several dialogs from one INVITE: each fork's responses change its own only")
    func forks() throws {
        let (invite, one) = try Self.exchange(status: 180, tag: "one", contact: "<sip:one@192.0.2.1>")
        let (_, two) = try Self.exchange(status: 183, tag: "two", contact: "<sip:two@192.0.2.2>")
        var first = try SIPDialog(asClientFor: invite, response: one)
        var second = try SIPDialog(asClientFor: invite, response: two)
        #expect(first.id != second.id)
        #expect(first.matches(one) && !first.matches(two))
        let (_, final) = try Self.exchange(
            status: 200, tag: "two", recordRoutes: ["<sip:p1.example.com;lr>"], contact: "<sip:two@192.0.2.22>")
        first.update(from: final)
        second.update(from: final)
        #expect(first.isEarly)
        #expect(first.remoteTarget.host == "192.0.2.1")
        #expect(!second.isEarly)
        #expect(second.remoteTarget.host == "192.0.2.22")
        #expect(second.routeSet.map(\.uri.host) == ["p1.example.com"])
    }

    @Test("the route set is fixed once confirmed; the target moves with every refresh")
    func targetRefresh() throws {
        let (invite, response) = try Self.exchange(recordRoutes: ["<sip:p1.example.com;lr>"])
        var dialog = try SIPDialog(asClientFor: invite, response: response)
        var reinvite = dialog.request(.invite, contact: try Self.address("<sip:alice@198.51.100.7>"))
        #expect(reinvite.contacts.count == 1)
        reinvite.vias = invite.vias
        var answer = reinvite.response(status: 200)
        answer.contacts = [try Self.address("<sip:bob@192.0.2.99>")]
        answer.recordRoutes = [try Self.address("<sip:p9.example.com;lr>")]
        dialog.update(from: answer)
        #expect(dialog.remoteTarget.host == "192.0.2.99")
        #expect(dialog.routeSet.map(\.uri.host) == ["p1.example.com"])
        // Neither a failed refresh nor a BYE's answer moves it.
        var failed = reinvite.response(status: 488)
        failed.contacts = [try Self.address("<sip:bob@192.0.2.100>")]
        dialog.update(from: failed)
        #expect(dialog.remoteTarget.host == "192.0.2.99")
    }

    @Test("received requests: tags, rising numbers with gaps, target refresh (12.2.2)")
    func receiving() throws {
        let (invite, response) = try Self.exchange()
        var dialog = try SIPDialog(asClientFor: invite, response: response)
        func fromBob(_ method: SIPMethod, _ number: UInt32, fromTag: String = "bob-tag") throws -> SIPMessage {
            var request = LayerProbe.request(method, sequence: number, fromTag: fromTag, toTag: "alice-tag")
            request.contacts = [try Self.address("<sip:bob@192.0.2.\(number)>")]
            return request
        }
        #expect(dialog.accepts(try fromBob(.info, 100)))
        #expect(dialog.remoteTarget.host == "192.0.2.9")
        #expect(dialog.accepts(try fromBob(.invite, 102)))
        #expect(dialog.remoteTarget.host == "192.0.2.102")
        #expect(dialog.accepts(try fromBob(.ack, 102)))
        #expect(!dialog.accepts(try fromBob(.ack, 103)))
        #expect(!dialog.accepts(try fromBob(.bye, 101)))
        #expect(!dialog.accepts(try fromBob(.bye, 102)))
        #expect(!dialog.accepts(try fromBob(.bye, 103, fromTag: "mallory")))
        #expect(dialog.accepts(try fromBob(.update, 103)))
        #expect(dialog.remoteTarget.host == "192.0.2.103")
        #expect(dialog.remoteSequence == 103)
    }

    @Test("a peer without tags (RFC 2543) is an empty tag")
    func untagged() throws {
        let (invite, response) = try Self.exchange(tag: nil)
        var dialog = try SIPDialog(asClientFor: invite, response: response)
        #expect(dialog.remoteTag == "")
        #expect(dialog.matches(response))
        #expect(dialog.request(.bye).to?.tag == nil)
    }

    @Test("a response without Contact leaves the request URI as the target")
    func noContact() throws {
        let (invite, response) = try Self.exchange(status: 180, contact: nil)
        let dialog = try SIPDialog(asClientFor: invite, response: response)
        #expect(dialog.isEarly)
        #expect(dialog.remoteTarget == invite.requestURI)
    }

    @Test(
        "a Contact of another scheme is no target: no request can be sent there",
        arguments: ["tel:+15551234", "mailto:b@h"])
    func foreignTargets(uri: String) throws {
        var (invite, response) = try Self.exchange(contact: "<\(uri)>")
        var caller = try SIPDialog(asClientFor: invite, response: response)
        #expect(caller.remoteTarget == invite.requestURI)
        (_, response) = try Self.exchange()
        caller = try SIPDialog(asClientFor: invite, response: response)
        var reinvite = caller.request(.invite)
        let target = caller.remoteTarget
        response = reinvite.response(status: 200)
        response.contacts = [try Self.address("<\(uri)>")]
        caller.update(from: response)
        #expect(caller.remoteTarget == target)

        var callee = try SIPDialog(asServerFor: invite, localTag: "bob-tag")
        let before = callee.remoteTarget
        reinvite.contacts = [try Self.address("<\(uri)>")]
        var to = reinvite.to
        to?.tag = "bob-tag"
        reinvite.to = to
        let isAccepted = callee.accepts(reinvite)
        #expect(isAccepted)
        #expect(callee.remoteTarget == before)
        invite.contacts = [try Self.address("<\(uri)>")]
        #expect(throws: SIPDialogError.missing(header: "Contact")) {
            try SIPDialog(asServerFor: invite, localTag: "bob-tag")
        }
    }

    @Test("a SIPS request makes a secure dialog")
    func secure() throws {
        var (invite, response) = try Self.exchange()
        invite.requestURI = try Self.uri("sips:bob@example.com")
        #expect(try SIPDialog(asClientFor: invite, response: response).isSecure)
        #expect(try SIPDialog(asServerFor: invite, localTag: "x").isSecure)
        response.contacts = []
        #expect(try SIPDialog(asClientFor: invite, response: response).remoteTarget.isSecure)
    }

    @Test("numbers used outside, after a challenge, are skipped; the last possible one does not trap")
    func advance() throws {
        let (invite, response) = try Self.exchange()
        var dialog = try SIPDialog(asClientFor: invite, response: response)
        dialog.advanceLocalSequence(to: 20)
        #expect(dialog.request(.bye).cseq?.number == 21)
        dialog.advanceLocalSequence(to: 5)
        #expect(dialog.request(.bye).cseq?.number == 22)
        dialog.advanceLocalSequence(to: .max)
        #expect(dialog.request(.bye).cseq?.number == 0x7FFF_FFFF)
    }

    @Test("the identity of a received message is seen from our side")
    func identity() throws {
        let (invite, response) = try Self.exchange()
        #expect(
            SIPDialog.ID(received: response)
                == SIPDialog.ID(callID: "call-1", localTag: "alice-tag", remoteTag: "bob-tag"))
        #expect(
            SIPDialog.ID(received: invite) == SIPDialog.ID(callID: "call-1", localTag: "", remoteTag: "alice-tag"))
    }
}
