import Primitives
import SIP
import SinchEnvironment
import Testing

@Suite struct DialogRelayTests {
    /// An established call, and the dialogs of both sides.
    struct Call {
        var world: World
        var alice: Client
        var bob: Client
        var caller: SIPDialog
        var callee: SIPDialog

        init(_ callerTransport: SIPTransport = .udp, _ calleeTransport: SIPTransport = .tcp) throws {
            world = try World()
            alice = try world.registered("alice", callerTransport, port: 40_001)
            bob = try world.registered("bob", calleeTransport, port: 40_002)
            let (invite, received) = try world.invite(&alice, "bob", callees: [bob])
            callee = try bob.calleeDialog(received[0])
            try world.deliver(bob.response(200, to: received[0]), from: bob.flow)
            let answer = try #require(world.takeResponses(alice.flow).first)
            caller = try alice.callerDialog(invite, answer)
            let ack = alice.stamped(caller.ack(for: invite.cseq?.number ?? 1, contact: nil))
            try world.deliver(ack, from: alice.flow)
            let arrived = try #require(world.take(bob.flow).first)
            #expect(arrived.method == .ack)
            #expect(arrived.routes.isEmpty)
            #expect(arrived.requestURI == bob.contact.uri)
            world.events = []
        }
    }

    @Test(arguments: [SIPTransport.udp, .tcp], [SIPTransport.udp, .tcp])
    func byeGoesBothWays(callerTransport: SIPTransport, calleeTransport: SIPTransport) throws {
        for isFromCaller in [true, false] {
            var call = try Call(callerTransport, calleeTransport)
            let bye: SIPMessage
            var (sender, receiver) = isFromCaller ? (call.alice, call.bob) : (call.bob, call.alice)
            if isFromCaller {
                bye = sender.stamped(call.caller.request(.bye, contact: nil))
            } else {
                bye = sender.stamped(call.callee.request(.bye, contact: nil))
            }
            try call.world.deliver(bye, from: sender.flow)
            let arrived = try #require(call.world.take(receiver.flow).first)
            #expect(arrived.method == .bye)
            #expect(arrived.routes.isEmpty)
            #expect(arrived.requestURI == receiver.contact.uri)
            #expect(call.world.events == [.callEnded(call: bye.callID ?? "", by: sender.name)])
            receiver = isFromCaller ? call.bob : call.alice
            try call.world.deliver(receiver.response(200, to: arrived), from: receiver.flow)
            #expect(call.world.takeResponses(sender.flow).map(\.status) == [200])
            try call.world.advance(by: .seconds(200))
            #expect(call.world.core.forwardingCount == 0)
        }
    }

    @Test(arguments: ["INFO", "UPDATE", "OPTIONS", "REFER", "NOTIFY", "MESSAGE", "XYZZY"])
    func anyMethodIsRelayedWithinADialog(name: String) throws {
        var call = try Call()
        var request = call.bob.stamped(call.callee.request(SIPMethod(rawValue: name), contact: call.bob.contact))
        request.headers.append("X-Own", "kept  as it is")
        request.headers.append("Authorization", "Bearer secret")
        request.headers.append("P-Asserted-Identity", "<sip:queen@example.com>")
        try call.world.deliver(request, from: call.bob.flow)
        let arrived = try #require(call.world.take(call.alice.flow).first)
        #expect(arrived.method?.rawValue == name)
        #expect(arrived.headers["X-Own"] == "kept  as it is")
        #expect(!arrived.headers.contains("Authorization"))
        #expect(!arrived.headers.contains("P-Asserted-Identity"))
        try call.world.deliver(call.alice.response(202, to: arrived), from: call.alice.flow)
        #expect(call.world.takeResponses(call.bob.flow).map(\.status) == [202])
    }

