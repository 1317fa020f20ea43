import COpenSSL
import Glibc

/// OpenSSL's way in and out of one DTLS association. Keeps datagrams apart, as a memory BIO does not: a record must
/// not be cut, and a flight goes out in the datagrams that it was made in.
final class DatagramBIO {
    /// Datagrams that wait to be read, and those that were written.
    private(set) var incoming: [[UInt8]] = []
    private var outgoing: [[UInt8]] = []

    /// A BIO whose two ends are this object, which must outlive it; nil when memory ran out.
    func makeBIO() -> OpaquePointer? {
        guard let method = Self.method.pointer, let bio = BIO_new(method) else { return nil }
        BIO_set_data(bio, Unmanaged.passUnretained(self).toOpaque())
        BIO_set_init(bio, 1)
        return bio
    }

    func feed(_ datagram: [UInt8]) {
        incoming.append(datagram)
    }

    func takeOutgoing() -> [[UInt8]] {
        defer { outgoing = [] }
        return outgoing
    }

    private func read(_ buffer: UnsafeMutablePointer<CChar>?, _ size: Int32) -> Int32 {
        guard let buffer, !incoming.isEmpty else { return -1 }
        let datagram = incoming.removeFirst()
        // As with a socket, what does not fit is cut off.
        let count = min(datagram.count, Int(max(0, size)))
        datagram.withUnsafeBytes { source in
            guard let start = source.baseAddress else { return }
            memcpy(buffer, start, count)
        }
        return Int32(clamping: count)
    }

    private func write(_ buffer: UnsafePointer<CChar>?, _ size: Int32) -> Int32 {
        guard let buffer, size >= 0 else { return -1 }
        outgoing.append([UInt8](UnsafeRawBufferPointer(start: buffer, count: Int(size))))
        return size
    }

    /// The callbacks, made once in a process and never freed.
    private struct Method: @unchecked Sendable {
        let pointer: OpaquePointer?
    }

    private static let method = Method(pointer: makeMethod())

    private static func makeMethod() -> OpaquePointer? {
        guard let method = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "datagrams") else { return nil }
        BIO_meth_set_read(method) { bio, buffer, size in
            guard let owner = DatagramBIO.owner(of: bio) else { return -1 }
            BIO_clear_flags(bio, BIO_FLAGS_READ | BIO_FLAGS_WRITE | BIO_FLAGS_SHOULD_RETRY)
            let count = owner.read(buffer, size)
            // Empty means "not yet".
            if count < 0 { BIO_set_flags(bio, BIO_FLAGS_READ | BIO_FLAGS_SHOULD_RETRY) }
            return count
        }
        BIO_meth_set_write(method) { bio, buffer, size in
            DatagramBIO.owner(of: bio)?.write(buffer, size) ?? -1
        }
        BIO_meth_set_ctrl(method) { bio, command, _, _ in
            switch command {
            case BIO_CTRL_FLUSH, BIO_CTRL_DUP: 1
            // IPv6 and UDP headers.
            case BIO_CTRL_DGRAM_GET_MTU_OVERHEAD: 48
            case BIO_CTRL_PENDING: DatagramBIO.owner(of: bio)?.incoming.first?.count ?? 0
            default: 0
            }
        }
        return method
    }

    private static func owner(of bio: OpaquePointer?) -> DatagramBIO? {
        BIO_get_data(bio).map { Unmanaged<DatagramBIO>.fromOpaque($0).takeUnretainedValue() }
    }
}
