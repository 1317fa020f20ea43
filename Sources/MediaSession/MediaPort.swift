import CSys
import Glibc
import Network
import Primitives
import SDP

/// The two UDP sockets of one stream: RTP on an even port, RTCP on the one above (RFC 3550, section 11).
///
/// Made on any thread before the offer goes out, used by the media thread only, closed with its stream.
public final class MediaPort: Sendable {
    /// The RTP socket.
    let rtp: Int32
    /// The RTCP socket; with rtcp-mux it stays silent.
    let rtcp: Int32
    /// Where the peer shall send to.
    public let local: LocalMedia

    /// Binds a free pair of ports on the given numeric address.
    public init(host: String) throws(MediaError) {
        // The kernel picks a free port; its even or odd neighbour is free nearly always. A few tries are plenty.
        for _ in 0..<32 {
            guard let first = Self.bind(TransportAddress(host: host, port: 0)) else {
                throw MediaError(
                    .noPort,
                    "no UDP port can be opened on \(host): check that it is a numeric address of this machine, and "
                        + "that the limit of open files is not reached")
            }
            let even = first.port & ~1
            guard let second = Self.bind(TransportAddress(host: host, port: first.port == even ? even + 1 : even))
            else {
                Glibc.close(first.descriptor)
                continue
            }
            let isFirstEven = first.port == even
            rtp = isFirstEven ? first.descriptor : second.descriptor
            rtcp = isFirstEven ? second.descriptor : first.descriptor
            local = LocalMedia(address: host, rtpPort: even, rtcpPort: even + 1)
            // DSCP "expedited forwarding": networks that look at it put voice first.
            _ = csys_set_traffic_class(rtp, host.contains(":") ? 1 : 0, 46 << 2)
            return
        }
        throw MediaError(
            .noPort, "no pair of neighbouring UDP ports is free on \(host): close other programs that hold many")
    }

    deinit {
        Glibc.close(rtp)
        Glibc.close(rtcp)
    }

    private static func bind(_ address: TransportAddress) -> (descriptor: Int32, port: UInt16)? {
        guard let wanted = try? SocketAddress(address) else { return nil }
        let descriptor = csys_socket(address.isIPv6 ? AF_INET6 : AF_INET, Int32(SOCK_DGRAM.rawValue), 0)
        guard descriptor >= 0 else { return nil }
        var storage = sockaddr_storage()
        var length = socklen_t(MemoryLayout<sockaddr_storage>.size)
        let isBound =
            wanted.withSystemAddress { pointer, size in Glibc.bind(descriptor, pointer, size) } == 0
            && withUnsafeMutablePointer(to: &storage) { pointer in
                pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { getsockname(descriptor, $0, &length) }
            } == 0
        guard isBound, let bound = SocketAddress(storage) else {
            Glibc.close(descriptor)
            return nil
        }
        return (descriptor, bound.transportAddress.port)
    }
}
