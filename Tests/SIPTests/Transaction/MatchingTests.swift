import Primitives
import SIP
import Testing

@Suite("Matching and addressing of transactions")
struct MatchingTests {
    @Test("a request gets a Via with an unguessable branch of its own")
    func branches() throws {
        var probe = LayerProbe()
        for number in 0..<50 {
            _ = probe.send(LayerProbe.request(.options, sequence: UInt32(number)), over: LayerProbe.udp)
        }
        let branches = try probe.sent.map { try #require($0.message.topVia?.branch) }
        #expect(Set(branches).count == 50)
        #expect(branches.allSatisfy { $0.hasPrefix("z9hG4bK") && $0.utf8.count == 39 })
        let via = try #require(probe.sent.first?.message.topVia)
        #expect(via.host == "198.51.100.7")
        #expect(via.hasRport)
        #expect(probe.layer.clientTransactionCount == 50)
    }

    @Test("Max-Forwards is added when it is missing")
    func maxForwards() {
        var probe = LayerProbe()
        var request = LayerProbe.request(.options)
        request.headers.remove("Max-Forwards")
        _ = probe.send(request, over: LayerProbe.udp)
        #expect(probe.sent.last?.message.maxForwards == 70)
    }

    @Test("a response with a strange branch or another method is stray, a broken one dropped")
    func strayResponses() throws {
        var probe = LayerProbe()
        _ = probe.send(LayerProbe.request(.options), over: LayerProbe.udp)
        let sent = try #require(probe.sent.last?.message)
        _ = probe.takeLog()
        var other = sent.response(status: 200, toTag: "x")
        var via = try #require(other.topVia)
        via.branch = "z9hG4bKelse"
        other.topVia = via
        probe.receive(other)
        var wrongMethod = sent.response(status: 200, toTag: "x")
        wrongMethod.cseq = SIPCSeq(number: 1, method: .info)
        probe.receive(wrongMethod)
        var broken = sent.response(status: 200, toTag: "x")
        broken.headers.remove("Call-ID")
        probe.receive(broken)
        #expect(probe.takeLog() == ["0.0 stray 200", "0.0 stray 200"])
    }

    @Test("received and rport tell where a request came from (RFC 3261 18.2.1, RFC 3581)")
    func received() throws {
        let source = SIPFlow(transport: .udp, remote: TransportAddress(host: "192.0.2.1", port: 1024))
        var probe = LayerProbe()
        probe.receive(LayerProbe.received(.options, branch: "z9hG4bK1", callID: "1"), over: source)
        #expect(try #require(probe.delivered.last?.message.topVia).received == nil)
        probe.receive(
            LayerProbe.received(.options, branch: "z9hG4bK2", callID: "2", host: "alice.example.com"), over: source)
        #expect(try #require(probe.delivered.last?.message.topVia).received == "192.0.2.1")
        probe.respond(200)
        // Without rport the response goes to the port of the Via.
        #expect(probe.sent.last?.flow.remote == TransportAddress(host: "192.0.2.1", port: 5060))
        probe.receive(LayerProbe.received(.options, branch: "z9hG4bK3", callID: "3", rport: true), over: source)
        let via = try #require(probe.delivered.last?.message.topVia)
        #expect(via.received == "192.0.2.1")
        #expect(via.rport == 1024)
        probe.respond(200)
        #expect(probe.sent.last?.flow == source)
        #expect(probe.sent.last?.message.topVia?.rport == 1024)
    }

    @Test("a forged received parameter is replaced, IPv6 included")
    func forgedReceived() throws {
        let source = SIPFlow(transport: .udp, remote: TransportAddress(host: "2001:db8::1", port: 5060))
        var probe = LayerProbe()
        var request = LayerProbe.received(.options, host: "[2001:db8::1]")
        var via = try #require(request.topVia)
        via.received = "203.0.113.1"
        request.topVia = via
        probe.receive(request, over: source)
        #expect(try #require(probe.delivered.last?.message.topVia).received == nil)
    }

    @Test("responses on a connection go back on that connection")
    func connection() {
        var probe = LayerProbe()
        probe.receive(LayerProbe.received(.options), over: LayerProbe.tcp)
        probe.respond(200)
        #expect(probe.sent.last?.flow == LayerProbe.tcp)
    }

    @Test("an ACK for a 2xx is sent without a transaction, with a branch of its own")
    func statelessAck() throws {
        var probe = LayerProbe()
        probe.layer.sendStateless(LayerProbe.request(.ack), over: LayerProbe.udp, sentBy: LayerProbe.via())
        probe.drain()
        #expect(probe.takeLog() == ["0.0 > ACK"])
        #expect(try #require(probe.sent.last?.message.topVia?.branch).hasPrefix("z9hG4bK"))
        #expect(probe.layer.nextTimeout == nil)
    }

    @Test("two elements that chose the same branch are told apart by sent-by")
    func sentBy() {
        var probe = LayerProbe()
        probe.receive(LayerProbe.received(.options, callID: "1", host: "192.0.2.1"))
        probe.receive(LayerProbe.received(.options, callID: "2", host: "192.0.2.2"))
        #expect(probe.takeLog() == ["0.0 < OPTIONS", "0.0 < OPTIONS"])
    }

    @Test("RFC 2543 elements without unique branches are matched by the other headers", arguments: [nil, "1"])
    func legacy(branch: String?) {
        var probe = LayerProbe()
        probe.receive(LayerProbe.received(.invite, branch: branch))
        probe.receive(LayerProbe.received(.invite, branch: branch))
        probe.respond(486)
        probe.receive(LayerProbe.received(.ack, branch: branch, toTag: "bob-tag"))
        probe.receive(LayerProbe.received(.invite, branch: branch, callID: "call-2", sequence: 2))
        probe.run(until: 0.1)
        probe.receive(LayerProbe.received(.cancel, branch: branch, callID: "call-2", sequence: 2))
        #expect(
            probe.takeLog() == [
                "0.0 < INVITE", "0.0 > 100", "0.0 > 486", "0.0 < INVITE", "0.1 > 200", "0.1 cancelled",
            ])
    }

