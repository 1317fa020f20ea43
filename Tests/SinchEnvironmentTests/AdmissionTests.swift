import Primitives
import SIP
import SinchEnvironment
import Testing

/// Who may send what, and what crosses from one client to another.
@Suite struct AdmissionTests {
    @Test func applicationsAreNameSpacesOfTheirOwn() throws {
        var world = try World()
        var alice = try world.registered("alice", port: 40_001)
        var bob = try world.registered("bob", port: 40_002, application: World.otherApplication)
        try world.deliver(alice.request(.invite, to: "bob"), from: alice.flow)
        #expect(world.takeResponses(alice.flow).map(\.status) == [404])
        try world.deliver(bob.request(.invite, to: "alice"), from: bob.flow)
        #expect(world.takeResponses(bob.flow).map(\.status) == [404])
        // Nor by the contact of the other's device.
        var byContact = alice.request(.invite, to: "bob")
        byContact.requestURI = bob.contact.uri
        try world.deliver(byContact, from: alice.flow)
        #expect(world.takeResponses(alice.flow).map(\.status) == [404])
        #expect(world.take(bob.flow).isEmpty)

        // The same name in both: each application reaches its own.
        let own = try world.registered("bob", port: 40_003)
        try world.deliver(alice.request(.invite, to: "bob"), from: alice.flow)
        #expect(world.take(own.flow).map(\.method) == [.invite])
        #expect(world.take(bob.flow).isEmpty)
    }

    @Test func contactOfTheSameApplicationIsReached() throws {
        var world = try World()
        var alice = try world.registered("alice", port: 40_001)
        let bob = try world.registered("bob", port: 40_002)
        let second = try world.registered("bob", port: 40_003)
        var request = alice.request(.invite, to: "bob")
        request.requestURI = second.contact.uri
        try world.deliver(request, from: alice.flow)
        #expect(world.take(second.flow).map(\.method) == [.invite])
        #expect(world.take(bob.flow).isEmpty)
    }

    @Test(arguments: [SIPMethod.invite, .message, .subscribe, .options, "XYZZY"])
    func forgedFromIs403(method: SIPMethod) throws {
        var world = try World()
        let bob = try world.registered("bob", port: 40_002)
        _ = try world.registered("alice", port: 40_001)
        var mallory = try world.registered("mallory", port: 40_009)
        var stranger = world.client("alice", port: 40_010)
        for isStranger in [true, false] {
            var request = isStranger ? stranger.request(method, to: "bob") : mallory.request(method, to: "bob")
            if !isStranger {
                request.from = SIPAddress(
                    uri: SIPURI(user: "alice", host: World.realm), parameters: request.from?.parameters ?? .init())
            }
            let flow = isStranger ? stranger.flow : mallory.flow
            try world.deliver(request, from: flow)
            #expect(world.takeResponses(flow).map(\.status) == [403])
        }
        var foreign = mallory.request(method, to: "bob")
        foreign.from = SIPAddress(
            uri: SIPURI(user: "mallory", host: "bank.example"), parameters: foreign.from?.parameters ?? .init())
        try world.deliver(foreign, from: mallory.flow)
        #expect(world.takeResponses(mallory.flow).map(\.status) == [403])
        #expect(world.take(bob.flow).isEmpty)
    }

    @Test func registrationThatRanOutIsNoIdentity() throws {
        var world = try World()
        var alice = world.client("alice", port: 40_001)
        try world.register(&alice, expires: 60)
        let bob = try world.registered("bob", port: 40_002)
        // Nobody called timeout(at:) in between.
        world.now += .seconds(61)
        try world.deliver(alice.request(.invite, to: "bob"), from: alice.flow)
        #expect(world.takeResponses(alice.flow).map(\.status) == [403])
        #expect(world.take(bob.flow).isEmpty)
    }

    @Test func reusedAddressIsNotAReusedConnection() throws {
        var world = try World()
        var alice = try world.registered("alice", .tcp, port: 40_001)
        _ = try world.registered("bob", port: 40_002)
        var other = alice.flow
        other.connection += 7
        try world.deliver(alice.request(.invite, to: "bob"), from: other)
        #expect(world.takeResponses(other).map(\.status) == [403])
    }

