import DNS
import Primitives
import Testing

@testable import SIP

/// Name servers that never answer one kind of question must not make everybody wait.
@Suite struct LocatorPatienceTests {
    private let zone = Zone([
        "_sips._tcp.example.com SRV 1 1 5061 sip1.example.com.",
        "_sips._tcp.example.com SRV 2 1 5061 sip2.example.com.",
        "sip1.example.com A 192.0.2.1", "sip1.example.com AAAA 2001:db8::1", "sip2.example.com A 192.0.2.2",
    ])

    /// Answers all that is asked except what `isLost`; returns what was asked.
    private func answer(
        _ locator: inout ServerLocator, except isLost: (DNSQuestion) -> Bool = { _ in false }
    ) -> ServerLocator.Action? {
        var batch: [DNSQuestion] = []
        while let action = locator.nextAction() {
            guard case .ask(let question) = action else { return action }
            batch.append(question)
        }
        for question in batch where !isLost(question) { locator.receive(zone.answer(question), to: question) }
        return nil
    }

    private func places(_ action: ServerLocator.Action?) -> [String] {
        guard case .found(let candidates) = action else { return [] }
        return candidates.map(\.address.host)
    }

    @Test func naptrIsNotWaitedForLongWhenThereAreServices() {
        var locator = ServerLocator(
            target: ServerTarget(host: "example.com"), random: .seeded(1), history: ServerHistory(), at: .zero)
        #expect(locator.patience == nil)
        #expect(answer(&locator) { $0.type == .naptr } == nil)
        #expect(locator.patience == .seconds(1))
        #expect(locator.nextAction() == nil)
        locator.proceed()
        #expect(answer(&locator) == nil)
        #expect(places(answer(&locator)) == ["2001:db8::1", "192.0.2.1", "192.0.2.2"])
        #expect(locator.patience == nil)
    }

    @Test func servicesAreWaitedFor() {
        for type in [DNSQuestion.RecordType.srv, .naptr] {
            // Without any SRV record there is no telling whether NAPTR would have had some.
            var locator = ServerLocator(
                target: ServerTarget(host: "other.example"), random: .seeded(1), history: ServerHistory(), at: .zero)
            #expect(answer(&locator) { $0.type == type } == nil)
            #expect(locator.patience == nil)
            locator.proceed()
            #expect(locator.nextAction() == nil, "still waiting")
        }
    }

    @Test(arguments: [DNSQuestion.RecordType.a, .aaaa])
    func theOtherFamilyIsNotWaitedForLong(_ lost: DNSQuestion.RecordType) {
        var locator = ServerLocator(
            target: ServerTarget(host: "example.com"), random: .seeded(1), history: ServerHistory(), at: .zero)
        #expect(answer(&locator) == nil)
        #expect(answer(&locator) { $0.type == lost } == nil)
        #expect(locator.patience == .milliseconds(200))
        locator.proceed()
        #expect(places(locator.nextAction()) == (lost == .a ? ["2001:db8::1"] : ["192.0.2.1", "192.0.2.2"]))
    }

    @Test func theFirstServersAddressIsNeeded() {
        var locator = ServerLocator(
            target: ServerTarget(host: "example.com"), random: .seeded(1), history: ServerHistory(), at: .zero)
        #expect(answer(&locator) == nil)
        #expect(answer(&locator) { $0.name.hasPrefix("sip1") } == nil)
        #expect(locator.patience == nil)
        locator.receive(.failed(.timedOut), to: DNSQuestion("sip1.example.com.", .aaaa))
        locator.receive(.failed(.timedOut), to: DNSQuestion("sip1.example.com.", .a))
        #expect(places(locator.nextAction()) == ["192.0.2.2"])
    }

    @Test func lateAnswersDoNothing() {
        var locator = ServerLocator(
            target: ServerTarget(host: "example.com"), random: .seeded(1), history: ServerHistory(), at: .zero)
        #expect(answer(&locator) == nil)
        #expect(answer(&locator) { $0.type == .aaaa } == nil)
        locator.proceed()
        #expect(places(locator.nextAction()) == ["192.0.2.1", "192.0.2.2"])
        locator.receive(.records([.address("2001:db8::1")]), to: DNSQuestion("sip1.example.com.", .aaaa))
        locator.proceed()
        #expect(locator.nextAction() == nil && locator.patience == nil)
    }
}