    @Test("an ACK of an RFC 2543 element with another To tag does not acknowledge the refusal")
    func legacyAck() {
        var probe = LayerProbe()
        probe.receive(LayerProbe.received(.invite, branch: nil))
        probe.respond(486)
        probe.receive(LayerProbe.received(.ack, branch: nil, toTag: "another"))
        probe.run(until: 0.6)
        #expect(probe.takeLog() == ["0.0 < INVITE", "0.0 > 486", "0.0 < ACK (alone)", "0.5 > 486"])
    }

    @Test("the same request over a second path gets 482, unless the limits say it is a proxy")
    func merged() {
        var agent = LayerProbe()
        agent.receive(LayerProbe.received(.invite, branch: "z9hG4bKone"))
        agent.receive(LayerProbe.received(.invite, branch: "z9hG4bKtwo"))
        agent.receive(LayerProbe.received(.ack, branch: "z9hG4bKtwo", toTag: agent.sent.last?.message.to?.tag))
        #expect(agent.takeLog() == ["0.0 < INVITE", "0.0 > 482"])
        agent.respond(486)
        agent.receive(LayerProbe.received(.ack, branch: "z9hG4bKone", toTag: "bob-tag"))
        agent.run(until: 50)
        agent.receive(LayerProbe.received(.invite, branch: "z9hG4bKthree"))
        #expect(agent.takeLog().last == "50.0 < INVITE")

        var proxy = LayerProbe(limits: TransactionLimits(rejectsMergedRequests: false))
        proxy.receive(LayerProbe.received(.invite, branch: "z9hG4bKone"))
        proxy.receive(LayerProbe.received(.invite, branch: "z9hG4bKtwo"))
        #expect(proxy.takeLog() == ["0.0 < INVITE", "0.0 < INVITE"])
    }

    @Test("a faulty request is answered without a transaction; a faulty ACK is not")
    func faulty() {
        var probe = LayerProbe()
        var request = LayerProbe.received(.options)
        request.cseq = SIPCSeq(number: 1, method: .info)
        probe.receive(request)
        #expect(probe.sent.last?.message.status == 400)
        var ack = LayerProbe.received(.ack, toTag: "x")
        ack.headers.remove("Call-ID")
        probe.receive(ack)
        #expect(probe.takeLog() == ["0.0 > 400"])
        #expect(probe.layer.serverTransactionCount == 0)
    }

