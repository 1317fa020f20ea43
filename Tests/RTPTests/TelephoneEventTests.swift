import Primitives
import Testing

@testable import RTP

@Suite struct TelephoneEventTests {
    @Test func payloadBytes() {
        let event = TelephoneEvent(event: 11, isEnd: true, volume: 10, duration: 0x1234)
        #expect(event.encoded == [11, 0x8A, 0x12, 0x34])
        #expect(TelephoneEvent.parse(event.encoded.span) == event)
        #expect(TelephoneEvent.parse([1, 2, 3].span) == nil)
        #expect(TelephoneEvent.event(for: "#") == 11)
        #expect(TelephoneEvent.event(for: "d") == 15)
        #expect(TelephoneEvent.event(for: "x") == nil)
        #expect(TelephoneEvent.key(for: 10) == "*")
        #expect(TelephoneEvent.key(for: 16) == nil)
    }

    /// Sends the keys as a 20 ms stream, events and audio alike, and gives the events' packets.
    private func packets(_ keys: String, clockRate: Int, duration: Duration = .milliseconds(160)) -> [(
        packet: TelephoneEventSender.Packet, header: RTPHeader, tick: Int
    )] {
        var stream = RTPSender(ssrc: 5, payloadType: 0, clockRate: clockRate, random: .seeded(3))
        var sender = TelephoneEventSender(clockRate: clockRate)
        let taken1 = sender.enqueue(keys, duration: duration)
        #expect(taken1)
        let samples = UInt32(clockRate / 50)
        var sent: [(TelephoneEventSender.Packet, RTPHeader, Int)] = []
        var tick = 0
        while sender.isActive, tick < 10_000 {
            if let packet = sender.tick(timestamp: stream.nextTimestamp, samples: samples) {
                let header = stream.header(payloadType: 101, timestamp: packet.timestamp, marker: packet.marker)
                stream.skip(samples: samples)
                sent.append((packet, header, tick))
            } else {
                _ = stream.header(samples: samples)
            }
            tick += 1
        }
        return sent
    }

    @Test(arguments: [8_000, 48_000])
    func oneKey(clockRate: Int) {
        let sent = packets("5", clockRate: clockRate)
        // 160 ms in 20 ms steps: seven that go on, then the end three times.
        #expect(sent.count == 10)
        #expect(sent.map(\.header.marker) == [true] + [Bool](repeating: false, count: 9))
        #expect(Set(sent.map(\.header.timestamp)).count == 1)
        #expect(sent.map(\.packet.payload.isEnd) == [Bool](repeating: false, count: 7) + [true, true, true])
        let step = clockRate / 50
        #expect(sent.map { Int($0.packet.payload.duration) } == (1...8).map { $0 * step } + [8 * step, 8 * step])
        #expect(zip(sent, sent.dropFirst()).allSatisfy { $1.header.sequenceNumber == $0.header.sequenceNumber &+ 1 })
        #expect(sent.allSatisfy { $0.packet.payload.event == 5 })
    }

    @Test func keysAreApart() {
        let sent = packets("12", clockRate: 8_000)
        #expect(sent.count == 20)
        // 80 ms of audio lie between.
        #expect(sent[10].tick - sent[9].tick == 5)
        #expect(sent[10].header.marker)
        #expect(sent[10].header.timestamp != sent[9].header.timestamp)
    }

    @Test func durationsAreHeldToWhatThePayloadSays() {
        #expect(packets("1", clockRate: 48_000, duration: .seconds(9)).last?.packet.payload.duration == 0xFFFF)
        #expect(packets("1", clockRate: 8_000, duration: .zero).last?.packet.payload.duration == 320)
    }

    @Test func refusesWhatIsNoKeyAndTooMany() {
        var sender = TelephoneEventSender(clockRate: 8_000)
        let taken2 = sender.enqueue("12x")
        #expect(!taken2)
        #expect(!sender.isActive)
        let taken3 = sender.enqueue(String(repeating: "1", count: 128))
        #expect(taken3)
        let taken4 = sender.enqueue("1")
        #expect(!taken4)
    }

    @Test func cancelEndsTheKeyInProgress() {
        var sender = TelephoneEventSender(clockRate: 8_000)
        let taken5 = sender.enqueue("12", duration: .seconds(5))
        #expect(taken5)
        _ = sender.tick(timestamp: 0, samples: 160)
        _ = sender.tick(timestamp: 160, samples: 160)
        sender.cancel(timestamp: 320)
        let ends = (2..<5).compactMap { sender.tick(timestamp: UInt32($0 * 160), samples: 160) }
        #expect(ends.count == 3)
        #expect(ends.allSatisfy { $0.payload.isEnd && $0.payload.duration == 320 })
        #expect(!sender.isActive)
    }

