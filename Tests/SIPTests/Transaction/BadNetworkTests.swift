import Primitives
import SIP
import Testing

/// What both users of a simulated run saw.
private final class Ledger {
    var requests = 0
    var acks = 0
    var cancelled = 0
    var responses: [Int] = []
    var failures: [TransactionFailure] = []
    var ended: [TransactionID: Int] = [:]
    var invite: TransactionID?
}

@Suite("Transactions over a bad network")
struct BadNetworkTests {
    private static let conditions = [
        LinkConditions(),
        LinkConditions(loss: 0.3),
        LinkConditions(duplication: 0.5),
        LinkConditions(delay: .milliseconds(1) ... .milliseconds(3000)),
        LinkConditions(loss: 0.25, duplication: 0.3, delay: .milliseconds(5) ... .milliseconds(900)),
    ]

    private func link(
        _ seed: UInt64, _ conditions: LinkConditions, _ ledger: Ledger, isReliable: Bool = false,
        answer: @escaping (SIPMessage, TransactionID, inout SimulatedLink) -> Void
    ) -> SimulatedLink {
        var link = SimulatedLink(seed: seed, conditions: conditions, isReliable: isReliable)
        link.user = { side, action, link in
            switch action {
            case .transmit, .strayResponse: break
            case .request(let request, let id, _):
                ledger.requests += 1
                answer(request, id, &link)
            case .response(let response, _, _): ledger.responses.append(response.status ?? 0)
            case .ack: ledger.acks += 1
            case .cancelled(let invite, _):
                ledger.cancelled += 1
                ledger.invite = invite
            case .failed(_, _, let failure): ledger.failures.append(failure)
            case .terminated(let id): ledger.ended[id, default: 0] += 1
            }
        }
        return link
    }

    @Test("another request is served once, answered once, and everything ends", arguments: conditions.indices)
    func nonInvite(index: Int) {
        var timeouts = 0
        for seed in 0..<60 as Range<UInt64> {
            let ledger = Ledger()
            var link = link(seed, Self.conditions[index], ledger) { request, id, link in
                link.after(.milliseconds(30)) { $0.respond(request.response(status: 200, toTag: "b"), in: id) }
            }
            _ = link.send(LayerProbe.request(.message))
            let isQuiet = link.run()
            #expect(isQuiet)
            #expect(ledger.requests <= 1)
            #expect(ledger.responses == [200] || (ledger.responses.isEmpty && ledger.failures == [.timeout]))
            #expect(ledger.ended.values.allSatisfy { $0 == 1 })
            #expect(link.client.clientTransactionCount == 0 && link.server.serverTransactionCount == 0)
            timeouts += ledger.failures.count
        }
        // Eleven requests with 0.7² chance of a round trip each do not all get lost in sixty runs.
        #expect(timeouts == 0)
    }

    @Test("a refused INVITE is reported once and acknowledged, and everything ends", arguments: conditions.indices)
    func refusedInvite(index: Int) {
        var unacknowledged = 0
        for seed in 100..<160 as Range<UInt64> {
            let ledger = Ledger()
            var link = link(seed, Self.conditions[index], ledger) { request, id, link in
                link.respond(request.response(status: 180, toTag: "b"), in: id)
                link.after(.seconds(3)) { $0.respond(request.response(status: 486, toTag: "b"), in: id) }
            }
            _ = link.send(LayerProbe.request(.invite))
            let isQuiet = link.run()
            #expect(isQuiet)
            #expect(ledger.requests == 1)
            #expect(ledger.acks == 0)
            #expect(ledger.responses.filter { $0 == 486 }.count == 1)
            #expect(ledger.responses.allSatisfy { [100, 180, 486].contains($0) })
            #expect(ledger.ended.count == 2)
            #expect(ledger.ended.values.allSatisfy { $0 == 1 })
            unacknowledged += ledger.failures.filter { $0 == .ackTimeout }.count
        }
        #expect(unacknowledged == 0)
    }