    @Test func credentialsAndClaimedIdentitiesStayHere() throws {
        var world = try World()
        var alice = try world.registered("alice", port: 40_001)
        let bob = try world.registered("bob", port: 40_002)
        var invite = alice.request(.invite, to: "bob")
        let token = try world.token(for: alice)
        invite.headers.append("Authorization", "Bearer " + token)
        invite.headers.append("proxy-authorization", "Bearer " + token)
        invite.headers.append("P-Asserted-Identity", "<sip:queen@example.com>")
        invite.headers.append("P-Preferred-Identity", "<sip:queen@example.com>")
        invite.headers.append("X-Header", "one,  two")
        invite.headers.append("Subject", "lunch")
        try world.deliver(invite, from: alice.flow)
        let arrived = try #require(world.take(bob.flow).first)
        #expect(!String(decoding: try arrived.encoded(), as: UTF8.self).contains(token))
        #expect(arrived.headers.all("P-Asserted-Identity") == ["<sip:alice@sinchctl.localhost>"])
        #expect(!arrived.headers.contains("P-Preferred-Identity"))
        #expect(arrived.headers["X-Header"] == "one,  two")
        #expect(arrived.headers["Subject"] == "lunch")

        var answer = bob.response(200, to: arrived)
        answer.headers.append("P-Asserted-Identity", "<sip:queen@example.com>")
        answer.headers.append("X-Answer", "yes")
        try world.deliver(answer, from: bob.flow)
        let received = try #require(world.takeResponses(alice.flow).first)
        #expect(!received.headers.contains("P-Asserted-Identity"))
        #expect(received.headers["X-Answer"] == "yes")

        var secret = alice.request(.invite, to: "bob")
        secret.headers.append("Privacy", "header; id")
        try world.deliver(secret, from: alice.flow)
        #expect(world.take(bob.flow).first?.headers.contains("P-Asserted-Identity") == false)
    }

    @Test func optionsToTheServerIsAnsweredWithoutRegistration() throws {
        var world = try World()
        var stranger = world.client("anyone", port: 40_001)
        for host in [World.realm, "127.0.0.1"] {
            var options = stranger.request(.options, to: "x")
            options.requestURI = SIPURI(user: nil, host: host, port: host == World.realm ? nil : 5060)
            options.maxForwards = 0
            try world.deliver(options, from: stranger.flow)
            let answer = try #require(world.takeResponses(stranger.flow).first)
            #expect(answer.status == 200)
            #expect(answer.headers["Allow"]?.contains("INVITE") == true)
        }
    }

    @Test func optionsAndMessageToAUserAreRelayedToAllDevices() throws {
        for method in [SIPMethod.options, .message] {
            var world = try World()
            var alice = try world.registered("alice", port: 40_001)
            let phones = try [40_002, 40_003].map { try world.registered("bob", port: $0) }
            try world.deliver(alice.request(method, to: "bob"), from: alice.flow)
            let received = phones.compactMap { world.take($0.flow).first }
            #expect(received.map(\.method) == [method, method])
            #expect(received.allSatisfy { $0.recordRoutes.isEmpty })
            for (phone, request) in zip(phones, received) {
                try world.deliver(phone.response(200, to: request), from: phone.flow)
            }
            // One answer only: a second 200 means nothing outside of INVITE.
            #expect(world.takeResponses(alice.flow).map(\.status) == [200])
        }
    }

    @Test func otherMethodsOutsideOfADialogAreRefused() throws {
        var world = try World()
        var alice = try world.registered("alice", port: 40_001)
        let bob = try world.registered("bob", port: 40_002)
        for (method, status) in [
            (.subscribe, 405), (.notify, 405), (.refer, 405), (.bye, 405), (.info, 405), (.publish, 405),
            ("XYZZY", 501), ("invite", 501),
        ] as [(SIPMethod, Int)] {
            try world.deliver(alice.request(method, to: "bob"), from: alice.flow)
            let answer = try #require(world.takeResponses(alice.flow).first)
            #expect(answer.status == status, "\(method)")
            #expect(answer.headers["Allow"]?.contains("INVITE") == true)
        }
        #expect(world.take(bob.flow).isEmpty)
    }

