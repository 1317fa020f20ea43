import Primitives
import SIP
import Testing

/// What Kamailio relays, to whom, and what it takes out on the way.
struct KamailioRelayTests {
    private static let offer = "v=0\r\no=- 1 1 IN IP4 127.0.0.1\r\ns=-\r\nt=0 0\r\n"

    @Test(arguments: ["udp", "tcp"], ["udp", "tcp"])
    func callsCarryNoCredentials(_ ours: String, _ theirs: String) async throws {
        try await Scratch.with { world in
            try await world.withKamailio { node in
                let alice = try await RawPhone("alice", over: ours, at: node)
                let bob = try await RawPhone("bob", over: theirs, at: node)
                try await alice.signIn()
                try await bob.signIn()
                // As some programs do: the token in every request.
                let secrets = [
                    ("Authorization", "Bearer " + TokenForge(user: "alice").token()),
                    ("Proxy-Authorization", "Bearer " + TokenForge(user: "alice").token()),
                    ("P-Asserted-Identity", "<sip:root@localhost>"), ("X-Ticket", "4711"),
                ]
                func isClean(_ request: SIPMessage) {
                    for name in ["Authorization", "Proxy-Authorization"] {
                        #expect(!request.headers.contains(name), "\(request.startLine)")
                    }
                    #expect(!request.headers.all("P-Asserted-Identity").contains { $0.contains("root") })
                }
                let invite = try alice.request(.invite, "sip:bob@localhost", headers: secrets, body: Self.offer)
                try alice.send(invite)
                let received = try await bob.expect(.invite)
                isClean(received)
                #expect(received.headers["X-Ticket"] == "4711")
                #expect(received.headers["P-Asserted-Identity"] == "<sip:alice@localhost>")
                try bob.answer(received, 180)
                #expect(try await alice.next().status == 180)
                try bob.answer(
                    received, 200, headers: [("WWW-Authenticate", #"Digest realm="localhost", nonce="x""#)],
                    body: Self.offer)
                let answer = try await alice.next()
                #expect(answer.status == 200 && !answer.headers.contains("WWW-Authenticate"))
                var (dialog, target) = try alice.dialog(invite, answer)
                dialog.sequence = 1
                try alice.send(alice.request(.ack, target, to: "sip:bob@localhost", dialog, headers: secrets))
                isClean(try await bob.expect(.ack))
                // Whatever the methods within a dialog, both ways.
                for method: SIPMethod in [.info, .update, .refer, .bye] {
                    dialog.sequence += 1
                    try alice.send(alice.request(method, target, to: "sip:bob@localhost", dialog, headers: secrets))
                    let request = try await bob.expect(method)
                    isClean(request)
                    try bob.answer(request, 200)
                    #expect(try await alice.next().status == 200)
                }
                // One that asked that nobody is told who calls.
                let private_ = try alice.request(
                    .invite, "sip:bob@localhost", headers: [("Privacy", "id")], body: Self.offer)
                try alice.send(private_)
                let hidden = try await bob.expect(.invite)
                #expect(!hidden.headers.contains("P-Asserted-Identity"))
                try bob.answer(hidden, 486)
                #expect(try await alice.next().status == 486)
            }
        }
    }

    @Test func forkedCallEndsEverywhere() async throws {
        try await Scratch.with { world in
            try await world.withKamailio { node in
                let alice = try await RawPhone("alice", at: node)
                let first = try await RawPhone("bob", at: node)
                let second = try await RawPhone("bob", over: "tcp", at: node)
                for phone in [alice, first, second] { try await phone.signIn() }
                let invite = try alice.request(.invite, "sip:bob@localhost", body: Self.offer)
                try alice.send(invite)
                let (one, two) = (try await first.expect(.invite), try await second.expect(.invite))
                try first.answer(one, 180)
                try second.answer(two, 180)
                #expect(try await alice.next().status == 180)
                #expect(try await alice.next().status == 180)
                try second.answer(two, 200, body: Self.offer)
                #expect(try await alice.next().status == 200)
                let cancel = try await first.expect(.cancel)
                #expect(
                    cancel.headers["Reason"]?.contains("cause=200") == true, "\(cancel.headers["Reason"] ?? "none")")
                try first.answer(cancel, 200)
                try first.answer(one, 487)
                _ = try await first.expect(.ack)

                // And one that the caller gives up.
                let again = try alice.request(.invite, "sip:bob@localhost", body: Self.offer)
                try alice.send(again)
                let (three, four) = (try await first.expect(.invite), try await second.expect(.invite))
                try first.answer(three, 180)
                #expect(try await alice.next().status == 180)
                var giveUp = SIPMessage(request: .cancel, uri: try SIPURI(parsing: "sip:bob@localhost"))
                for name in ["Via", "Max-Forwards", "From", "To", "Call-ID"] {
                    giveUp.headers.append(name, again.headers[name] ?? "")
                }
                giveUp.headers.append("CSeq", "1 CANCEL")
                giveUp.headers.append("Reason", "SIP;cause=600")
                try alice.send(giveUp)
                #expect(try await alice.next().status == 200)
                let stop = try await first.expect(.cancel)
                #expect(stop.headers["Reason"]?.contains("cause=600") == true)
                try first.answer(stop, 200)
                try first.answer(three, 487)
                try second.answer(four, 487)
                #expect(try await alice.next().status == 487)
            }
        }
    }

    @Test func severalFlowsOfADeviceDoNotRingTogether() async throws {
        try await Scratch.with { world in
            try await world.withKamailio { node in
                let alice = try await RawPhone("alice", at: node)
                try await alice.signIn()
                let flows = [
                    try await RawPhone("bob", over: "tcp", at: node), try await RawPhone("bob", over: "tcp", at: node),
                ]
                for (index, flow) in flows.enumerated() {
                    try await flow.signIn(
                        contact: flow.contact
                            + ";+sip.instance=\"<urn:uuid:00000000-0000-4000-8000-000000000001>\";reg-id=\(index + 1)",
                        headers: [("Supported", "outbound, path")])
                }
                try alice.send(alice.request(.invite, "sip:bob@localhost", body: Self.offer))
                // One of them rings; when it is told that the flow is broken, the other one is tried.
                async let left = flows[0].isLeftAlone(for: .milliseconds(500))
                let right = await flows[1].isLeftAlone(for: .milliseconds(500))
                #expect(await left != right, "exactly one flow rang")
            }
        }
    }

    @Test func strangersAndForeignDomainsAreRefused() async throws {
        try await Scratch.with { world in
            try await world.withKamailio { node in
                let alice = try await RawPhone("alice", at: node)
                let bob = try await RawPhone("bob", at: node)
                let stranger = try await RawPhone("alice", at: node)
                try await alice.signIn()
                try await bob.signIn()
                func status(_ phone: RawPhone, _ request: SIPMessage) async throws -> Int? {
                    try await phone.ask(request).status
                }
                // Not over this flow, although alice is registered; and not in another's name.
                #expect(
                    try await status(stranger, stranger.request(.invite, "sip:bob@localhost", body: Self.offer)) == 403)
                #expect(
                    try await status(alice, alice.request(.invite, "sip:bob@localhost", from: "bob", body: Self.offer))
                        == 403)
                for uri in ["sip:x@example.com", "sip:x@192.0.2.1", "sip:bob@127.0.0.1:9"] {
                    #expect(try await status(alice, alice.request(.invite, uri, body: Self.offer)) == 404, "\(uri)")
                }
                var preset = RawPhone.Dialog()
                preset.routes = ["<sip:192.0.2.1;lr>"]
                #expect(
                    try await status(alice, alice.request(.invite, "sip:bob@localhost", preset, body: Self.offer))
                        == 403)
                preset.routes = ["<sip:\(node.address);lr>", "<sip:192.0.2.1;lr>"]
                #expect(
                    try await status(alice, alice.request(.invite, "sip:bob@localhost", preset, body: Self.offer))
                        == 403)
                #expect(
                    try await status(alice, alice.request(.invite, "sip:nobody@localhost", body: Self.offer)) == 404)
                for user in ["%0aX", "a%40b", "%3e"] {
                    #expect(
                        try await status(alice, alice.request(.invite, "sip:\(user)@localhost", body: Self.offer))
                            == 404)
                }
                // A device by its own contact, as a transfer names it; in another application it is nobody's.
                try alice.send(alice.request(.message, "sip:bob@\(bob.local.host):\(bob.local.port)"))
                try bob.answer(try await bob.expect(.message), 200)
                #expect(try await alice.next().status == 200)
                let other = try await RawPhone("bob", at: node)
                var forge = TokenForge(user: "bob")
                (forge.applicationKey, forge.secret) = (KamailioNode.otherKey, KamailioNode.otherSecret)
                try await other.signIn(forge)
                let foreign = "sip:bob@\(other.local.host):\(other.local.port)"
                #expect(try await status(alice, alice.request(.message, foreign)) == 404)
                #expect(try await status(alice, alice.request(.subscribe, "sip:bob@localhost")) == 405)
                #expect(try await status(alice, alice.request(.options, "sip:localhost")) == 200)

                // Within a dialog, real or not, nothing goes to where no client is.
                var dialog = RawPhone.Dialog()
                dialog.remoteTag = "x"
                dialog.routes = ["<sip:\(node.address);lr>"]
                for target in [
                    "sip:x@127.0.0.1:9", "sip:x@127.0.0.1:9;transport=tcp", "sip:x@127.0.0.1:7;alias=127.0.0.1~9~1",
                ] {
                    let answer = try await alice.ask(alice.request(.bye, target, to: "sip:bob@localhost", dialog))
                    #expect(answer.status == 480, "\(target): \(answer.startLine)")
                }
                dialog.routes.append("<sip:127.0.0.1:9;lr>")
                #expect(try await status(alice, alice.request(.bye, "sip:x@y", to: "sip:bob@localhost", dialog)) == 403)
                dialog.routes = ["<sip:\(node.address);lr>"]
                let bye = try stranger.request(
                    .bye, "sip:bob@\(bob.local.host):\(bob.local.port)", to: "sip:bob@localhost", dialog)
                #expect(try await status(stranger, bye) == 403)
                #expect(await bob.isLeftAlone())

                // A Path of the client's own choice leads nowhere.
                try await bob.signIn(headers: [("Path", "<sip:127.0.0.1:9;lr>"), ("Supported", "path")])
                try alice.send(alice.request(.message, "sip:bob@localhost"))
                try bob.answer(try await bob.expect(.message), 200)
                #expect(try await alice.next().status == 200)

                // Gone: absent, and not allowed to call any more.
                try await bob.signIn(expires: 0)
                #expect(try await status(alice, alice.request(.invite, "sip:bob@localhost", body: Self.offer)) == 480)
                #expect(try await status(bob, bob.request(.invite, "sip:alice@localhost", body: Self.offer)) == 403)
            }
        }
    }

    @Test func applicationsAreApart() async throws {
        try await Scratch.with { world in
            try await world.withKamailio { node in
                var forge = TokenForge(user: "bob")
                (forge.applicationKey, forge.secret) = (KamailioNode.otherKey, KamailioNode.otherSecret)
                let alice = try await RawPhone("alice", at: node)
                let theirs = try await RawPhone("bob", at: node)
                try await alice.signIn()
                try await theirs.signIn(forge)
                let call = try await alice.ask(alice.request(.invite, "sip:bob@localhost", body: Self.offer))
                #expect(call.status == 404)
                #expect(await theirs.isLeftAlone())
                let ours = try await RawPhone("bob", at: node)
                try await ours.signIn()
                try alice.send(alice.request(.message, "sip:bob@localhost"))
                try ours.answer(try await ours.expect(.message), 200)
                #expect(try await alice.next().status == 200)
                #expect(await theirs.isLeftAlone())
            }
        }
    }

    @Test func floodsAreLimited() async throws {
        try await Scratch.with { world in
            try await world.withKamailio(.init(options: ["--calls-per-second", "5"])) { node in
                let alice = try await RawPhone("alice", at: node)
                try await alice.signIn()
                var refused = 0
                for _ in 0..<30 {
                    let call = try await alice.ask(alice.request(.invite, "sip:nobody@localhost", body: Self.offer))
                    if call.status == 503 { refused += 1 } else { #expect(call.status == 404) }
                }
                #expect(refused > 10 && refused < 30)
            }
        }
    }
}