    @Test("an accepted INVITE reaches the caller and its ACK the callee", arguments: conditions.indices)
    func acceptedInvite(index: Int) {
        for seed in 200..<260 as Range<UInt64> {
            let ledger = Ledger()
            var link = link(seed, Self.conditions[index], ledger) { request, id, link in
                var response = request.response(status: 200, toTag: "b")
                response.contacts = [SIPAddress(uri: SIPURI(user: "bob", host: "192.0.2.2"))]
                Self.repeatUntilAcknowledged(response, id, ledger, .milliseconds(500), &link)
            }
            let user = link.user
            link.user = { side, action, link in
                user(side, action, &link)
                if case .response(let response, _, _) = action, response.status == 200 {
                    var ack = LayerProbe.request(.ack, toTag: "b")
                    ack.cseq = SIPCSeq(number: 1, method: .ack)
                    link.client.sendStateless(ack, over: link.flow(from: .client), sentBy: LayerProbe.via())
                }
            }
            _ = link.send(LayerProbe.request(.invite))
            let isQuiet = link.run()
            #expect(isQuiet)
            #expect(ledger.requests == 1)
            #expect(ledger.responses.contains(200))
            #expect(ledger.acks >= 1)
            #expect(ledger.failures.isEmpty)
            #expect(link.client.clientTransactionCount == 0 && link.server.serverTransactionCount == 0)
        }
    }

    /// What a user agent does with its 2xx (RFC 3261 section 13.3.1.4).
    private static func repeatUntilAcknowledged(
        _ response: SIPMessage, _ id: TransactionID, _ ledger: Ledger, _ interval: Duration, _ link: inout SimulatedLink
    ) {
        guard ledger.acks == 0, link.now < .zero + .seconds(40) else { return }
        link.respond(response, in: id)
        link.after(interval) {
            repeatUntilAcknowledged(response, id, ledger, min(interval * 2, .seconds(4)), &$0)
        }
    }

    @Test("a CANCEL reaches the callee once, the caller gets 487 or gives up", arguments: conditions.indices)
    func cancelled(index: Int) {
        var lost = 0
        for seed in 300..<360 as Range<UInt64> {
            let ledger = Ledger()
            var pending: SIPMessage?
            var link = link(seed, Self.conditions[index], ledger) { request, id, link in
                pending = request
                link.respond(request.response(status: 180, toTag: "b"), in: id)
                link.after(.seconds(120)) { $0.respond(request.response(status: 480, toTag: "b"), in: id) }
            }
            let user = link.user
            link.user = { side, action, link in
                user(side, action, &link)
                if case .cancelled(let invite, _) = action, let request = pending {
                    link.respond(request.response(status: 487, toTag: "b"), in: invite)
                }
            }
            let invite = link.send(LayerProbe.request(.invite))
            link.after(.seconds(1)) { link in
                link.cancel(invite)
            }
            let isQuiet = link.run()
            #expect(isQuiet)
            if ledger.responses.isEmpty {
                // Nothing came through for 32 s, so that no CANCEL could be sent.
                #expect(ledger.cancelled == 0)
                #expect(ledger.failures.first == .timeout)
                lost += 1
            } else {
                #expect(ledger.cancelled == 1)
                #expect(ledger.responses.filter { $0 >= 300 } == [487])
                #expect(ledger.failures.isEmpty)
            }
            #expect(link.client.clientTransactionCount == 0 && link.server.serverTransactionCount == 0)
        }
        #expect(lost <= 2)
    }

    @Test("a reliable transport carries each message once")
    func reliable() {
        let ledger = Ledger()
        var link = link(1, LinkConditions(loss: 0.5, duplication: 0.5), ledger, isReliable: true) { request, id, link in
            link.after(.milliseconds(100)) { $0.respond(request.response(status: 486, toTag: "b"), in: id) }
        }
        _ = link.send(LayerProbe.request(.invite))
        let isQuiet = link.run()
        #expect(isQuiet)
        #expect(link.sentCount == 3)
        #expect(ledger.responses == [486])
        #expect(link.now == .zero + .milliseconds(103))
    }
}
