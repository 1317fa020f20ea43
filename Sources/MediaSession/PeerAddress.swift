import Network
import Primitives
import SDP

/// Where our peer is, and whose packets are taken for its own.
///
/// Without authentication the rule is narrow. Packets come from the address that the peer named; from there they are
/// always taken. Its port may turn out to be another one (symmetric RTP behind a NAT that keeps the address): the first
/// packet fixes it, and from then on nothing moves it but the named address itself or a new negotiation. So a third
/// address can neither inject sound nor draw the stream to itself.
///
/// Plain RTP goes to loopback addresses only, unless it was configured to leave the machine: otherwise there is nothing
/// to send to, whatever the layers above decided.
/// The same holds for a peer on hold, which names `0.0.0.0`, `::` or a name under `.invalid`.
struct PeerAddress {
    /// Where RTP goes; nil when it must not go anywhere.
    private(set) var rtp: SocketAddress?
    /// Where RTCP goes when it has a port of its own.
    private(set) var rtcp: SocketAddress?
    /// Packets from other addresses.
    private(set) var strangers: UInt64 = 0
    private var isMediaFixed = false
    private var isControlFixed = false
    private var isMuxed = false
    private var namedMedia: SocketAddress?
    private var namedControl: SocketAddress?
    private let leavesMachine: Bool

    init(_ audio: NegotiatedAudio, leavesMachine: Bool = false) {
        self.leavesMachine = leavesMachine
        update(to: audio)
    }

    /// Follows a new negotiation. Where it names the same address as before, what was learnt stays.
    mutating func update(to audio: NegotiatedAudio) {
        let media = usable(host: audio.remoteAddress, port: audio.remoteRTPPort)
        // A peer that takes no RTP is on hold and gets no RTCP either.
        let control = media == nil ? nil : usable(host: audio.remoteRTCPAddress, port: audio.remoteRTCPPort)
        if media != namedMedia {
            namedMedia = media
            rtp = media
            isMediaFixed = false
        }
        if control != namedControl {
            namedControl = control
            rtcp = control
            isControlFixed = false
        }
        isMuxed = audio.rtcpMux
    }

    private func usable(host: String, port: UInt16) -> SocketAddress? {
        guard port != 0, let address = try? SocketAddress(TransportAddress(host: host, port: port)),
            leavesMachine || address.isLoopback
        else { return nil }
        return address
    }

    /// Where RTCP goes; nil when the peer takes none.
    var control: SocketAddress? { isMuxed ? rtp : rtcp }

    /// Whether a packet is the peer's; the first one fixes its port.
    mutating func accepts(media source: SocketAddress) -> Bool {
        if source == rtp {
            isMediaFixed = true
            return true
        }
        guard let named = namedMedia, source == named || !isMediaFixed && source.hasSameHost(as: named) else {
            strangers &+= 1
            return false
        }
        rtp = source
        isMediaFixed = true
        return true
    }

    /// Whether a report is the peer's. With rtcp-mux only media can fix the port.
    mutating func accepts(control source: SocketAddress) -> Bool {
        if source == control {
            if !isMuxed { isControlFixed = true }
            return true
        }
        guard !isMuxed, let named = namedControl,
            source == named || !isControlFixed && source.hasSameHost(as: named)
        else {
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