    @Test("a response above 100 always has a To tag")
    func addsTag() {
        var probe = LayerProbe()
        probe.receive(LayerProbe.received(.options))
        probe.respond(404, tag: nil)
        #expect(probe.sent.last?.message.to?.tag?.isEmpty == false)
    }
}

@Suite("Limits and failures of transactions")
struct TransactionLimitTests {
    @Test("a full server answers 503 with Retry-After, without memory; CANCEL still works")
    func fullServer() throws {
        var probe = LayerProbe(limits: TransactionLimits(serverTransactions: 1, retryAfter: 5...9))
        probe.receive(LayerProbe.received(.invite, branch: "z9hG4bK1", callID: "1"))
        probe.receive(LayerProbe.received(.invite, branch: "z9hG4bK2", callID: "2"))
        let refusal = try #require(probe.sent.last?.message)
        #expect((5...9).contains(try #require(refusal.retryAfter)))
        // Its ACK is absorbed, though nothing was remembered.
        probe.receive(LayerProbe.received(.ack, branch: "z9hG4bK2", callID: "2", toTag: refusal.to?.tag))
        probe.receive(LayerProbe.received(.cancel, branch: "z9hG4bK1", callID: "1"))
        #expect(probe.takeLog() == ["0.0 < INVITE", "0.0 > 503", "0.0 > 200", "0.0 cancelled"])
        #expect(probe.layer.serverTransactionCount == 1)
    }

    @Test("a full client fails at once")
    func fullClient() {
        var probe = LayerProbe(limits: TransactionLimits(clientTransactions: 1))
        _ = probe.send(LayerProbe.request(.options), over: LayerProbe.udp)
        _ = probe.send(LayerProbe.request(.options, callID: "2"), over: LayerProbe.udp)
        #expect(
            probe.takeLog() == [
                "0.0 > OPTIONS", "0.0 failed OPTIONS: 1 requests are waiting for answers already",
                "0.0 ended OPTIONS",
            ])
    }

    @Test("a broken flow fails its client transactions at once, and those of a connection on the server side")
    func brokenFlow() {
        var probe = LayerProbe()
        _ = probe.send(LayerProbe.request(.register), over: LayerProbe.udp)
        _ = probe.send(LayerProbe.request(.options), over: LayerProbe.tcp)
        probe.receive(LayerProbe.received(.invite), over: LayerProbe.tcp)
        _ = probe.takeLog()
        probe.layer.transportFailed(flow: LayerProbe.udp, reason: "connection refused", at: probe.now)
        probe.drain()
        #expect(probe.takeLog() == ["0.0 failed REGISTER: connection refused", "0.0 ended REGISTER"])
        probe.layer.transportFailed(flow: LayerProbe.tcp, reason: "reset by peer", at: probe.now)
        probe.drain()
        #expect(
            probe.takeLog() == [
                "0.0 failed OPTIONS: reset by peer", "0.0 ended OPTIONS", "0.0 failed INVITE: reset by peer",
                "0.0 ended INVITE",
            ])
        #expect(probe.layer.nextTimeout == nil)
    }

    @Test("an ICMP error on UDP leaves server transactions alone")
    func icmp() {
        var probe = LayerProbe()
        probe.receive(LayerProbe.received(.invite))
        probe.layer.transportFailed(flow: LayerProbe.udp, reason: "port unreachable", at: probe.now)
        probe.drain()
        #expect(probe.takeLog() == ["0.0 < INVITE"])
    }

    @Test("a lost connection after the final response is no failure")
    func lostAfterFinal() {
        var probe = LayerProbe()
        _ = probe.send(LayerProbe.request(.invite), over: LayerProbe.tcp)
        probe.answer(200, to: .invite)
        probe.layer.transportFailed(flow: LayerProbe.tcp, reason: "closed", at: probe.now)
        probe.drain()
        #expect(probe.takeLog() == ["0.0 > INVITE", "0.0 < 200", "0.0 ended INVITE"])
    }
}
