import Primitives
import SIP
import Testing

@testable import Signalling

/// Who is tried when and who wins, in simulated time.
@Suite struct ConnectionRaceTests {
    /// What happens to one candidate.
    private enum Fate {
        case opens(after: Duration)
        case fails(after: Duration)
        case never
    }

    private struct Outcome: Equatable {
        /// When each candidate was started, in milliseconds.
        var starts: [Int: Int] = [:]
        var abandoned: [Int] = []
        var winner: Int?
        var end = 0
    }

    private static func candidate(
        _ address: String, server: String = "sip.example.com", transport: SIPTransport = .tls, port: UInt16 = 5061
    ) -> ServerCandidate {
        ServerCandidate(
            transport: transport, address: TransportAddress(host: address, port: port), server: server,
            domain: "example.com")
    }

    private let twoWays = [candidate("2001:db8::1"), candidate("192.0.2.1")]
    private let twoServers = [
        candidate("192.0.2.1", server: "sip1.example.com"), candidate("192.0.2.2", server: "sip2.example.com"),
    ]

    private func run(_ candidates: [ServerCandidate], _ fates: [Fate]) -> Outcome {
        var outcome = Outcome()
        var now = MonotonicTime(nanoseconds: 1_000)
        let start = now
        var race = ConnectionRace(candidates, at: now)
        var events: [(time: MonotonicTime, index: Int, opens: Bool)] = []
        let milliseconds = { (time: MonotonicTime) in Int((time - start).milliseconds.rounded()) }
        while true {
            while let action = race.nextAction() {
                switch action {
                case .open(let index):
                    outcome.starts[index] = milliseconds(now)
                    switch fates[index] {
                    case .opens(let delay): events.append((now + delay, index, true))
                    case .fails(let delay): events.append((now + delay, index, false))
                    case .never: break
                    }
                case .abandon(let index): outcome.abandoned.append(index)
                case .won(let index): outcome.winner = index
                case .lost: break
                }
            }
            // An abandoned attempt may still report: the machine must not care.
            let event = events.enumerated().min { $0.element.time < $1.element.time }
            guard let deadline = race.nextTimeout else {
                for event in events {
                    if event.opens { race.opened(event.index) } else { race.failed(event.index, at: event.time) }
                    #expect(race.nextAction() == nil)
                }
                outcome.end = milliseconds(now)
                return outcome
            }
            if let event, event.element.time <= deadline {
                events.remove(at: event.offset)
                now = event.element.time
                if event.element.opens {
                    race.opened(event.element.index)
                } else {
                    race.failed(event.element.index, at: now)
                }
            } else {
                now = deadline
                race.timeout(at: now)
            }
        }
    }

    @Test func theFirstIsFastEnough() {
        let outcome = run(twoWays, [.opens(after: .milliseconds(249)), .never])
        #expect(outcome == Outcome(starts: [0: 0], winner: 0, end: 249))
    }

    @Test func theSecondWayStartsAfterAQuarterOfASecond() {
        let outcome = run(twoWays, [.never, .opens(after: .milliseconds(40))])
        #expect(outcome == Outcome(starts: [0: 0, 1: 250], abandoned: [0], winner: 1, end: 290))
    }

    @Test func theFirstMayStillWin() {
        let outcome = run(twoWays, [.opens(after: .milliseconds(300)), .opens(after: .milliseconds(90))])
        #expect(outcome == Outcome(starts: [0: 0, 1: 250], abandoned: [1], winner: 0, end: 300))
    }

    @Test func aFailureStartsTheNextAtOnce() {
        let outcome = run(twoWays, [.fails(after: .milliseconds(3)), .opens(after: .milliseconds(40))])
        #expect(outcome == Outcome(starts: [0: 0, 1: 3], winner: 1, end: 43))
    }

    @Test func aFailureAfterTheDelayChangesNothing() {
        let outcome = run(twoWays, [.fails(after: .milliseconds(260)), .opens(after: .milliseconds(40))])
        #expect(outcome == Outcome(starts: [0: 0, 1: 250], winner: 1, end: 290))
    }

