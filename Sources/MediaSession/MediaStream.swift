import Audio
import CSys
import Glibc
import Network
import Primitives
import RTP
import SDP

/// What a stream tells its owner; called on the media thread, rarely.
public enum MediaEvent: Sendable {
    /// The first packet of our peer arrived: the call can be heard. Told after the answer, not before.
    case firstPacketReceived
    /// The source came to its end; silence follows.
    case sourceExhausted
    /// Nothing arrived for this long.
    case inactive(Duration)
    /// A device failed; the stream goes on without it.
    case deviceFailed(AudioError)
    /// The peer pressed a key (RFC 4733): `0`–`9`, `*`, `#`, `A`–`D`.
    case keyReceived(Character)
    /// The last of the keys that were to be sent has gone out.
    case keysSent
}

/// One call's audio: sockets, RTP and RTCP, codecs, devices. Made on any thread; from `MediaEngine.add` on it belongs
/// to the media thread, where its steady state neither allocates nor locks nor logs.
public final class MediaStream: @unchecked Sendable {
    // @unchecked: handed over to the media thread by `MediaEngine.add`, and touched there alone from then on.

    /// What may be expected of a stream, beside what was negotiated.
    public enum Phase: Sendable, Equatable {
        /// Before the answer: what comes is played, nothing is sent, and what is to be played waits.
        case early
        /// The call goes on; media that stays away is told as `inactive`.
        case talking
        /// One side holds the call: it may be silent for as long as it likes.
        case held
    }

    /// How a stream is set up.
    public struct Settings: Sendable {
        /// What offer and answer agreed on.
        public var audio: NegotiatedAudio
        /// Where the call stands.
        public var phase: Phase
        /// Opus bit rate in bits a second.
        public var opusBitrate: Int
        /// Opus complexity, 0…10.
        public var opusComplexity: Int
        /// How long nothing may arrive before `inactive` is reported.
        public var inactivityTimeout: Duration
        /// Whether the stream begins muted.
        public var isMuted: Bool
        /// Whether plain RTP may leave this machine.
        public var leavesMachine: Bool

        /// Creates settings.
        public init(
            audio: NegotiatedAudio, phase: Phase = .talking, opusBitrate: Int = 32_000, opusComplexity: Int = 5,
            inactivityTimeout: Duration = .seconds(30), isMuted: Bool = false, leavesMachine: Bool = false
        ) {
            self.audio = audio
            self.phase = phase
            self.opusBitrate = opusBitrate
            self.opusComplexity = opusComplexity
            self.inactivityTimeout = inactivityTimeout
            self.isMuted = isMuted
            self.leavesMachine = leavesMachine
        }
    }

    let port: MediaPort
    /// Names the RTP socket in the thread's epoll set; the RTCP socket is one above.
    var token: UInt64 = 0
    /// When to call `process` again.
    var due = MonotonicTime.zero
    var isMuted: Bool

    private var audio: NegotiatedAudio
    private var phase: Phase
    private let settings: Settings
    private let outbound: OutboundAudio
    private let inbound: InboundAudio
    private let recorder: StereoRecorder?
    private let followsHardware: Bool
    private let handler: @Sendable (MediaEvent) -> Void
    private var control: ControlChannel
    private var peer: PeerAddress
    private var stall = StallClock()
    private let buffer: UnsafeMutableBufferPointer<UInt8>
    private let silence: UnsafeMutableBufferPointer<Int16>

    private var startedAt = MonotonicTime.zero
    private var lastReceived = MonotonicTime.zero
    private var firstSent: MonotonicTime?
    private var firstReceived: MonotonicTime?
    /// Whether the first packet after the answer was told of.
    private var isHeard = false
    /// Whether media is to be expected: it came once, or a negotiation resumed it.
    private var expectsMedia = false
    private var sawExhaustion = false
    private var sawInactivity = false
    private var malformed: UInt64 = 0
    private var isFinished = false