    private func deliver(
        _ sent: [(packet: TelephoneEventSender.Packet, header: RTPHeader, tick: Int)], clockRate: Int
    ) -> [TelephoneEventReceiver.Report] {
        var receiver = TelephoneEventReceiver(clockRate: clockRate)
        var reports: [TelephoneEventReceiver.Report] = []
        for (packet, header, tick) in sent {
            let now = MonotonicTime(nanoseconds: Int64(tick) * 20_000_000)
            if let report = receiver.timeout(at: now) { reports.append(report) }
            reports += receiver.receive(header, payload: packet.payload.encoded.span, at: now)
        }
        if let report = receiver.timeout(at: .distantFuture) { reports.append(report) }
        return reports
    }

    private func keys(_ reports: [TelephoneEventReceiver.Report]) -> String {
        String(
            reports.compactMap { report in
                if case .began(let event) = report { return TelephoneEvent.key(for: event) }
                return nil
            })
    }

    @Test func receivesEachKeyOnce() {
        let reports = deliver(packets("1#1", clockRate: 8_000), clockRate: 8_000)
        #expect(keys(reports) == "1#1")
        #expect(
            reports == [
                .began(event: 1), .ended(event: 1, duration: .milliseconds(160)), .began(event: 11),
                .ended(event: 11, duration: .milliseconds(160)), .began(event: 1),
                .ended(event: 1, duration: .milliseconds(160)),
            ])
    }

    @Test(arguments: 1...40)
    func lossDuplicationAndReorderingDoNotChangeTheKeys(seed: Int) {
        var random = RandomSource.seeded(UInt64(seed))
        let all = "0123456789*#ABCD1122"
        var sent = packets(all, clockRate: 48_000)
        // Up to 30 % lost, but not all ten packets of a key; each may come twice and up to two places late.
        sent = sent.filter { _ in random.unitInterval() > 0.3 }
        sent = sent.flatMap { random.unitInterval() < 0.3 ? [$0, $0] : [$0] }
        for index in sent.indices.dropLast(2) where random.unitInterval() < 0.2 {
            let tick = sent[index].tick
            sent.swapAt(index, index + 2)
            sent[index].tick = tick
        }
        let reports = deliver(sent, clockRate: 48_000)
        #expect(keys(reports) == all)
        let ended = reports.count { if case .ended = $0 { true } else { false } }
        #expect(ended == all.count)
    }

    @Test func aLostEndIsTimedOut() {
        var receiver = TelephoneEventReceiver(clockRate: 8_000)
        let header = RTPHeader(payloadType: 101, sequenceNumber: 1, timestamp: 0, ssrc: 1)
        let payload = TelephoneEvent(event: 3, duration: 800)
        #expect(receiver.nextTimeout == nil)
        let begun = receiver.receive(header, payload: payload.encoded.span, at: .zero)
        #expect(begun == [.began(event: 3)])
        #expect(receiver.nextTimeout == MonotonicTime(nanoseconds: 300_000_000))
        let early = receiver.timeout(at: MonotonicTime(nanoseconds: 299_999_999))
        #expect(early == nil)
        let ended = receiver.timeout(at: MonotonicTime(nanoseconds: 300_000_000))
        #expect(ended == .ended(event: 3, duration: .milliseconds(100)))
        let again = receiver.timeout(at: .distantFuture)
        #expect(again == nil)
        // A straggler of it says nothing new.
        let end = TelephoneEvent(event: 3, isEnd: true, duration: 800)
        let nothing = receiver.receive(header, payload: end.encoded.span, at: .zero)
        #expect(nothing.isEmpty)
    }

    @Test func aLongEventInSegmentsIsOne() {
        var receiver = TelephoneEventReceiver(clockRate: 48_000)
        var reports: [TelephoneEventReceiver.Report] = []
        for (timestamp, duration, isEnd) in [(0, 0xFFFF, false), (0xFFFF, 9_600, false), (0xFFFF, 30_465, true)] {
            let header = RTPHeader(payloadType: 101, sequenceNumber: 1, timestamp: UInt32(timestamp), ssrc: 1)
            let payload = TelephoneEvent(event: 3, isEnd: isEnd, duration: UInt16(duration))
            reports += receiver.receive(header, payload: payload.encoded.span, at: .zero)
        }
        #expect(reports == [.began(event: 3), .ended(event: 3, duration: .seconds(2))])
    }

    @Test func anyPayloadsAreTakenWithoutTrapping() {
        var random = RandomSource.seeded(9)
        var receiver = TelephoneEventReceiver(clockRate: 48_000)
        var count = 0
        for _ in 0..<50_000 {
            let payload = (0..<Int(random.next() % 6)).map { _ in UInt8(truncatingIfNeeded: random.next()) }
            let header = RTPHeader(
                marker: random.next() % 2 == 0, payloadType: 101, sequenceNumber: 0,
                timestamp: random.next() % 4 == 0 ? 5 : UInt32(truncatingIfNeeded: random.next()),
                ssrc: UInt32(random.next() % 2))
            let now = MonotonicTime(nanoseconds: Int64(truncatingIfNeeded: random.next()))
            count += receiver.receive(header, payload: payload.span, at: now).count
            if receiver.timeout(at: now) != nil { count += 1 }
        }
        #expect(count > 1_000)
    }
}