    @Test func reinviteIsRelayedAndAcknowledged() throws {
        var call = try Call()
        let reinvite = call.bob.stamped(call.callee.request(.invite, contact: call.bob.contact))
        try call.world.deliver(reinvite, from: call.bob.flow)
        let arrived = try #require(call.world.take(call.alice.flow).first)
        try call.world.deliver(call.alice.response(200, to: arrived), from: call.alice.flow)
        #expect(call.world.takeResponses(call.bob.flow).map(\.status) == [200])
        let ack = call.bob.stamped(call.callee.ack(for: reinvite.cseq?.number ?? 0, contact: nil))
        try call.world.deliver(ack, from: call.bob.flow)
        try call.world.deliver(ack, from: call.bob.flow)
        let acks = call.world.take(call.alice.flow)
        #expect(acks.map(\.method) == [.ack, .ack])
        // A repeated ACK keeps its branch (RFC 3261 section 16.11).
        #expect(acks[0].topVia?.branch == acks[1].topVia?.branch)
    }

    @Test func requestFollowsADeviceToItsNewFlow() throws {
        var call = try Call()
        let old = call.bob.flow
        call.bob.flow.connection += 50
        call.bob.flow.remote.port = 41_000
        try call.world.register(&call.bob)
        try call.world.fail(old)
        let info = call.alice.stamped(call.caller.request(.info, contact: nil))
        try call.world.deliver(info, from: call.alice.flow)
        #expect(call.world.take(old).isEmpty)
        #expect(call.world.take(call.bob.flow).map(\.method) == [.info])
        // And from there.
        let back = call.bob.stamped(call.callee.request(.info, contact: nil))
        try call.world.deliver(back, from: call.bob.flow)
        #expect(call.world.take(call.alice.flow).map(\.method) == [.info])
    }

    @Test func byeStillArrivesAfterUnregistering() throws {
        var call = try Call()
        try call.world.register(&call.bob, expires: 0)
        let bye = call.bob.stamped(call.callee.request(.bye, contact: nil))
        try call.world.deliver(bye, from: call.bob.flow)
        #expect(call.world.take(call.alice.flow).map(\.method) == [.bye])
    }

    @Test func forgedByeFromAnotherClientIsRefused() throws {
        var call = try Call()
        var mallory = try call.world.registered("mallory", port: 40_009)
        // All of the dialog is known to mallory: tags, Call-ID, route.
        let bye = mallory.stamped(call.caller.request(.bye, contact: nil))
        try call.world.deliver(bye, from: mallory.flow)
        #expect(call.world.takeResponses(mallory.flow).map(\.status) == [403])
        #expect(call.world.take(call.bob.flow).isEmpty)
    }

    @Test func routesThatAreNotOursOrOfAnotherDialogGiveNothing() throws {
        var call = try Call()
        let genuine = call.caller.request(.bye, contact: nil)
        let token = try #require(genuine.routes.first?.uri.user)
        for change in 0..<token.utf8.count where change % 3 == 0 {
            var altered = Array(token.utf8)
            altered[change] = altered[change] == 0x41 ? 0x42 : 0x41
            var request = genuine
            request.routes = request.routes.map { route in
                var route = route
                route.uri.user = String(decoding: altered, as: UTF8.self)
                return route
            }
            // A URI of nobody, so that the contact does not help out.
            request.requestURI = SIPURI(user: "x", host: "192.0.2.1")
            try call.world.deliver(call.alice.stamped(request), from: call.alice.flow)
            #expect(call.world.takeResponses(call.alice.flow).map(\.status) == [481])
        }
        // The route of this dialog under the tags of another.
        var other = genuine
        var from = try #require(other.from)
        from.tag = "someone-else"
        other.from = from
        try call.world.deliver(call.alice.stamped(other), from: call.alice.flow)
        #expect(call.world.takeResponses(call.alice.flow).map(\.status) == [481])
        #expect(call.world.take(call.bob.flow).isEmpty)
    }

