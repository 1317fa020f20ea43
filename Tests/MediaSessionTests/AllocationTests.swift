import Audio
import CSys
import Glibc
import Primitives
import RTP
import SDP
import Testing

@testable import MediaSession

/// Tells whether this thread allocated anything of up to a kilobyte, without replacing the allocator.
///
/// glibc keeps what a thread frees in lists of its own, one for each size, and hands out the latest first. So a freed
/// block of each size is marked where it lies, and an allocation of that size, however short, writes over the mark:
/// Swift's objects have their count and fields there.
private struct HeapWatch: ~Copyable {
    private static let marker: UInt64 = 0x5EED_F00D_CAFE_0001
    private var blocks: [(size: Int, mark: UnsafeMutablePointer<UInt64>)] = []

    init() {
        // The usable sizes of all lists: 24, 40, …, 1032 bytes. Room first, so that the array does not grow later.
        blocks.reserveCapacity(64)
        for size in stride(from: 24, through: 1_032, by: 16) {
            guard let block = malloc(size) else { continue }
            blocks.append((size, (block + 16).assumingMemoryBound(to: UInt64.self)))
        }
        for block in blocks { free(UnsafeMutableRawPointer(block.mark) - 16) }
        for block in blocks { block.mark.pointee = Self.marker }
    }

    /// The sizes, rounded up, of which something was allocated since.
    func allocatedSizes() -> [Int] {
        // Looks first: collecting the sizes allocates.
        var bits: UInt64 = 0
        for index in 0..<blocks.count where blocks[index].mark.pointee != Self.marker {
            bits |= 1 << UInt64(index)
        }
        return blocks.indices.filter { bits >> UInt64($0) & 1 == 1 }.map { blocks[$0].size }
    }
}

/// AddressSanitizer has an allocator of its own, and rightly objects to marks in freed memory.
private let hasSystemAllocator = dlsym(nil, "__asan_init") == nil

@Suite(.enabled(if: hasSystemAllocator)) struct AllocationTests {
    @Test func theWatchSeesAnObject() {
        let watch = HeapWatch()
        var sum = 0
        for _ in 0..<4 { sum &+= [Int](repeating: sum, count: 20 + Int(csys_thread_id() & 1)).count }
        let sizes = watch.allocatedSizes()
        #expect(sum > 0)
        #expect(!sizes.isEmpty)
    }

    @Test func theWatchIsCalmWhenNothingHappens() {
        let watch = HeapWatch()
        #expect(watch.allocatedSizes().isEmpty)
    }

    @Test(arguments: [Agreement.opus, Agreement.pcmu, Agreement.pcma]) func theSteadyStateDoesNotAllocate(
        _ codec: AudioCodec
    ) throws {
        let (simulation, near, far) = try Simulation.pair(
            codec: codec, source: ToneSource(frequency: 300), farSource: ToneSource(frequency: 500))
        simulation.run(.milliseconds(500))
        var now = simulation.now
        let streams = (near.stream, far.stream)
        let sent = near.stream.snapshot(at: now).packetsSent
        // The first report, which may allocate, is due after a second.
        let watch = HeapWatch()
        for _ in 0..<40 {
            now += .milliseconds(10)
            streams.0.receive(isControl: false, at: now)
            streams.1.receive(isControl: false, at: now)
            _ = streams.0.process(at: now)
            _ = streams.1.process(at: now)
        }
        let sizes = watch.allocatedSizes()
        #expect(near.stream.snapshot(at: now).packetsSent == sent + 20)
        #expect(sizes.isEmpty, "objects of up to \(sizes) bytes were allocated")
    }

    @Test func sendingKeysDoesNotAllocate() throws {
        let peer = try RawPeer()
        let side = try Side(
            port: MediaPort(host: "127.0.0.1"), audio: Agreement.withKeys(peer.agreement()),
            source: ToneSource(frequency: 300))
        let simulation = Simulation()
        simulation.add(side)
        // Once for what is set up at the first use.
        #expect(side.stream.send(keys: "9"))
        simulation.run(.milliseconds(400))
        #expect(side.stream.send(keys: "123"))
        var now = simulation.now
        let stream = side.stream
        _ = peer.receiveAll()
        let watch = HeapWatch()
        for _ in 0..<40 {
            now += .milliseconds(10)
            _ = stream.process(at: now)
        }
        let sizes = watch.allocatedSizes()
        #expect(sizes.isEmpty, "objects of up to \(sizes) bytes were allocated")
        let events = peer.receiveAll().filter { $0.count == RTPHeader.minimumLength + TelephoneEvent.length }
        #expect(events.count > 10)
    }
}
