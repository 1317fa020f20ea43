import Primitives
import SDP
import SIP
import Testing

@testable import Signalling

/// Transfers between three devices through the environment, in simulated time.
struct SimulatedTransferTests {
    /// Alice has called bob, who may be sent elsewhere; carol waits.
    private struct Three {
        let simulation: Simulation
        let alice: SimulatedDevice
        let bob: SimulatedDevice
        let carol: SimulatedDevice
        let call: CallRecord
        let atBob: CallRecord

        init(
            conditions: LinkConditions = .perfect, seed: UInt64 = 1, transport: SIPTransport = .udp,
            accepts: Bool = true
        ) throws {
            simulation = try Simulation(seed: seed)
            alice = try simulation.registered("alice", transport)
            bob = try simulation.registered("bob", transport) { $0.acceptsTransfers = accepts }
            carol = try simulation.registered("carol", transport)
            simulation.answers(bob, after: .milliseconds(200))
            simulation.answers(carol, after: .milliseconds(700))
            simulation.follows(bob)
            call = simulation.call(alice, "bob")
            simulation.run(for: .seconds(2))
            atBob = try #require(bob.records.first)
            try #require(call.isAnswered && atBob.isAnswered)
            simulation.conditions = conditions
        }

        func transfer(to user: String = "carol") {
            simulation.act(alice) {
                $0.transfer(call.handle, to: SIPURI(user: user, host: Simulation.realm), at: $1)
            }
        }
    }