    @Test func hopsExtensionsAndSchemesAreChecked() throws {
        var world = try World()
        var alice = try world.registered("alice", port: 40_001)
        let bob = try world.registered("bob", port: 40_002)
        let changes: [(Int, (inout SIPMessage) -> Void)] = [
            (483, { $0.maxForwards = 0 }),
            (420, { $0.headers.append("Proxy-Require", "foo, bar") }),
            (416, { $0.requestURI = try? SIPURI(parsing: "tel:+46000000000") }),
            (404, { $0.requestURI = SIPURI(user: "bob", host: "example.com") }),
            (404, { $0.requestURI = SIPURI(user: nil, host: World.realm) }),
            (403, { $0.routes = [SIPAddress(uri: SIPURI(user: nil, host: "relay.example"))] }),
        ]
        for (status, change) in changes {
            var invite = alice.request(.invite, to: "bob")
            change(&invite)
            try world.deliver(invite, from: alice.flow)
            let answer = try #require(world.takeResponses(alice.flow).first)
            #expect(answer.status == status)
            if status == 420 { #expect(answer.headers["Unsupported"] == "foo, bar") }
        }
        #expect(world.take(bob.flow).isEmpty)
        // The environment as outbound proxy: its own route is taken off.
        var routed = alice.request(.invite, to: "bob")
        var route = SIPURI(user: nil, host: "127.0.0.1", port: 5060)
        route.parameters.setFlag("lr")
        routed.routes = [SIPAddress(uri: route)]
        routed.headers.remove("Max-Forwards")
        try world.deliver(routed, from: alice.flow)
        let arrived = try #require(world.take(bob.flow).first)
        #expect(arrived.routes.isEmpty)
        #expect(arrived.maxForwards == 70)
    }

    @Test func loopIs482AndASpiralPasses() throws {
        var world = try World()
        var alice = try world.registered("alice", port: 40_001)
        var bob = try world.registered("bob", port: 40_002)
        let (_, received) = try world.invite(&alice, "bob", callees: [bob])
        // bob's device sends it back as it is (but speaks for itself), addressed to its own contact: a spiral, since
        // the request URI changed.
        func returned(_ request: SIPMessage) -> SIPMessage {
            var back = request
            back.prependVia(bob.via())
            back.from = SIPAddress(uri: bob.addressOfRecord, parameters: request.from?.parameters ?? .init())
            return back
        }
        try world.deliver(returned(received[0]), from: bob.flow)
        let again = try #require(world.take(bob.flow).first { $0.method == .invite })
        // The same request URI, tags, Call-ID and CSeq a second time: a loop.
        try world.deliver(returned(again), from: bob.flow)
        #expect(world.takeResponses(bob.flow).map(\.status) == [482])
    }

    @Test func secondCopyOnAnotherPathIs482() throws {
        var world = try World()
        var alice = try world.registered("alice", port: 40_001)
        let bob = try world.registered("bob", port: 40_002)
        var invite = alice.request(.invite, to: "bob")
        try world.deliver(invite, from: alice.flow)
        #expect(world.take(bob.flow).count == 1)
        // A retransmission is no second copy.
        try world.deliver(invite, from: alice.flow)
        #expect(world.takeResponses(alice.flow).isEmpty)
        invite.topVia = alice.via()
        try world.deliver(invite, from: alice.flow)
        #expect(world.takeResponses(alice.flow).map(\.status) == [482])
        #expect(world.take(bob.flow).isEmpty)
    }

    @Test func malformedRequestIsAnsweredWithAReason() throws {
        var world = try World()
        let flow = SIPFlow(
            transport: .udp, remote: TransportAddress(host: "127.0.0.1", port: 40_001), connection: 0)
        let head = "INVITE sip:bob@sinchctl.localhost SIP/2.0\r\n"
        let headers =
            "v: SIP/2.0/UDP 127.0.0.1:40001;branch=z9hG4bKabc\r\nFrom: <sip:a@b>;tag=1\r\nt:\r\n <sip:c@d>\r\n"
            + "Call-ID: x\r\nCSeq: 1 INVITE\r\n"
        for (text, isAnswered) in [
            (head + headers + "X: \u{0}\r\n\r\n", true),
            ("ACK" + head.dropFirst(6) + headers + "X: \u{0}\r\n\r\n", false),
            ("SIP/2.0 200 OK\r\n" + headers + "X: \u{0}\r\n\r\n", false), (head + "X: \u{0}\r\n\r\n", false),
            ("\u{0}\u{1}", false), ("", false),
        ] {
            let bytes = Array(text.utf8)
            do throws(SIPParseError) {
                world.core.receive(
                    try SIPMessage.parse(bytes), from: flow, at: world.now, unixTime: world.unixTime)
                Issue.record("should not be readable: \(text)")
            } catch {
                world.core.receiveMalformed(bytes, error: error, from: flow, at: world.now)
            }
            try world.collect()
            let answers = world.take(flow)
            #expect(answers.map(\.status) == (isAnswered ? [400] : []), "\(text)")
            if isAnswered {
                #expect(answers[0].topVia?.branch == "z9hG4bKabc")
                #expect(answers[0].to?.uri.host == "d")
            }
        }
        #expect(world.events.count == 6)
    }

    @Test func logCarriesNoControlCharacters() throws {
        var world = try World()
        var alice = try world.registered("alice", port: 40_001)
        for request in [alice.request(.invite, to: "LINE"), alice.register(token: nil)] {
            var text = String(decoding: try request.encoded(), as: UTF8.self)
            text = text.split(separator: "LINE", omittingEmptySubsequences: false).joined(
                separator: "x%0Aforged%1B%5B2J")
            text = text.split(separator: "To: <sip:alice", omittingEmptySubsequences: false)
                .joined(separator: "To: <sip:a%0D%0Aforged")
            world.core.receive(
                try SIPMessage.parse(Array(text.utf8)), from: alice.flow, at: world.now, unixTime: world.unixTime)
            try world.collect()
        }
        #expect(world.events.count == 3, "\(world.events)")
        for event in world.events {
            #expect(!String(describing: event).unicodeScalars.contains { $0.value < 0x20 })
        }
    }
}