    @Test func delaysAreCountedFromEachStart() {
        let ways = ["2001:db8::1", "192.0.2.1", "2001:db8::2", "192.0.2.2"].map { Self.candidate($0) }
        let outcome = run(ways, [.never, .fails(after: .milliseconds(100)), .never, .opens(after: .milliseconds(10))])
        #expect(outcome.starts == [0: 0, 1: 250, 2: 350, 3: 600])
        #expect(outcome.winner == 3 && outcome.abandoned == [0, 2])
    }

    @Test func anotherServerWaitsUntilTheFirstHasFailed() {
        let slow = run(twoServers, [.opens(after: .seconds(3)), .opens(after: .zero)])
        #expect(slow == Outcome(starts: [0: 0], winner: 0, end: 3_000))
        let dead = run(twoServers, [.fails(after: .seconds(4)), .opens(after: .milliseconds(20))])
        #expect(dead == Outcome(starts: [0: 0, 1: 4_000], winner: 1, end: 4_020))
    }

    @Test func anotherServerWaitsForAllWaysToTheFirst() {
        let candidates = twoWays + [Self.candidate("192.0.2.9", server: "sip2.example.com")]
        let outcome = run(
            candidates,
            [.fails(after: .milliseconds(10)), .fails(after: .milliseconds(500)), .opens(after: .milliseconds(1))])
        #expect(outcome.starts == [0: 0, 1: 10, 2: 510])
        #expect(outcome.winner == 2)
        let late = run(candidates, [.fails(after: .seconds(4)), .fails(after: .seconds(1)), .opens(after: .zero)])
        #expect(late.starts == [0: 0, 1: 250, 2: 4_000])
    }

    @Test func otherTransportsAndPortsAreOtherServers() {
        for other in [
            Self.candidate("192.0.2.1", transport: .tcp), Self.candidate("192.0.2.1", port: 5062),
        ] {
            let outcome = run([twoWays[0], other], [.opens(after: .seconds(1)), .opens(after: .zero)])
            #expect(outcome.starts == [0: 0])
        }
    }

    @Test func datagramsDoNotRace() {
        let ways = ["2001:db8::1", "192.0.2.1"].map { Self.candidate($0, transport: .udp) }
        #expect(run(ways, [.opens(after: .zero), .never]) == Outcome(starts: [0: 0], winner: 0, end: 0))
        #expect(
            run(ways, [.fails(after: .zero), .opens(after: .zero)])
                == Outcome(starts: [0: 0, 1: 0], winner: 1, end: 0))
    }

    @Test func allFail() {
        let outcome = run(twoWays + twoServers, [Fate](repeating: .fails(after: .milliseconds(5)), count: 4))
        #expect(outcome == Outcome(starts: [0: 0, 1: 5, 2: 10, 3: 15], end: 20))
    }

    @Test func nobodyWaitsLongerThanTheLimit() {
        let outcome = run(twoWays + twoServers, [Fate](repeating: .never, count: 4))
        #expect(outcome.starts == [0: 0, 1: 250])
        #expect(outcome.abandoned == [0, 1] && outcome.winner == nil)
        #expect(outcome.end == Int(ConnectionRace.timeLimit.milliseconds))
        // Each takes its time, and not all come to their turn.
        let many = (0..<20).map { Self.candidate("192.0.2.\($0)", server: "s\($0)") }
        let slow = run(many, [Fate](repeating: .fails(after: .seconds(4)), count: 20))
        #expect(slow.starts.count == 8 && slow.end == 30_000)
    }

    @Test func nobodyToTry() {
        #expect(run([], []) == Outcome())
        var race = ConnectionRace([], at: .zero)
        #expect(race.nextAction() == .lost)
    }

    @Test func strayReportsDoNothing() {
        var race = ConnectionRace(twoServers, at: .zero)
        #expect(race.nextAction() == .open(0))
        race.opened(1)
        race.failed(1, at: .zero)
        race.opened(99)
        race.failed(-1, at: .zero)
        #expect(race.nextAction() == nil)
        race.failed(0, at: .zero)
        race.failed(0, at: .zero)
        #expect(race.nextAction() == .open(1) && race.nextAction() == nil)
    }
}
