import Audio
import CSys
import Glibc
import Network
import Primitives
import RTP
import SDP

/// What a stream tells its owner; called on the media thread, rarely.
public enum MediaEvent: Sendable {
    /// The first packet of our peer arrived: the call can be heard.
    case firstPacketReceived
    /// The source came to its end; silence follows.
    case sourceExhausted
    /// Nothing arrived for this long.
    case inactive(Duration)
    /// A device failed; the stream goes on without it.
    case deviceFailed(AudioError)
}

/// One call's audio: sockets, RTP and RTCP, codecs, devices. Made on any thread; from `MediaEngine.add` on it belongs
/// to the media thread, where its steady state neither allocates nor locks nor logs.
public final class MediaStream: @unchecked Sendable {
    // @unchecked: handed over to the media thread by `MediaEngine.add`, and touched there alone from then on.

    /// How a stream is set up.
    public struct Settings: Sendable {
        /// What offer and answer agreed on.
        public var audio: NegotiatedAudio
        /// Opus bit rate in bits a second.
        public var opusBitrate: Int
        /// Opus complexity, 0…10.
        public var opusComplexity: Int
        /// How long nothing may arrive before `inactive` is reported.
        public var inactivityTimeout: Duration
        /// Whether the stream begins muted.
        public var isMuted: Bool

        /// Creates settings.
        public init(
            audio: NegotiatedAudio, opusBitrate: Int = 32_000, opusComplexity: Int = 5,
            inactivityTimeout: Duration = .seconds(30), isMuted: Bool = false
        ) {
            self.audio = audio
            self.opusBitrate = opusBitrate
            self.opusComplexity = opusComplexity
            self.inactivityTimeout = inactivityTimeout
            self.isMuted = isMuted
        }
    }

    let port: MediaPort
    /// Names the RTP socket in the thread's epoll set; the RTCP socket is one above.
    var token: UInt64 = 0
    var isMuted: Bool

    private var audio: NegotiatedAudio
    private let settings: Settings
    private let outbound: OutboundAudio
    private let inbound: InboundAudio
    private let recorder: CallRecorder?
    private let followsHardware: Bool
    private let handler: @Sendable (MediaEvent) -> Void
    private var control: ControlChannel
    private var peer: PeerAddress
    private let buffer: UnsafeMutableBufferPointer<UInt8>

    private var startedAt = MonotonicTime.zero
    private var lastReceived = MonotonicTime.zero
    private var nextService = MonotonicTime.zero
    private var firstSent: MonotonicTime?
    private var firstReceived: MonotonicTime?
    private var sawExhaustion = false
    private var sawInactivity = false
    private var malformed: UInt64 = 0
    private var isFinished = false

    /// Creates a stream; its devices must be started.
    ///
    /// - Parameter handler: gets events on the media thread.
    public init(
        port: MediaPort, settings: Settings, source: any AudioSource, sink: any AudioSink, recorder: StereoRecorder?,
        handler: @escaping @Sendable (MediaEvent) -> Void
    ) throws(AudioError) {
        self.port = port
        self.settings = settings
        self.handler = handler
        audio = settings.audio
        isMuted = settings.isMuted
        let encoder = try Codecs.encoder(
            for: settings.audio, bitrate: settings.opusBitrate, complexity: settings.opusComplexity)
        followsHardware = source.readableFrames != nil || sink.writableFrames != nil
        outbound = OutboundAudio(source: source, encoder: encoder, codec: settings.audio.codec)
        inbound = try InboundAudio(
            audio: settings.audio, sink: sink,
            blockSamples: sink.writableFrames == nil ? AudioFormat.packetFrames : AudioFormat.blockFrames)
        self.recorder = recorder.map(CallRecorder.init)
        control = ControlChannel(ssrc: outbound.sender.ssrc)
        peer = PeerAddress(settings.audio)
        buffer = .allocate(capacity: 2_048)
        buffer.initialize(repeating: 0)
    }

    deinit {
        buffer.deallocate()
    }

    /// Closes the devices and completes the recording of a stream that no engine runs (any more).
    ///
    /// Waits for disks and sound servers: not for the media thread, nor for an event loop.
    public func discard() {
        outbound.stop()
        inbound.stop()
        recorder?.stop()
    }

    // MARK: On the media thread

    func begin(at now: MonotonicTime) {
        startedAt = now
        lastReceived = now
        nextService = now
        control.start(at: now)
        // What came before anyone listened is stale.
        _ = process(at: now)
    }

    /// Does what is due; returns when to be called again.
    func process(at now: MonotonicTime) -> MonotonicTime {
        if followsHardware {
            outbound.service(at: now)
            inbound.service(at: now)
        }
        inbound.process(at: now) { played in recorder?.appendHeard(played) }
        let hasPeer = firstReceived != nil || !audio.direction.receives
        outbound.process(at: now, isMuted: isMuted, hasPeer: hasPeer, isSending: audio.direction.sends) { packet in
            if firstSent == nil { firstSent = now }
            send(packet, over: port.rtp, to: peer.rtp)
        } record: { sent in
            recorder?.appendSent(sent)
        }
        if followsHardware { inbound.service(at: now) }
        report(at: now)
        watch(at: now)
        var next = now + .milliseconds(followsHardware ? 10 : 20)
        for due in [outbound.nextFrame, inbound.nextBlock, control.nextReport] {
            if let due, due < next { next = due }
        }
        return next
    }

