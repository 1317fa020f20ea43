import Primitives
import SIP
import Testing

@Suite("CANCEL")
struct CancelTests {
    @Test("waits for a provisional response, then matches the INVITE, and the INVITE ends with the 487")
    func waitsForProvisional() throws {
        var probe = LayerProbe()
        var request = LayerProbe.request(.invite)
        request.routes = [SIPAddress(uri: try SIPURI(parsing: "sip:proxy.example.com;lr"))]
        request.headers["Require"] = "100rel"
        let invite = probe.send(request, over: LayerProbe.udp)
        let cancel = probe.layer.cancel(invite, reason: "SIP;cause=200;text=\"Completed elsewhere\"", at: probe.now)
        probe.run(until: 0.3)
        #expect(probe.takeLog() == ["0.0 > INVITE"])
        probe.answer(100, to: .invite)
        probe.run(until: 0.4)
        probe.answer(200, to: .cancel)
        probe.answer(487, to: .invite)
        probe.run(until: 100)
        #expect(
            probe.takeLog() == [
                "0.3 < 100", "0.3 > CANCEL", "0.4 < 200", "0.4 > ACK", "0.4 < 487", "5.4 ended CANCEL",
                "32.4 ended INVITE",
            ])
        let sentInvite = try #require(probe.sent.first?.message)
        let sentCancel = try #require(probe.sent.first { $0.message.method == .cancel }?.message)
        #expect(cancel?.method == .cancel)
        #expect(sentCancel.vias == [try #require(sentInvite.topVia)])
        #expect(sentCancel.requestURI == sentInvite.requestURI)
        #expect(sentCancel.from == sentInvite.from)
        #expect(sentCancel.to == sentInvite.to)
        #expect(sentCancel.cseq == SIPCSeq(number: 1, method: .cancel))
        #expect(sentCancel.routes == sentInvite.routes)
        #expect(sentCancel.headers["Reason"] == "SIP;cause=200;text=\"Completed elsewhere\"")
        #expect(!sentCancel.headers.contains("Require"))
        #expect(sentCancel.validate() == nil)
    }

    @Test("goes out at once after a provisional response, once however often it is asked for")
    func afterProvisional() {
        var probe = LayerProbe()
        let invite = probe.send(LayerProbe.request(.invite), over: LayerProbe.tcp)
        probe.answer(180, to: .invite)
        let first = probe.layer.cancel(invite, at: probe.now)
        let second = probe.layer.cancel(invite, at: probe.now)
        probe.drain()
        #expect(first == second)
        #expect(probe.takeLog() == ["0.0 > INVITE", "0.0 < 180", "0.0 > CANCEL"])
    }

    @Test("never goes out when the final response comes first, which the user gets as it is")
    func finalFirst() {
        var probe = LayerProbe()
        let invite = probe.send(LayerProbe.request(.invite), over: LayerProbe.tcp)
        #expect(probe.layer.cancel(invite, at: probe.now) != nil)
        probe.answer(200, to: .invite)
        #expect(probe.layer.cancel(invite, at: probe.now) == nil)
        probe.run(until: 100)
        #expect(probe.takeLog() == ["0.0 > INVITE", "0.0 < 200", "32.0 ended INVITE"])
    }

    @Test("without a final response the INVITE is given up 64·T1 after the CANCEL")
    func peerIgnoresCancel() {
        var probe = LayerProbe()
        let invite = probe.send(LayerProbe.request(.invite), over: LayerProbe.tcp)
        probe.answer(180, to: .invite)
        probe.run(until: 60)
        probe.layer.cancel(invite, at: probe.now)
        probe.drain()
        probe.answer(200, to: .cancel)
        probe.run(until: 200)
        #expect(
            probe.takeLog() == [
                "0.0 > INVITE", "0.0 < 180", "60.0 > CANCEL", "60.0 < 200", "60.0 ended CANCEL",
                "92.0 failed INVITE: no answer within the transaction's time", "92.0 ended INVITE",
            ])
    }

    @Test("only an INVITE can be cancelled")
    func onlyInvite() {
        var probe = LayerProbe()
        let options = probe.send(LayerProbe.request(.options), over: LayerProbe.tcp)
        #expect(probe.layer.cancel(options, at: probe.now) == nil)
    }

    @Test("received: 200 by the layer, one report, and the user's 487 ends the INVITE")
    func received() throws {
        var probe = LayerProbe()
        probe.receive(LayerProbe.received(.invite))
        probe.respond(180)
        let invite = try #require(probe.delivered.first?.id)
        probe.receive(LayerProbe.received(.cancel))
        probe.receive(LayerProbe.received(.cancel))  // repeated: the same 200
        #expect(probe.lastCancelled == invite)
        #expect(probe.sent.last?.message.to?.tag == "bob-tag")
        probe.respond(487, in: invite)
        probe.receive(LayerProbe.received(.ack, toTag: "bob-tag"))
        probe.run(until: 100)
        #expect(
            probe.takeLog() == [
                "0.0 < INVITE", "0.0 > 180", "0.0 > 200", "0.0 cancelled", "0.0 > 200", "0.0 > 487",
                "5.0 ended INVITE", "32.0 ended CANCEL",
            ])
    }

    @Test("received after the final response it is answered 200 and changes nothing")
    func tooLate() {
        var probe = LayerProbe()
        probe.receive(LayerProbe.received(.invite))
        probe.respond(200)
        probe.receive(LayerProbe.received(.cancel))
        #expect(probe.takeLog() == ["0.0 < INVITE", "0.0 > 200", "0.0 > 200"])
    }

    @Test("received without an INVITE, or from another host, it gets 481")
    func unknown() {
        var probe = LayerProbe()
        probe.receive(LayerProbe.received(.cancel, branch: "z9hG4bKnothing"))
        #expect(probe.takeLog() == ["0.0 > 481"])
        probe.receive(LayerProbe.received(.invite))
        let elsewhere = SIPFlow(transport: .udp, remote: TransportAddress(host: "203.0.113.9", port: 5060))
        probe.receive(LayerProbe.received(.cancel), over: elsewhere)
        #expect(probe.takeLog() == ["0.0 < INVITE", "0.0 > 481"])
        #expect(probe.lastCancelled == nil)
    }
}