    @Test func strictRouterBeforeUsIsUnderstood() throws {
        var call = try Call()
        var bye = call.caller.request(.bye, contact: nil)
        var routes = bye.routes
        let ours = routes.removeFirst()
        routes.append(SIPAddress(uri: try #require(bye.requestURI)))
        bye.requestURI = ours.uri
        bye.routes = routes
        try call.world.deliver(call.alice.stamped(bye), from: call.alice.flow)
        let arrived = try #require(call.world.take(call.bob.flow).first)
        #expect(arrived.requestURI == call.bob.contact.uri)
        #expect(arrived.routes.isEmpty)
    }

    @Test func dialogOutlivesARestartOfTheEnvironment() throws {
        var call = try Call()
        // Another environment: another key, no registrations.
        var restarted = try World(seed: 99)
        let bye = call.alice.stamped(call.caller.request(.bye, contact: nil))
        try restarted.deliver(bye, from: call.alice.flow)
        #expect(restarted.takeResponses(call.alice.flow).map(\.status) == [403])
        try restarted.register(&call.alice)
        let second = call.alice.stamped(call.caller.request(.bye, contact: nil))
        try restarted.deliver(second, from: call.alice.flow)
        #expect(restarted.takeResponses(call.alice.flow).map(\.status) == [481])
        // When both are back, the contact in the request line says where to.
        try restarted.register(&call.bob)
        let third = call.alice.stamped(call.caller.request(.bye, contact: nil))
        try restarted.deliver(third, from: call.alice.flow)
        #expect(restarted.take(call.bob.flow).map(\.method) == [.bye])
    }

    @Test func callToOneselfKnowsItsSidesApart() throws {
        var world = try World()
        var alice = try world.registered("alice", port: 40_001)
        let (invite, received) = try world.invite(&alice, "alice", callees: [alice])
        var callee = try alice.calleeDialog(received[0])
        try world.deliver(alice.response(200, to: received[0]), from: alice.flow)
        let answer = try #require(world.takeResponses(alice.flow).first)
        var caller = try alice.callerDialog(invite, answer)
        for request in [caller.request(.info, contact: nil), callee.request(.bye, contact: nil)] {
            try world.deliver(alice.stamped(request), from: alice.flow)
            let arrived = try #require(world.take(alice.flow).first)
            #expect(arrived.method == request.method)
            #expect(arrived.from?.tag == request.from?.tag)
        }
    }

    @Test func vanishedSideIsReportedAtOnce() throws {
        // A closed connection: known before anything is sent.
        var call = try Call(.udp, .tcp)
        try call.world.fail(call.bob.flow, reason: "closed")
        #expect(
            call.world.events.contains { event in
                if case .unregistered("bob", _, _, .flowFailed("closed"), 0) = event { true } else { false }
            })
        let info = call.alice.stamped(call.caller.request(.info, contact: nil))
        try call.world.deliver(info, from: call.alice.flow)
        #expect(call.world.takeResponses(call.alice.flow).map(\.status) == [480])

        // An ICMP error: known as soon as something was sent.
        call = try Call(.tcp, .udp)
        let bye = call.alice.stamped(call.caller.request(.bye, contact: nil))
        try call.world.deliver(bye, from: call.alice.flow)
        #expect(call.world.take(call.bob.flow).map(\.method) == [.bye])
        try call.world.fail(call.bob.flow)
        #expect(call.world.takeResponses(call.alice.flow).map(\.status) == [480])
        #expect(call.world.core.registrationCount == 1)
    }

    @Test func challengeOfAPeerNeverReachesTheOther() throws {
        var call = try Call()
        let bye = call.alice.stamped(call.caller.request(.bye, contact: nil))
        try call.world.deliver(bye, from: call.alice.flow)
        let arrived = try #require(call.world.take(call.bob.flow).first)
        for header in ["WWW-Authenticate", "Proxy-Authenticate"] {
            var challenge = call.bob.response(407, to: arrived)
            challenge.headers.append(header, "Bearer realm=\"sinchctl.localhost\"")
            try call.world.deliver(challenge, from: call.bob.flow)
        }
        let answers = call.world.takeResponses(call.alice.flow)
        #expect(answers.map(\.status) == [403])
        #expect(Challenge.challenges(in: answers[0]).isEmpty)
    }
}
