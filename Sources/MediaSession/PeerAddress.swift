import Network
import Primitives
import SDP

/// Where our peer is, and whose packets are taken for its own.
///
/// Without authentication the rule is narrow: packets come from the address that the peer named. Its port may turn out
/// to be another one (symmetric RTP behind an address-preserving NAT): the first packet fixes it, and from then on
/// nothing moves it but a new negotiation. So a third address can neither inject sound nor draw the stream to itself.
struct PeerAddress {
    /// Where RTP goes.
    private(set) var rtp: SocketAddress?
    /// Where RTCP goes when it has a port of its own.
    private(set) var rtcp: SocketAddress?
    /// Packets from other addresses.
    private(set) var strangers: UInt64 = 0
    private var isMediaFixed = false
    private var isControlFixed = false
    private let isMuxed: Bool

    init(_ audio: NegotiatedAudio) {
        rtp = try? SocketAddress(TransportAddress(host: audio.remoteAddress, port: audio.remoteRTPPort))
        rtcp = try? SocketAddress(TransportAddress(host: audio.remoteRTCPAddress, port: audio.remoteRTCPPort))
        isMuxed = audio.rtcpMux
    }

    /// Whether the peer takes RTCP at all.
    var hasControl: Bool { isMuxed ? rtp != nil : rtcp?.port ?? 0 != 0 }

    mutating func accepts(media source: SocketAddress) -> Bool {
        if source == rtp {
            isMediaFixed = true
            return true
        }
        guard !isMediaFixed, let expected = rtp, source.hasSameHost(as: expected) else {
            strangers &+= 1
            return false
        }
        rtp = source
        isMediaFixed = true
        return true
    }

    mutating func accepts(control source: SocketAddress) -> Bool {
        let expected = isMuxed ? rtp : rtcp
        if source == expected {
            isControlFixed = true
            return true
        }
        guard !isMuxed, !isControlFixed, let expected, source.hasSameHost(as: expected) else {
            strangers &+= 1
            return false
        }
        rtcp = source
        isControlFixed = true
        return true
    }
}

extension SocketAddress {
    /// Whether both are the same machine's address, whatever the port.
    func hasSameHost(as other: SocketAddress) -> Bool {
        var same = self
        same.port = other.port
        return same == other
    }
}
