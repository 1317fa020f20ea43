import Primitives
import Testing

@testable import SIP

@Suite("Timer heap and transaction table")
struct TransactionTableTests {
    @Test("the heap gives times back in order, equal ones in the order they came")
    func heapOrder() {
        var random = RandomSource.seeded(4)
        var heap = TimerHeap()
        var expected: [(time: Int64, slot: Int)] = []
        for slot in 0..<2000 {
            let time = Int64.random(in: 0..<100, using: &random)
            heap.push(time: MonotonicTime(nanoseconds: time), slot: slot, generation: 0)
            expected.append((time, slot))
        }
        expected.sort { ($0.time, $0.slot) < ($1.time, $1.slot) }
        for entry in expected {
            #expect(heap.first?.slot == entry.slot)
            heap.removeFirst()
        }
        #expect(heap.first == nil)
        heap.removeFirst()
        #expect(heap.count == 0)
    }

    @Test("thousands of transactions that end early leave neither wake-ups nor timers behind")
    func bounded() {
        var layer = TransactionLayer(random: .seeded(1))
        var now = MonotonicTime.zero
        for number in 0..<20_000 {
            now += .microseconds(100)
            let request = LayerProbe.request(.options, callID: "call-\(number)")
            layer.send(request, over: LayerProbe.tcp, sentBy: LayerProbe.via("TCP"), at: now)
            guard case .transmit(let sent, _) = layer.nextAction() else {
                Issue.record("nothing was sent")
                return
            }
            layer.receive(sent.response(status: 200, toTag: "x"), from: LayerProbe.tcp, at: now)
            while layer.nextAction() != nil {}
        }
        #expect(layer.clientTransactionCount == 0)
        #expect(layer.nextTimeout == nil)
        #expect(layer.clients.timerEntries <= 64)
    }

    @Test("thousands of live transactions each keep their own time")
    func manyLive() {
        var layer = TransactionLayer(random: .seeded(1))
        for number in 0..<5000 {
            let request = LayerProbe.request(.options, callID: "call-\(number)")
            layer.send(
                request, over: LayerProbe.tcp, sentBy: LayerProbe.via("TCP"), at: .zero + .milliseconds(number))
        }
        while layer.nextAction() != nil {}
        var failures: [Duration] = []
        while let next = layer.nextTimeout {
            layer.timeout(at: next)
            while let action = layer.nextAction() {
                if case .failed = action { failures.append(next - .zero) }
            }
        }
        #expect(failures == (0..<5000).map { .milliseconds(32_000 + $0) })
        #expect(layer.clients.timerEntries == 0)
    }

    @Test("what a transaction leaves in the indexes goes with it")
    func indexes() {
        var probe = LayerProbe()
        for number in 0..<20 {
            probe.receive(LayerProbe.received(.invite, branch: "z9hG4bK\(number)", callID: "\(number)"))
            probe.respond(number.isMultiple(of: 2) ? 200 : 486)
        }
        #expect(probe.layer.merging.count == 20)
        #expect(probe.layer.acknowledgements.count == 10)
        probe.run(until: 100)
        #expect(probe.layer.serverTransactionCount == 0)
        #expect(probe.layer.merging.isEmpty)
        #expect(probe.layer.acknowledgements.isEmpty)
    }

    @Test("the queue hands out in order and forgets")
    func queue() {
        var queue = FIFO<Int>()
        queue.append(1)
        queue.append(2)
        #expect(queue.next() == 1)
        queue.append(3)
        #expect(queue.next() == 2)
        #expect(queue.next() == 3)
        #expect(queue.next() == nil)
        #expect(queue.isEmpty)
    }
}
