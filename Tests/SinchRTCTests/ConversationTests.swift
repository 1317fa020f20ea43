import Primitives
import SIP
import SinchEnvironment
import SinchRTC
import Testing
import Token

/// Hold, keys and transfer by the API, between clients and through a real environment.
@Suite struct ConversationTests {
    /// Three started users; bob may be transferred.
    private func withThree(
        transport: String = "udp", accepts: Bool = true,
        _ body: (_ alice: TestUser, _ bob: TestUser, _ carol: TestUser) async throws -> Void
    ) async throws {
        try await withEnvironment { environment in
            let alice = try environment.user("alice", policy: .answer, transport: transport)
            let bob = try environment.user("bob", policy: .answer, transport: transport) {
                $0.acceptsTransfers = accepts
            }
            let carol = try environment.user("carol", policy: .answer, transport: transport)
            let users = [alice, bob, carol]
            for user in users { try await user.start() }
            do {
                try await body(alice, bob, carol)
            } catch {
                for user in users { await user.client.terminate() }
                throw error
            }
            for user in users { await user.client.terminate() }
        }
    }

    private func established(_ from: TestUser, _ to: TestUser) async throws -> (SinchCall, SinchCall) {
        let call = try from.call(to.client.userId)
        try await from.wait("establish", of: call)
        let other = try await to.nextIncoming()
        try await to.wait("establish", of: other)
        return (call, other)
    }

    @Test func holdAndResume() async throws {
        try await withThree { alice, bob, _ in
            let (call, other) = try await established(alice, bob)
            call.hold()
            try await alice.wait("hold", of: call)
            try await bob.wait("held", of: other)
            #expect(call.isOnHold && !call.isHeldByRemote)
            #expect(other.isHeldByRemote && !other.isOnHold)
            // Both hold; then one after the other goes on.
            other.hold()
            try await bob.wait("hold", of: other)
            try await alice.wait("held", of: call)
            call.resume()
            try await alice.wait("resume", of: call)
            #expect(!call.isOnHold && call.isHeldByRemote)
            other.resume()
            try await bob.wait("resume", of: other)
            try await alice.wait("goesOn", of: call)
            #expect(!call.isHeldByRemote && !other.isOnHold && !other.isHeldByRemote)
            #expect(call.state == .established && other.state == .established)
            call.resume()
            try await alice.wait("holdFailed", of: call)
        }
    }

    @Test func holdBeforeTheAnswerIsRefused() async throws {
        try await withUsers(policy: .hold) { alice, _, _ in
            let call = try alice.call("bob")
            try await alice.wait("ring", of: call)
            call.hold()
            try await alice.wait("holdFailed", of: call)
            #expect(!call.isOnHold)
        }
    }

