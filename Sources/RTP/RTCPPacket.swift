import Primitives

/// One packet of an RTCP compound, RFC 3550 section 6.
public enum RTCPPacket: Equatable, Sendable {
    /// A sender's times and counters, with what it receives (type 200).
    case senderReport(RTCPSenderReport)
    /// What a receiver receives (type 201).
    case receiverReport(RTCPReceiverReport)
    /// Who a source is (type 202).
    case sourceDescription([RTCPSourceDescription])
    /// Sources leave (type 203).
    case goodbye(RTCPGoodbye)
    /// Another type, kept as it is: `count` is the header's five bits, `body` all after its four bytes.
    case other(type: UInt8, count: UInt8, body: [UInt8])
}

/// A sender report, RFC 3550 section 6.4.1.
public struct RTCPSenderReport: Equatable, Sendable {
    /// The sender.
    public var ssrc: UInt32
    /// When the report was sent, on the sender's clock.
    public var ntpTimestamp: NTPTimestamp
    /// The same instant in the stream's timestamps.
    public var rtpTimestamp: UInt32
    /// Packets sent, modulo 2^32.
    public var packetCount: UInt32
    /// Payload bytes sent, modulo 2^32.
    public var octetCount: UInt32
    /// What the sender receives, at most 31.
    public var blocks: [RTCPReportBlock]

    /// Creates a report.
    public init(
        ssrc: UInt32, ntpTimestamp: NTPTimestamp, rtpTimestamp: UInt32, packetCount: UInt32, octetCount: UInt32,
        blocks: [RTCPReportBlock] = []
    ) {
        self.ssrc = ssrc
        self.ntpTimestamp = ntpTimestamp
        self.rtpTimestamp = rtpTimestamp
        self.packetCount = packetCount
        self.octetCount = octetCount
        self.blocks = blocks
    }
}

/// A receiver report, RFC 3550 section 6.4.2.
public struct RTCPReceiverReport: Equatable, Sendable {
    /// Who reports.
    public var ssrc: UInt32
    /// What it receives, at most 31.
    public var blocks: [RTCPReportBlock]

    /// Creates a report.
    public init(ssrc: UInt32, blocks: [RTCPReportBlock] = []) {
        self.ssrc = ssrc
        self.blocks = blocks
    }
}

/// How one source is received, RFC 3550 section 6.4.1.
public struct RTCPReportBlock: Equatable, Sendable {
    /// The source that the block is about.
    public var ssrc: UInt32
    /// The share of packets lost since the last report, in 256ths.
    public var fractionLost: UInt8 = 0
    /// Packets lost since the start; 24 bits, negative when duplicates outnumber losses.
    public var cumulativeLost: Int32 = 0
    /// The highest sequence number with its wrap-arounds.
    public var extendedHighestSequence: UInt32 = 0
    /// The interarrival jitter in timestamp units.
    public var jitter: UInt32 = 0
    /// The middle of the NTP timestamp of the last sender report; 0 for none.
    public var lastSenderReport: UInt32 = 0
    /// How long ago that came, in 65536ths of a second.
    public var delaySinceLastSenderReport: UInt32 = 0

    /// Creates a block without losses.
    public init(ssrc: UInt32) {
        self.ssrc = ssrc
    }

    /// The round-trip time that the block shows its subject (RFC 3550 section 6.4.1).
    ///
    /// - Parameter arrival: When the block came, on the clock of our sender reports.
    /// - Returns: Nil when the peer had no sender report yet, or when the numbers cannot be true (negative, or more
    ///   than a minute).
    public func roundTripTime(arrival: NTPTimestamp) -> Duration? {
        guard lastSenderReport != 0 else { return nil }
        let units = arrival.middle &- lastSenderReport &- delaySinceLastSenderReport
        // Clocks that tick in different steps may give a hair less than nothing.
        if Int32(bitPattern: units) < 0 { return Int32(bitPattern: units) > -66 ? .zero : nil }
        guard units < 60 << 16 else { return nil }
        return .nanoseconds(Int64(units) * 1_000_000_000 / 65_536)
    }
}

/// The items of one source, RFC 3550 section 6.5.
public struct RTCPSourceDescription: Equatable, Sendable {
    /// The source.
    public var ssrc: UInt32
    /// Type and text of each item; type 1 is the canonical name. A text has at most 255 bytes.
    public var items: [Item]

    /// One item.
    public struct Item: Equatable, Sendable {
        /// 1 CNAME, 2 NAME, 3 EMAIL, 4 PHONE, 5 LOC, 6 TOOL, 7 NOTE, 8 PRIV.
        public var type: UInt8
        /// The text.
        public var text: String

        /// Creates an item.
        public init(type: UInt8, text: String) {
            self.type = type
            self.text = text
        }
    }

    /// Creates a description.
    public init(ssrc: UInt32, items: [Item]) {
        self.ssrc = ssrc
        self.items = items
    }

    /// Creates a description of the canonical name alone; a random one says nothing about the user (RFC 7022).
    public init(ssrc: UInt32, canonicalName: String) {
        self.init(ssrc: ssrc, items: [Item(type: 1, text: canonicalName)])
    }

    /// The canonical name.
    public var canonicalName: String? { items.first { $0.type == 1 }?.text }
}

/// Sources that leave, RFC 3550 section 6.6.
public struct RTCPGoodbye: Equatable, Sendable {
    /// The sources, at most 31.
    public var sources: [UInt32]
    /// Why, at most 255 bytes.
    public var reason: String?

    /// Creates a goodbye.
    public init(sources: [UInt32], reason: String? = nil) {
        self.sources = sources
        self.reason = reason
    }
}