    /// Receives everything that one of the sockets holds.
    func receive(isControl: Bool, at now: MonotonicTime) {
        let socket = isControl ? port.rtcp : port.rtp
        // Bounded, so that a flood of packets cannot keep the other streams from their time.
        for _ in 0..<32 {
            var storage = sockaddr_storage()
            var length = socklen_t(MemoryLayout<sockaddr_storage>.size)
            var truncated: Int32 = 0
            let count = csys_recvfrom(socket, buffer.baseAddress, buffer.count, &storage, &length, &truncated)
            guard count >= 0 else { return }
            guard truncated == 0, let source = SocketAddress(storage) else {
                malformed &+= 1
                continue
            }
            accept(UnsafeBufferPointer(rebasing: buffer[0..<Int(count)]), from: source, isControl: isControl, at: now)
        }
    }

    private func accept(
        _ bytes: UnsafeBufferPointer<UInt8>, from source: SocketAddress, isControl: Bool, at now: MonotonicTime
    ) {
        switch PacketKind(bytes.span) {
        case .rtcp:
            guard peer.accepts(control: source) else { return }
            control.receive(bytes.span, inbound: inbound, at: now)
            lastReceived = now
            if let loss = control.takeRemoteLoss() { outbound.setExpectedLoss(percent: Self.expectedLoss(loss)) }
        case .rtp where !isControl:
            guard let header = RTPHeader.parse(bytes.span) else {
                malformed &+= 1
                return
            }
            guard peer.accepts(media: source) else { return }
            lastReceived = now
            sawInactivity = false
            let end = header.payloadOffset + header.payloadLength
            guard header.payloadOffset >= 0, end <= bytes.count else { return }
            inbound.receive(
                header, payload: UnsafeBufferPointer(rebasing: bytes[header.payloadOffset..<end]), at: now)
            if firstReceived == nil {
                firstReceived = now
                handler(.firstPacketReceived)
            }
        default:
            malformed &+= 1
        }
    }

    /// The loss to protect against: a little more than what was reported, and never none, since FEC that is switched
    /// on after the first loss comes too late for it.
    private static func expectedLoss(_ fraction: Double) -> Int {
        min(30, max(5, Int((fraction * 125).rounded(.up))))
    }

    private func report(at now: MonotonicTime) {
        guard let due = control.nextReport, due <= now else { return }
        let bytes = control.makeReport(sender: outbound.sender, inbound: inbound, at: now)
        sendControl(bytes)
    }

    private func sendControl(_ bytes: [UInt8]) {
        guard peer.hasControl else { return }
        let socket = audio.rtcpMux ? port.rtp : port.rtcp
        bytes.withUnsafeBufferPointer { send($0, over: socket, to: audio.rtcpMux ? peer.rtp : peer.rtcp) }
    }

    private func send(_ bytes: UnsafeBufferPointer<UInt8>, over socket: Int32, to address: SocketAddress?) {
        guard let address, address.port != 0 else { return }
        // A packet that cannot be sent now is a lost packet: media does not wait.
        _ = address.withSystemAddress { pointer, length in
            csys_sendto(socket, bytes.baseAddress, bytes.count, pointer, length)
        }
    }

    private func watch(at now: MonotonicTime) {
        if !sawExhaustion, outbound.isExhausted {
            sawExhaustion = true
            handler(.sourceExhausted)
        }
        if !sawInactivity, firstReceived != nil, audio.direction.receives,
            now - lastReceived > settings.inactivityTimeout
        {
            sawInactivity = true
            handler(.inactive(now - lastReceived))
        }
        guard followsHardware else { return }
        if let error = outbound.takeFailure() ?? inbound.takeFailure() { handler(.deviceFailed(error)) }
    }

    /// Follows a new negotiation. The codec stays what it was: a peer that changes it within a call gets our old one.
    func renegotiate(_ audio: NegotiatedAudio, at now: MonotonicTime) {
        self.audio.direction = audio.direction
        self.audio.rtcpMux = audio.rtcpMux
        peer = PeerAddress(audio)
        lastReceived = now
    }

    /// Says goodbye; `discard()` elsewhere does the rest.
    func finish(at now: MonotonicTime) {
        guard !isFinished else { return }
        isFinished = true
        sendControl(control.makeGoodbye(sender: outbound.sender, inbound: inbound, at: now))
    }

    func snapshot(at now: MonotonicTime) -> MediaStatistics {
        var statistics = MediaStatistics()
        let jitter = inbound.jitterStatistics
        statistics.codec = audio.codec.name
        statistics.remoteAddress = peer.rtp?.description ?? ""
        statistics.packetsSent = outbound.sender.packetCount
        statistics.bytesSent = outbound.bytesSent
        statistics.packetsReceived = inbound.accepted
        statistics.bytesReceived = inbound.bytesReceived
        statistics.packetsLost = Int64(clamping: inbound.reception.totalLost)
        statistics.packetsLate = jitter.late
        statistics.packetsDuplicated = jitter.duplicated
        statistics.packetsFromStrangers = peer.strangers
        statistics.packetsMalformed = malformed
        statistics.jitter = inbound.reception.jitterDuration.seconds
        statistics.roundTripTime = control.roundTripTime?.seconds
        statistics.remoteFractionLost = control.remoteFractionLost
        statistics.jitterBufferDelay = max(0, jitter.currentDelay.seconds)
        statistics.jitterBufferTarget = jitter.targetDelay.seconds
        statistics.totalSamplesReceived = inbound.totalSamples
        statistics.concealedSamples = inbound.concealedSamples
        statistics.fecRecoveredFrames = inbound.fecFrames
        statistics.audioLevelSent = outbound.level
        statistics.audioLevelReceived = inbound.level
        statistics.firstPacketSent = firstSent.map { ($0 - startedAt).seconds }
        statistics.firstPacketReceived = firstReceived.map { ($0 - startedAt).seconds }
        statistics.xruns = outbound.xruns &+ inbound.xruns
        return statistics
    }
}