    @Test func keysArrive() async throws {
        try await withThree { alice, bob, _ in
            let early = try alice.call("nobody-there")
            #expect(!early.sendDTMF("1"), "not answered")
            let (call, other) = try await established(alice, bob)
            for wrong in ["", "x", "12 3", String(repeating: "1", count: 65), "１"] { #expect(!call.sendDTMF(wrong)) }
            #expect(call.sendDTMF("1d#"))
            try await alice.wait("keysSent", of: call)
            #expect(other.sendDTMF("*"))
            try await alice.wait("key *", of: call)
            try await bob.wait("key #", of: other)
            #expect(bob.story(of: other).filter { $0.hasPrefix("key ") } == ["key 1", "key D", "key #"])
            call.hold()
            try await alice.wait("hold", of: call)
            call.sendDTMF("5")
            try await alice.wait("keysFailed", of: call)
            call.hangup()
            try await alice.wait("end", of: call)
            #expect(!call.sendDTMF("1"), "over")
        }
    }

    @Test(arguments: ["udp", "tcp"]) func blindTransfer(transport: String) async throws {
        try await withThree(transport: transport) { alice, bob, carol in
            let (call, other) = try await established(alice, bob)
            try call.transfer(to: "carol")
            try await alice.wait("transferred", of: call)
            try await alice.wait("end", of: call)
            try await bob.wait("end", of: other)
            #expect(call.details.endCause == .hungUp && other.details.endCause == .hungUp)
            #expect(alice.story(of: call).contains("transfer 180"))
            let new = try #require(bob.transferred.first)
            #expect(new.previousCall === other && new.remoteUserId == "carol" && new.direction == .outgoing)
            try await bob.wait("establish", of: new)
            let atCarol = try await carol.nextIncoming()
            #expect(atCarol.remoteUserId == "bob" && atCarol.previousCall == nil)
            try await carol.wait("establish", of: atCarol)
            atCarol.hangup()
            try await bob.wait("end", of: new)
        }
    }

    @Test func attendedTransfer() async throws {
        try await withThree { alice, bob, carol in
            let (call, other) = try await established(alice, bob)
            call.hold()
            try await alice.wait("hold", of: call)
            let (consultation, atCarol) = try await established(alice, carol)
            call.transfer(to: consultation)
            try await alice.wait("transferred", of: call)
            try await alice.wait("end", of: call)
            try await alice.wait("end", of: consultation)
            try await bob.wait("end", of: other)
            try await carol.wait("end", of: atCarol)
            // The same two people, in new calls that know what they follow; nobody heard it ring.
            let atBob = try #require(bob.transferred.first)
            try await bob.wait("establish", of: atBob)
            let taken = try await carol.nextIncoming(count: 2)
            try await carol.wait("establish", of: taken)
            #expect(taken.previousCall === atCarol && taken.remoteUserId == "bob")
            #expect(!bob.story(of: atBob).contains("ring"))
            taken.hangup()
            try await bob.wait("end", of: atBob)
        }
    }

    @Test func theAnswerBringsHeaders() async throws {
        try await withUsers(policy: .hold) { alice, bob, _ in
            let call = try alice.call("bob", headers: ["x-ticket": "4711"])
            let incoming = try await bob.nextIncoming()
            #expect(incoming.remoteHeaders == ["x-ticket": "4711"])
            #expect(throws: SinchError.self) { try incoming.answer(headers: ["Via": "x"]) }
            try incoming.answer(headers: ["x-desk": "7"])
            try await alice.wait("answer", of: call)
            #expect(call.remoteHeaders == ["x-desk": "7"])
            #expect(call.headers == ["x-ticket": "4711"])
        }
    }

    @Test func transfersAreRefusedUnlessAllowed() async throws {
        try await withThree(accepts: false) { alice, bob, carol in
            let (call, other) = try await established(alice, bob)
            try call.transfer(to: "carol")
            try await alice.wait("transferFailed declined", of: call)
            #expect(call.state == .established && other.state == .established)
            #expect(carol.incoming.isEmpty && bob.transferred.isEmpty)
        }
    }

    @Test func failedTransfersLeaveTheCall() async throws {
        try await withThree { alice, bob, _ in
            let (call, other) = try await established(alice, bob)
            #expect(throws: SinchError.self) { try call.transfer(to: "no such user") }
            #expect(throws: SinchError.self) { try call.transfer(to: "+12") }
            try call.transfer(to: "nobody-of-that-name")
            try await alice.wait("transferFailed noSuchUser", of: call)
            #expect(call.state == .established && other.state == .established)
            let ringing = try alice.call("bob")
            ringing.hangup()
            try await alice.wait("end", of: ringing)
            call.transfer(to: ringing)
            try await alice.wait("transferFailed remote", of: call)
            #expect(call.state == .established)
        }
    }

    /// A started client at a platform that does with INVITEs what the test says, and grants the rest.
    private func withFake(
        _ respond: @escaping @Sendable (SIPMessage) -> [SIPMessage]?,
        _ body: (TestUser, FakePlatform) async throws -> Void
    ) async throws {
        let platform = try await FakePlatform.start { request in request.method == .invite ? respond(request) : nil }
        let alice = try TestUser(
            TestEnvironment.configuration("alice", at: platform.address),
            secret: ApplicationSecret(bytes: [UInt8](repeating: 7, count: 16)))
        try await alice.start()
        try await body(alice, platform)
        await alice.client.terminate()
        try await platform.stop()
    }

    @Test func earlyMediaIsHeardAndNothingIsSent() async throws {
        let media = try await FakeMedia.start()
        let answer: @Sendable (SIPMessage) -> [SIPMessage]? = { invite in
            var early = invite.response(status: 183, toTag: "fake")
            let session = FakePlatform.answer(to: invite, contact: media.address, media: media.address)
            early.contacts = session.contacts
            early.contentType = session.contentType
            early.body = session.body
            return [early]
        }
        try await withFake(answer) { alice, platform in
            let call = try alice.call("bob")
            try await alice.wait("progress", of: call)
            let invite = try #require(platform.log.events.first { $0.method == .invite })
            let port = try #require(FakePlatform.mediaPort(of: invite))
            try await eventually("early media is received") {
                media.sendPacket(to: port)
                let statistics = await withCheckedContinuation { continuation in
                    call.statistics { continuation.resume(returning: $0) }
                }
                return statistics.packetsReceived > 0
            }
            #expect(call.state == .progressing)
            #expect(media.received.events.isEmpty, "the microphone is closed before the answer")
            call.hangup()
            try await alice.wait("end", of: call)
            #expect(call.lastStatistics.packetsSent == 0)
        }
        try await media.stop()
    }

    @Test func keysGoByInfoWhereTheOtherSideTakesNoEvents() async throws {
        let media = try await FakeMedia.start()
        let answer: @Sendable (SIPMessage) -> [SIPMessage]? = { invite in
            [
                FakePlatform.answer(
                    to: invite, contact: TransportAddress(host: "127.0.0.1", port: invite.topVia?.port ?? 9),
                    media: media.address)
            ]
        }
        try await withFake(answer) { alice, platform in
            let call = try alice.call("bob")
            try await media.received.wait("a packet") { !$0.isEmpty }
            let invite = try #require(platform.log.events.first { $0.method == .invite })
            media.sendPacket(to: try #require(FakePlatform.mediaPort(of: invite)))
            try await alice.wait("establish", of: call)
            #expect(call.sendDTMF("4*"))
            try await alice.wait("keysSent", of: call)
            let keys = platform.log.events.filter { $0.method == .info }.compactMap {
                SIPDTMFBody.key(in: $0.body, contentType: $0.contentType ?? "")
            }
            #expect(keys == ["4", "*"])
        }
        try await media.stop()
    }
}
