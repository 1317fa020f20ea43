import Primitives
import SIP
import Testing

/// Answers that come late, twice, to somebody else or not at all, through the transaction layer as in life.
@Suite("Silent registrars")
struct SilentRegistrarTests {
    /// A registration over its own transactions, both in simulated time.
    private struct World {
        var machine: RegistrationMachine
        var layer = TransactionLayer(timers: SIPTimerSettings(), random: .seeded(4))
        let flow: SIPFlow
        var now = MonotonicTime.zero
        var current: TransactionID?
        /// What went over the wire, and when.
        var sent: [(time: Double, message: SIPMessage)] = []
        var log: [String] = []

        init(_ transport: SIPTransport = .tcp) {
            flow = SIPFlow(transport: transport, remote: TransportAddress(host: "198.51.100.1", port: 5060))
            machine = RegistrationMachine(configuration: RegistrationProbe.configuration(), random: .seeded(9))
            machine.start(at: now)
            settle()
        }

        mutating func settle() {
            var isSettled = false
            while !isSettled {
                isSettled = true
                while let action = machine.nextAction() {
                    isSettled = false
                    switch action {
                    case .send(let request):
                        let via = SIPVia(
                            transport: flow.transport.viaName, host: "198.51.100.7", port: 5070, branch: "")
                        current = layer.send(request, over: flow, sentBy: via, at: now)
                    case .registered: log.append("registered")
                    case .failed(let failure, _): log.append("failed \(failure.kind)")
                    default: log.append("other")
                    }
                }
                while let action = layer.nextAction() {
                    isSettled = false
                    switch action {
                    case .transmit(let message, _): sent.append(((now - .zero).seconds, message))
                    case .response(let response, let id, _) where id == current: machine.receive(response, at: now)
                    case .failed(let id, _, let failure) where id == current: machine.requestFailed(failure, at: now)
                    default: break
                    }
                }
            }
        }

        mutating func receive(_ response: SIPMessage) {
            layer.receive(response, from: flow, at: now)
            settle()
        }

        mutating func run(for seconds: Double) {
            let end = now + .nanoseconds(Int64(seconds * 1e9))
            var steps = 0
            while let next = [machine.nextTimeout, layer.nextTimeout].compactMap({ $0 }).min(), next <= end,
                steps < 10_000
            {
                steps += 1
                now = max(now, next)
                layer.timeout(at: now)
                machine.timeout(at: now)
                settle()
            }
            now = end
        }

        func answer(_ status: Int, to index: Int) -> SIPMessage {
            var response = sent[index].message.response(status: status, toTag: "r")
            if status == 200 { response.headers["Expires"] = "600" }
            return response
        }
    }

    @Test(
        "silence: given up after 32 s, tried again within the second, and so on", arguments: [SIPTransport.udp, .tcp])
    func silence(transport: SIPTransport) throws {
        var world = World(transport)
        world.run(for: 33.1)
        #expect(world.log == ["failed timeout"])
        let branches = Set(world.sent.compactMap { $0.message.vias.first?.branch })
        #expect(branches.count == 2)
        #expect((32.5...33.0).contains(try #require(world.sent.first { $0.message.cseq?.number == 2 }).time))
        #expect(transport == .udp ? world.sent.count > 10 : world.sent.count == 2)
    }

    @Test("100 and nothing more is silence, too")
    func provisionalOnly() {
        var world = World()
        world.receive(world.answer(100, to: 0))
        #expect(world.log == [])
        world.run(for: 33.1)
        #expect(world.log == ["failed timeout"])
        #expect(world.sent.count == 2)
    }

    @Test("an answer that comes when it was given up counts no more; the next request's does")
    func late() {
        var world = World()
        world.run(for: 33.1)
        world.receive(world.answer(200, to: 0))
        #expect(world.log == ["failed timeout"])
        world.receive(world.answer(200, to: 1))
        #expect(world.log == ["failed timeout", "registered"])
    }

    @Test("the same 200 ten times is one registration")
    func duplicates() {
        var world = World(.udp)
        for _ in 0..<10 { world.receive(world.answer(200, to: 0)) }
        #expect(world.log == ["registered"])
        #expect(world.sent.count == 1)
    }

    @Test("a response for another call or another request changes nothing")
    func foreign() {
        var world = World()
        var other = world.answer(200, to: 0)
        other.callID = "somebody else's"
        world.receive(other)
        other = world.answer(403, to: 0)
        other.cseq = SIPCSeq(number: 77, method: .register)
        world.receive(other)
        other = world.answer(403, to: 0)
        other.cseq = SIPCSeq(number: 1, method: .invite)
        world.receive(other)
        #expect(world.log == [])
        world.receive(world.answer(200, to: 0))
        #expect(world.log == ["registered"])
    }

    @Test("an hour of silence in the middle of a registration: lost when it lapses, back with the first answer")
    func outage() {
        var world = World()
        world.receive(world.answer(200, to: 0))
        world.run(for: 3600)
        #expect(world.sent.count > 10)
        #expect(world.machine.state == .waiting || world.machine.state == .registering)
        for _ in 0..<40 where world.machine.state != .registered {
            world.run(for: 10)
            world.receive(world.answer(200, to: world.sent.count - 1))
        }
        #expect(world.machine.state == .registered)
        #expect(world.log.last == "registered")
    }
}