    /// Creates a stream; its devices must be started. When this throws, they are still the caller's to stop.
    ///
    /// - Parameter handler: gets events on the media thread.
    public init(
        port: MediaPort, settings: Settings, source: any AudioSource, sink: any AudioSink, recorder: StereoRecorder?,
        handler: @escaping @Sendable (MediaEvent) -> Void
    ) throws(AudioError) {
        self.port = port
        self.settings = settings
        self.handler = handler
        self.recorder = recorder
        audio = settings.audio
        phase = settings.phase
        isMuted = settings.isMuted
        let encoder = try Codecs.encoder(
            for: settings.audio, bitrate: settings.opusBitrate, complexity: settings.opusComplexity)
        followsHardware = source.readableFrames != nil || sink.writableFrames != nil
        outbound = OutboundAudio(source: source, encoder: encoder, codec: settings.audio.codec)
        outbound.eventPayloadType = settings.audio.telephoneEventPayloadType
        inbound = try InboundAudio(
            audio: settings.audio, sink: sink,
            blockSamples: sink.writableFrames == nil ? AudioFormat.packetFrames : AudioFormat.blockFrames)
        control = ControlChannel(ssrc: outbound.sender.ssrc)
        peer = PeerAddress(settings.audio, leavesMachine: settings.leavesMachine)
        buffer = .allocate(capacity: 2_048)
        buffer.initialize(repeating: 0)
        silence = .allocate(capacity: AudioFormat.blockFrames)
        silence.initialize(repeating: 0)
    }

    deinit {
        buffer.deallocate()
        silence.deallocate()
    }

    /// The synchronization source that this side sends as.
    var sourceIdentifier: UInt32 { outbound.sender.ssrc }

    /// Gives up a stream that was never added to an engine. Closes its devices, which may wait for the disk.
    public func discard() {
        outbound.stop()
        inbound.stop()
        recorder?.stop()
    }

    // MARK: On the media thread

    /// Starts the stream; the first packet leaves at once.
    func begin(at now: MonotonicTime) {
        startedAt = now
        lastReceived = now
        control.start(at: now)
        // What came before anyone listened is stale: it would be played late or thrown away by the jitter buffer.
        drain(port.rtp)
        drain(port.rtcp)
        due = process(at: now)
    }

    /// Empties a socket; bounded, so that a flood cannot hold the thread.
    private func drain(_ socket: Int32) {
        for _ in 0..<1_024 where csys_recv(socket, buffer.baseAddress, buffer.count) < 0 { return }
    }

    /// Does what is due; returns when to be called again.
    func process(at now: MonotonicTime) -> MonotonicTime {
        if followsHardware {
            outbound.service(at: now)
            inbound.service(at: now)
        }
        let skipped = stall.skipped(at: now)
        if skipped > .zero { skip(skipped) }
        inbound.process(at: now, receiver: self)
        outbound.process(
            at: now, isMuted: isMuted, hasPeer: phase != .early && (isHeard || !audio.direction.receives),
            isSending: phase != .early && audio.direction.sends && peer.rtp != nil, receiver: self)
        if followsHardware { inbound.service(at: now) }
        report(at: now)
        watch(at: now)
        var next = now + (followsHardware ? .milliseconds(10) : .milliseconds(20))
        if let frame = outbound.nextFrame, frame < next { next = frame }
        if let block = inbound.nextBlock, block < next { next = block }
        if let report = control.nextReport, report < next { next = report }
        return next
    }

    /// Leaves out what a stall of the thread made late.
    private func skip(_ duration: Duration) {
        outbound.skip(duration)
        inbound.skip(duration)
        // With hardware, the frames say themselves how much time passed.
        guard let recorder, !followsHardware else { return }
        // Recordings of more than a minute's stall (a suspended machine) are not filled up.
        let blocks = min(duration.wholeNanoseconds / BlockClock.blockDuration.wholeNanoseconds, 6_000)
        for _ in 0..<blocks {
            recorder.appendLeft(UnsafeBufferPointer(silence))
            recorder.appendRight(UnsafeBufferPointer(silence))
        }
    }

    func transmit(_ packet: UnsafeBufferPointer<UInt8>, at now: MonotonicTime) {
        if firstSent == nil { firstSent = now }
        send(packet, over: port.rtp, to: peer.rtp)
    }

    func didSend(_ frame: UnsafeBufferPointer<Int16>) {
        recorder?.appendLeft(frame)
    }