    @Test(arguments: [SIPTransport.udp, .tcp]) func blindTransfer(transport: SIPTransport) throws {
        let three = try Three(transport: transport)
        three.transfer()
        three.simulation.run(for: .seconds(3))
        #expect(
            three.call.events.suffix(4) == ["transferProgress 100", "transferProgress 180", "transferred", "ended"])
        #expect(three.call.reason == .hungUp && three.call.termination?.isLocal == true)
        #expect(three.atBob.events.contains("transferRequested sip:carol@\(Simulation.realm)"))
        #expect(three.atBob.transferRequest?.referredBy?.uri.user == "alice")
        #expect(three.atBob.transferRequest?.isAttended == false)
        #expect(three.atBob.reason == .hungUp)
        let new = try #require(three.bob.transferred.first)
        #expect(new.events.suffix(2) == ["rang", "answered"])
        let atCarol = try #require(three.carol.records.first)
        #expect(atCarol.isAnswered)
        #expect(atCarol.incoming?.from.uri.user == "bob")
        #expect(atCarol.incoming?.replaces == nil)
        // Who asked for the call is said to carol, and both agree on what is sent.
        let invite = try #require(three.bob.sent(.invite).last)
        #expect(invite.referredBy?.uri.user == "alice" && !invite.hasReplaces)
        #expect(new.media.last?.direction == .sendrecv)
        three.simulation.hangUp(three.bob, new)
        three.simulation.expectClean()
        #expect(atCarol.reason == .hungUp)
    }

    @Test func attendedTransfer() throws {
        let three = try Three()
        let simulation = three.simulation
        simulation.act(three.alice) { $0.hold(three.call.handle, at: $1) }
        let consultation = simulation.call(three.alice, "carol")
        simulation.run(for: .seconds(2))
        let atCarol = try #require(three.carol.records.first)
        #expect(atCarol.isAnswered && consultation.isAnswered)
        simulation.answers(three.carol, after: .zero)
        simulation.act(three.alice) { $0.transfer(three.call.handle, to: consultation.handle, at: $1) }
        simulation.run(for: .seconds(3))
        #expect(three.call.events.suffix(2) == ["transferred", "ended"])
        #expect(consultation.reason == .hungUp)
        #expect(three.atBob.transferRequest?.isAttended == true)
        // Carol's call goes over into another one, which did not ring.
        let taken = try #require(three.carol.records.last)
        #expect(taken.incoming?.replaces == atCarol.handle)
        #expect(taken.isAnswered)
        #expect(atCarol.reason == .hungUp)
        let new = try #require(three.bob.transferred.first)
        #expect(new.isAnswered && !new.events.contains("rang"))
        #expect(three.bob.agent.activeCalls == 1 && three.carol.agent.activeCalls == 1)
        #expect(three.alice.agent.activeCalls == 0)
        simulation.hangUp(three.carol, taken)
        simulation.expectClean()
        #expect(new.reason == .hungUp)
    }

    @Test func whatReplacesACallStillCallsWhenItIsGone() throws {
        let three = try Three()
        let simulation = three.simulation
        let consultation = simulation.call(three.alice, "carol")
        simulation.run(for: .seconds(2))
        // Carol hangs up while bob is on the way: nothing rings, and nothing is answered.
        three.bob.onTransfer = { simulation, bob, handle in
            simulation.hangUp(three.carol, three.carol.records[0])
            simulation.after(.milliseconds(100)) {
                let new = simulation.act(bob) { $0.followTransfer(handle, media: bob.media, at: $1) }
                bob.transferred.append(bob.record(new))
            }
        }
        simulation.act(three.alice) { $0.transfer(three.call.handle, to: consultation.handle, at: $1) }
        simulation.run(for: .seconds(3))
        #expect(three.carol.records.count == 1)
        #expect(three.call.events.last == "transferFailed failed")
        #expect(
            three.bob.transferred.first?.termination?.sipStatus == 481
                || three.bob.transferred.first?.termination?.sipStatus == 603)
        #expect(three.call.termination == nil && three.atBob.termination == nil)
        simulation.hangUp(three.alice, three.call)
        simulation.expectClean()
    }

    @Test func transfersAreRefusedUnlessAllowed() throws {
        let three = try Three(accepts: false)
        three.transfer()
        three.simulation.run(for: .seconds(1))
        #expect(three.call.events.last == "transferFailed declined")
        #expect(three.atBob.events.last == "answered")
        #expect(three.call.termination == nil)
        three.simulation.hangUp(three.alice, three.call)
        three.simulation.expectClean()
    }

    @Test(arguments: [("nobody", "noSuchUser"), ("carol", "busy")]) func theCallGoesOnWhenTheNewOneFails(
        target: String, reason: String
    ) throws {
        let three = try Three()
        three.simulation.refuses(three.carol, with: 486)
        three.transfer(to: target)
        three.simulation.run(for: .seconds(3))
        #expect(three.call.events.last == "transferFailed \(reason)")
        #expect(three.call.termination == nil && three.atBob.termination == nil)
        // It can be tried again.
        three.simulation.answers(three.carol, after: .milliseconds(100))
        three.transfer()
        three.simulation.run(for: .seconds(3))
        #expect(three.call.events.suffix(2) == ["transferred", "ended"])
        three.simulation.hangUp(three.bob, try #require(three.bob.transferred.last))
        three.simulation.expectClean()
    }

    @Test func theApplicationDeclines() throws {
        let three = try Three()
        three.bob.onTransfer = { simulation, bob, handle in
            simulation.act(bob) { $0.declineTransfer(handle, at: $1) }
        }
        three.transfer()
        three.simulation.run(for: .seconds(1))
        #expect(three.call.events.last == "transferFailed declined")
        three.simulation.hangUp(three.alice, three.call)
        three.simulation.expectClean()
    }

    @Test func whoSaysNothingIsNotWaitedForForEver() throws {
        let three = try Three()
        three.bob.onTransfer = { _, _, _ in }
        three.transfer()
        three.simulation.run(for: .seconds(310))
        #expect(three.call.events.last == "transferFailed timeout")
        three.simulation.hangUp(three.alice, three.call)
        three.simulation.expectClean()
    }

    @Test func oneTransferAtATime() throws {
        let three = try Three()
        three.transfer()
        three.transfer(to: "nobody")
        #expect(three.call.events.last == "transferFailed failed")
        three.simulation.run(for: .seconds(3))
        #expect(three.call.events.suffix(2) == ["transferred", "ended"])
        three.simulation.hangUp(three.bob, try #require(three.bob.transferred.last))
        three.simulation.expectClean()
    }

    @Test func theTransferorHangsUpAtOnce() throws {
        let three = try Three()
        three.transfer()
        three.simulation.run(for: .milliseconds(100))
        three.simulation.hangUp(three.alice, three.call)
        three.simulation.run(for: .seconds(3))
        #expect(three.atBob.reason == .hungUp)
        let new = try #require(three.bob.transferred.last)
        #expect(new.isAnswered, "bob is on his way all the same")
        three.simulation.hangUp(three.bob, new)
        three.simulation.expectClean()
    }

    @Test func theTransferredSideHangsUpWhileItIsOnItsWay() throws {
        let three = try Three()
        three.transfer()
        three.simulation.run(for: .milliseconds(300))
        three.simulation.hangUp(three.bob, three.atBob)
        three.simulation.run(for: .seconds(3))
        #expect(three.call.events.suffix(2) == ["transferred", "ended"])
        three.simulation.hangUp(three.bob, try #require(three.bob.transferred.last))
        three.simulation.expectClean()
    }

    @Test func aTransferorThatForgetsTheOldCallIsLeft() throws {
        let three = try Three()
        three.transfer()
        // Alice's BYE never leaves; bob's own one ends the call.
        three.simulation.loses = { message, direction in
            if case .toEnvironment(let device) = direction, device === three.alice {
                message.method == .bye
            } else {
                false
            }
        }
        three.simulation.run(for: .seconds(20))
        #expect(three.atBob.termination == nil)
        three.simulation.run(for: .seconds(20))
        #expect(three.atBob.reason == .hungUp && three.atBob.termination?.isLocal == true)
        three.simulation.loses = { _, _ in false }
        three.simulation.hangUp(three.bob, try #require(three.bob.transferred.last))
        three.simulation.expectClean()
    }

    @Test func theLimitOfCallsHoldsForTheNewOne() throws {
        let simulation = try Simulation()
        let alice = try simulation.registered("alice")
        let bob = try simulation.registered("bob") {
            $0.acceptsTransfers = true
            $0.maximumCalls = 1
        }
        _ = try simulation.registered("carol")
        simulation.answers(bob, after: .zero)
        simulation.follows(bob)
        let call = simulation.call(alice, "bob")
        simulation.run(for: .seconds(1))
        simulation.act(alice) { $0.transfer(call.handle, to: SIPURI(user: "carol", host: Simulation.realm), at: $1) }
        simulation.run(for: .seconds(1))
        #expect(call.events.last == "transferFailed failed")
        #expect(call.termination == nil)
        simulation.hangUp(alice, call)
        simulation.expectClean()
    }

    @Test(arguments: 1...12) func transferOverABadNetwork(seed: UInt64) throws {
        let three = try Three(conditions: .bad, seed: seed)
        three.transfer()
        three.simulation.run(for: .seconds(60))
        #expect(three.call.reason == .hungUp, "\(three.call.events)")
        #expect(three.call.events.contains("transferred"))
        let new = try #require(three.bob.transferred.first)
        #expect(new.isAnswered, "\(new.events)")
        three.simulation.hangUp(three.bob, new)
        three.simulation.expectClean(within: .seconds(70))
    }

    @Test func keysByInfo() throws {
        let three = try Three()
        three.simulation.act(three.alice) { $0.sendKeys("12#", in: three.call.handle, at: $1) }
        three.simulation.run(for: .seconds(1))
        #expect(three.atBob.events.suffix(3) == ["key 1", "key 2", "key #"])
        #expect(three.call.events.last == "keysSent")
        three.simulation.hangUp(three.alice, three.call)
        three.simulation.expectClean()
    }
}
