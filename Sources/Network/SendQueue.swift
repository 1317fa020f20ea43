/// The bytes that wait to be sent, in chunks; small ones are put together so that many short lines cost few calls.
struct SendQueue {
    private var chunks: [[UInt8]] = []
    private var firstChunk = 0
    private var firstByte = 0
    private(set) var byteCount = 0

    var isEmpty: Bool { byteCount == 0 }

    mutating func append(_ bytes: [UInt8]) {
        guard !bytes.isEmpty else { return }
        byteCount += bytes.count
        if let last = chunks.indices.last, chunks[last].count + bytes.count <= 16_384 {
            chunks[last].append(contentsOf: bytes)
        } else {
            chunks.append(bytes)
        }
    }

    func withFirstBytes<Result>(_ body: (UnsafeRawBufferPointer) -> Result) -> Result {
        guard chunks.indices.contains(firstChunk) else { return body(UnsafeRawBufferPointer(start: nil, count: 0)) }
        return chunks[firstChunk].withUnsafeBytes { body(UnsafeRawBufferPointer(rebasing: $0[firstByte...])) }
    }

    mutating func consume(_ count: Int) {
        byteCount -= count
        firstByte += count
        guard chunks.indices.contains(firstChunk), firstByte >= chunks[firstChunk].count else { return }
        firstByte = 0
        firstChunk += 1
        if firstChunk == chunks.count {
            chunks.removeAll(keepingCapacity: chunks.capacity <= 64)
            firstChunk = 0
        } else if firstChunk >= 64 {
            chunks.removeFirst(firstChunk)
            firstChunk = 0
        } else {
            chunks[firstChunk - 1] = []
        }
    }
}