    func didPlay(_ block: UnsafeBufferPointer<Int16>) {
        recorder?.appendRight(block)
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
        case .rtcp where isControl || audio.rtcpMux:
            guard let packets = try? RTCPPacket.parseCompound(bytes.span) else {
                malformed &+= 1
                return
            }
            guard peer.accepts(control: source) else { return }
            control.receive(packets, bytes: bytes.count, inbound: inbound, at: now)
            lastReceived = now
            if let loss = control.takeRemoteLoss() { outbound.setExpectedLoss(percent: Self.expectedLoss(loss)) }
        case .rtp where !isControl:
            acceptMedia(bytes, from: source, at: now)
        default:
            malformed &+= 1
        }
    }

    private func acceptMedia(_ bytes: UnsafeBufferPointer<UInt8>, from source: SocketAddress, at now: MonotonicTime) {
        guard let header = RTPHeader.parse(bytes.span) else {
            malformed &+= 1
            return
        }
        let end = header.payloadOffset + header.payloadLength
        // Only what was agreed on may fix the peer's address.
        guard header.payloadOffset >= 0, end <= bytes.count,
            firstReceived != nil || inbound.expects(payloadType: header.payloadType)
        else {
            malformed &+= 1
            return
        }
        guard peer.accepts(media: source) else { return }
        lastReceived = now
        sawInactivity = false
        expectsMedia = true
        let payload = UnsafeBufferPointer(rebasing: bytes[header.payloadOffset..<end])
        if let key = inbound.receive(header, payload: payload, isHeard: audio.direction.receives, at: now) {
            handler(.keyReceived(key))
        }
        if firstReceived == nil { firstReceived = now }
        if !isHeard, phase != .early {
            isHeard = true
            handler(.firstPacketReceived)
        }
    }

    /// The loss to protect against: a little more than what was reported, and never none, since FEC that is switched
    /// on after the first loss comes too late for it.
    private static func expectedLoss(_ fraction: Double) -> Int {
        min(30, max(5, Int((fraction * 125).rounded(.up))))
    }

    private func report(at now: MonotonicTime) {
        guard let due = control.nextReport, due <= now else { return }
        sendControl(control.makeReport(sender: outbound.sender, inbound: inbound, at: now))
    }

    private func sendControl(_ bytes: [UInt8]) {
        let socket = audio.rtcpMux ? port.rtp : port.rtcp
        bytes.withUnsafeBufferPointer { send($0, over: socket, to: peer.control) }
    }

    private func send(_ bytes: UnsafeBufferPointer<UInt8>, over socket: Int32, to address: SocketAddress?) {
        guard let address else { return }
        // A full socket buffer loses the packet: media does not wait.
        _ = address.withSystemAddress { pointer, length in
            csys_sendto(socket, bytes.baseAddress, bytes.count, pointer, length)
        }
    }

    /// Sends keys as telephone events, in the place of what is captured; `keysSent` follows.
    ///
    /// - Returns: false when the peer takes none, a character is no key, or too many wait.
    func send(keys: String) -> Bool {
        outbound.send(keys: keys)
    }

    private func watch(at now: MonotonicTime) {
        if outbound.takeKeysSent() { handler(.keysSent) }
        if !sawExhaustion, outbound.isExhausted {
            sawExhaustion = true
            handler(.sourceExhausted)
        }
        // A peer on hold, whichever way it says so, need not send.
        if !sawInactivity, expectsMedia, phase == .talking, audio.direction.receives, peer.rtp != nil,
            now - lastReceived > settings.inactivityTimeout
        {
            sawInactivity = true
            handler(.inactive(now - lastReceived))
        }
        if let error = outbound.takeFailure() { handler(.deviceFailed(error)) }
        if let error = inbound.takeFailure() { handler(.deviceFailed(error)) }
        if let error = recorder?.takeFailure() { handler(.deviceFailed(error)) }
    }

    /// Follows a new negotiation: direction, address, codec, packet length.
    func renegotiate(_ new: NegotiatedAudio, phase: Phase = .talking, at now: MonotonicTime) {
        peer.update(to: new)
        self.phase = phase
        lastReceived = now
        sawInactivity = false
        expectsMedia = true
        do throws(AudioError) {
            if new.receivePayloadTypes != audio.receivePayloadTypes { try inbound.setDecoders(for: new) }
            if !new.codec.isSameFormat(as: audio.codec) || new.ptime != audio.ptime || new.opus != audio.opus {
                let encoder = try Codecs.encoder(
                    for: new, bitrate: settings.opusBitrate, complexity: settings.opusComplexity)
                outbound.use(encoder, codec: new.codec)
                control.use(ssrc: outbound.sender.ssrc)
            } else {
                outbound.setPayloadType(new.codec.payloadType)
            }
            outbound.eventPayloadType = new.telephoneEventPayloadType
            audio = new
        } catch {
            // The old codec goes on: a peer that agreed on it once most likely still understands it.
            audio.direction = new.direction
            audio.rtcpMux = new.rtcpMux
            handler(.deviceFailed(error))
        }
    }

    /// Says goodbye and stops; the devices are still to be closed by `discard`, on a thread that may wait.
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
