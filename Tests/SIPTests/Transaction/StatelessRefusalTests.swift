import Primitives
import SIP
import Testing

@Suite("Refusals that keep no transaction")
struct StatelessRefusalTests {
    private func refuse(_ probe: inout LayerProbe, _ status: Int) {
        guard let last = probe.delivered.last else { return }
        probe.layer.refuse(last.message.response(status: status), in: last.id)
        probe.drain()
    }

    @Test("a repetition is delivered again and gets the same To tag; the ACK is absorbed; nothing stays")
    func invite() throws {
        var probe = LayerProbe()
        for _ in 0..<2 {
            probe.receive(LayerProbe.received(.invite))
            refuse(&probe, 403)
            #expect(probe.takeLog() == ["0.0 < INVITE", "0.0 > 403", "0.0 ended INVITE"])
            #expect(probe.layer.serverTransactionCount == 0)
        }
        let tags = try probe.sent.map { try #require($0.message.to?.tag) }
        #expect(Set(tags).count == 1)
        probe.receive(LayerProbe.received(.ack, toTag: tags[0]))
        #expect(probe.takeLog() == [])
        #expect(probe.layer.nextTimeout == nil)
    }

    @Test("other requests likewise", arguments: [SIPMethod.register, .options, .message])
    func others(_ method: SIPMethod) {
        var probe = LayerProbe()
        probe.receive(LayerProbe.received(method))
        refuse(&probe, 405)
        #expect(probe.takeLog().contains("0.0 > 405"))
        #expect(probe.layer.serverTransactionCount == 0)
        #expect(probe.layer.nextTimeout == nil)
    }

    @Test("what was answered already is not refused as well")
    func onlyOneAnswer() {
        var probe = LayerProbe()
        probe.receive(LayerProbe.received(.options))
        probe.respond(200)
        _ = probe.takeLog()
        refuse(&probe, 403)
        #expect(probe.takeLog() == [])
    }

    @Test("a cancelled request may still be refused, and a CANCEL after the refusal finds nothing")
    func cancel() {
        var probe = LayerProbe()
        probe.receive(LayerProbe.received(.invite))
        refuse(&probe, 404)
        _ = probe.takeLog()
        probe.receive(LayerProbe.received(.cancel))
        #expect(probe.takeLog().contains("0.0 > 481"))
    }
}
