import Primitives
import SIP
import SinchEnvironment
import Testing

/// Whatever arrives, in whatever order: nothing traps, everything sent can be printed, and in the end nothing is left.
@Suite struct MutationTests {
    @Test(arguments: 1...8 as ClosedRange<UInt64>) func mutatedMessagesNeverTrap(seed: UInt64) throws {
        var world = try World(seed: seed) {
            $0.limits.messagesPerSource = RateLimit(perSecond: 1_000_000, burst: 1_000_000)
            $0.limits.callsPerSource = RateLimit(perSecond: 1_000_000, burst: 1_000_000)
        }
        var random = RandomSource.seeded(seed &* 31)
        var alice = try world.registered("alice", port: 40_001)
        var bob = try world.registered("bob", .tcp, port: 40_002)
        let other = try world.registered("bob", port: 40_003)
        let flows = [alice.flow, bob.flow, other.flow]
        var corpus: [(bytes: [UInt8], flow: SIPFlow)] = []
        var relayed = (requests: 0, responses: 0)
        for round in 0..<800 {
            if round % 5 == 0 {
                // Something sound to work on, and registrations that an earlier failure took away.
                corpus.append((try alice.request(.invite, to: "bob").encoded(), alice.flow))
                corpus.append((try bob.request(.message, to: "alice").encoded(), bob.flow))
                for register in [
                    (alice.register(token: try world.token(for: alice)), alice.flow),
                    (bob.register(token: try world.token(for: bob)), bob.flow),
                ] {
                    corpus.append((try register.0.encoded(), register.1))
                    world.core.receive(register.0, from: register.1, at: world.now, unixTime: world.unixTime)
                }
            }
            // Mostly something recent: answers to what is still in progress.
            let recent = corpus.suffix(random.next() % 3 == 0 ? corpus.count : 12)
            guard var (bytes, flow) = recent.randomElement(using: &random) else { continue }
            for _ in 0..<Int(random.next() % 3) {
                let other = corpus.randomElement(using: &random)?.bytes ?? []
                Self.mutate(&bytes, with: other, &random)
            }
            if random.next() % 6 == 0 { flow = flows[Int(random.next() % 3)] }
            do throws(SIPParseError) {
                let message = try SIPMessage.parse(bytes)
                world.core.receive(message, from: flow, at: world.now, unixTime: world.unixTime)
            } catch {
                world.core.receiveMalformed(bytes, error: error, from: flow, at: world.now)
            }
            while let action = world.core.nextAction() {
                guard case .send(let message, let target) = action, let sent = try? message.encoded() else { continue }
                // What it sends comes back: requests answered, responses as they are, from where they went.
                corpus.append((sent, target))
                if !message.isRequest && message.headers.contains("X-Answer") { relayed.responses += 1 }
                guard message.isRequest, message.method != .ack else { continue }
                if message.vias.count > 1 { relayed.requests += 1 }
                let statuses = [100, 180, 183, 200, 200, 302, 401, 486, 487, 503, 603]
                var answer = bob.response(statuses[Int(random.next() % 11)], to: message)
                answer.headers.append("X-Answer", "yes")
                if let bytes = try? answer.encoded() { corpus += [(bytes, target), (bytes, target), (bytes, target)] }
            }
            if corpus.count > 400 { corpus.removeFirst(corpus.count - 400) }
            if random.next() % 8 == 0 { try Self.pass(.milliseconds(Int(random.next() % 3_000)), &world) }
            if random.next() % 64 == 0 { world.core.flowFailed(flow, reason: "x", at: world.now) }
        }
        // Not all was refused at the door.
        #expect(relayed.requests > 50 && relayed.responses > 5, "\(relayed)")
        try Self.pass(.seconds(4_000), &world)
        #expect(world.core.forwardingCount == 0)
        #expect(world.core.registrationCount == 0)
        #expect(world.core.nextTimeout == nil)
    }

    /// Like `World.advance`, but what is sent goes nowhere.
    private static func pass(_ duration: Duration, _ world: inout World) throws {
        let end = world.now + duration
        while let next = world.core.nextTimeout, next <= end {
            world.now = max(world.now, next)
            world.core.timeout(at: world.now)
            while world.core.nextAction() != nil {}
        }
        world.now = end
    }

    private static func mutate(_ bytes: inout [UInt8], with other: [UInt8], _ random: inout RandomSource) {
        guard !bytes.isEmpty else { return }
        let place = Int(random.next() % UInt64(bytes.count))
        switch random.next() % 6 {
        case 0: bytes[place] = UInt8(truncatingIfNeeded: random.next())
        case 1: bytes.remove(at: place)
        case 2: bytes.insert(Array(";,:<>\"@%\r\n 0=".utf8)[Int(random.next() % 13)], at: place)
        case 3:
            // A line twice, or moved.
            let lines = bytes.split(separator: 0x0A, omittingEmptySubsequences: false)
            let from = Int(random.next() % UInt64(lines.count))
            let to = Int(random.next() % UInt64(lines.count))
            var changed = lines
            changed.insert(lines[from], at: to)
            bytes = Array(changed.joined(separator: [0x0A]))
        case 4:
            // The start of one message, the end of another.
            guard !other.isEmpty else { return }
            bytes = Array(bytes[..<place]) + other[Int(random.next() % UInt64(other.count))...]
        default:
            // A number to the limit.
            let digits = UInt8(ascii: "0")...UInt8(ascii: "9")
            guard let start = bytes[place...].firstIndex(where: digits.contains) else { return }
            let end = bytes[start...].firstIndex { !digits.contains($0) } ?? bytes.endIndex
            let numbers = ["0", "-1", "4294967296", "99999999999999999999", "2147483648", "65536", "255"]
            let number = numbers[Int(random.next() % UInt64(numbers.count))]
            bytes.replaceSubrange(start..<end, with: Array(number.utf8))
        }
    }
}
