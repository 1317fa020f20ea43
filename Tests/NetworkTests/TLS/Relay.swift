import Primitives

@testable import Network

/// A relay between a TCP client and a server that cuts what it passes on into pieces, or flips a bit of it.
final class Relay: @unchecked Sendable {
    /// Whose bytes.
    enum Side: Sendable {
        case client, server
    }

    let address: TransportAddress

    private let listener: TCPListener

    /// On the loop.
    ///
    /// - Parameters:
    ///   - cut: how many bytes go together; each piece is sent in a turn of the loop of its own.
    ///   - flip: whose byte, which one, and the bits in it.
    init(
        _ loop: EventLoop, to server: TransportAddress, cut: Int = 65_536,
        flip: (side: Side, position: Int, bits: UInt8)? = nil
    ) throws {
        listener = try TCPListener(loop: loop, bind: anyLoopback)
        address = listener.localAddress
        listener.onConnection = { client in
            let upstream = TCPConnection.connect(loop: loop, to: server)
            for (side, from, to) in [(Side.client, client, upstream), (.server, upstream, client)] {
                let direction = Direction(to: to, cut: cut)
                from.onData = { bytes in
                    var bytes = bytes
                    if let flip, flip.side == side, bytes.indices.contains(flip.position - direction.seen) {
                        bytes[flip.position - direction.seen] ^= flip.bits
                    }
                    direction.pass(bytes)
                }
                from.onClose = { _ in direction.end() }
            }
        }
    }

    /// One direction of one connection. On the loop.
    private final class Direction: @unchecked Sendable {
        private(set) var seen = 0

        private let target: TCPConnection
        private let cut: Int
        private var waiting: ArraySlice<UInt8> = []
        private var isPassing = false
        private var isEnding = false

        init(to target: TCPConnection, cut: Int) {
            self.target = target
            self.cut = cut
        }

        func pass(_ bytes: [UInt8]) {
            seen += bytes.count
            waiting += bytes
            if !isPassing { next() }
        }

        func end() {
            isEnding = true
            if !isPassing { target.close() }
        }

        private func next() {
            isPassing = !waiting.isEmpty
            if isPassing {
                target.send(Array(waiting.prefix(cut)))
                waiting = waiting.dropFirst(cut)
                target.loop.execute { [self] in next() }
            } else if isEnding {
                target.close()
            }
        }
    }
}
