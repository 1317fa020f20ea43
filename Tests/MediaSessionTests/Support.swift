import Audio
import CSys
import Glibc
import Network
import Primitives
import RTP
import SDP
import Synchronization

@testable import MediaSession

/// What a stream told its owner.
final class EventLog: Sendable {
    private let events = Mutex<[MediaEvent]>([])

    func append(_ event: MediaEvent) {
        events.withLock { $0.append(event) }
    }

    var all: [MediaEvent] { events.withLock { $0 } }

    func count(where matches: (MediaEvent) -> Bool) -> Int {
        all.reduce(0) { $0 + (matches($1) ? 1 : 0) }
    }

    var firstPackets: Int { count { if case .firstPacketReceived = $0 { true } else { false } } }
    var exhaustions: Int { count { if case .sourceExhausted = $0 { true } else { false } } }
    var inactivities: Int { count { if case .inactive = $0 { true } else { false } } }
    var failures: Int { count { if case .deviceFailed = $0 { true } else { false } } }
}

/// One end of a call on loopback.
final class Side {
    let port: MediaPort
    let stream: MediaStream
    let events: EventLog
    var audio: NegotiatedAudio

    init(
        port: MediaPort, audio: NegotiatedAudio, source: any AudioSource = SilenceSource(),
        sink: any AudioSink = NullSink(), recorder: StereoRecorder? = nil,
        inactivityTimeout: Duration = .seconds(30), isMuted: Bool = false
    ) throws {
        let events = EventLog()
        self.port = port
        self.events = events
        self.audio = audio
        try source.start()
        try sink.start()
        stream = try MediaStream(
            port: port,
            settings: MediaStream.Settings(audio: audio, inactivityTimeout: inactivityTimeout, isMuted: isMuted),
            source: source, sink: sink, recorder: recorder
        ) { events.append($0) }
    }

    func change(at now: MonotonicTime, _ edit: (inout NegotiatedAudio) -> Void) {
        edit(&audio)
        stream.renegotiate(audio, at: now)
    }
}

enum Agreement {
    static let opus = AudioCodec(name: "opus", clockRate: 48_000, channels: 2, payloadType: 111)
    static let pcmu = AudioCodec(name: "PCMU", clockRate: 8_000, payloadType: 0)
    static let pcma = AudioCodec(name: "PCMA", clockRate: 8_000, payloadType: 8)

    static func with(
        _ port: MediaPort, codec: AudioCodec = opus, ptime: Int = 20, direction: MediaDirection = .sendrecv,
        mux: Bool = false
    ) -> NegotiatedAudio {
        NegotiatedAudio(
            codec: codec, remoteAddress: port.local.address, remoteRTPPort: port.local.rtpPort,
            remoteRTCPPort: mux ? port.local.rtpPort : port.local.rtcpPort, rtcpMux: mux, direction: direction,
            ptime: ptime)
    }
}

/// Moves streams on in simulated time over real loopback sockets, which deliver at once.
final class Simulation {
    private(set) var now = MonotonicTime(nanoseconds: 1_000_000_000_000)
    private var sides: [Side] = []

    func add(_ added: Side...) {
        for side in added {
            sides.append(side)
            side.stream.begin(at: now)
        }
    }

    /// Two ends of a call that know each other.
    static func pair(
        codec: AudioCodec = Agreement.opus, ptime: Int = 20, mux: Bool = false,
        source: any AudioSource = SilenceSource(), sink: any AudioSink = NullSink(),
        farSource: any AudioSource = SilenceSource(), farSink: any AudioSink = NullSink(),
        recorder: StereoRecorder? = nil, inactivityTimeout: Duration = .seconds(30)
    ) throws -> (simulation: Simulation, near: Side, far: Side) {
        let nearPort = try MediaPort(host: "127.0.0.1")
        let farPort = try MediaPort(host: "127.0.0.1")
        let near = try Side(
            port: nearPort, audio: Agreement.with(farPort, codec: codec, ptime: ptime, mux: mux), source: source,
            sink: sink, recorder: recorder, inactivityTimeout: inactivityTimeout)
        let far = try Side(
            port: farPort, audio: Agreement.with(nearPort, codec: codec, ptime: ptime, mux: mux), source: farSource,
            sink: farSink)
        let simulation = Simulation()
        simulation.add(near, far)
        return (simulation, near, far)
    }

    /// Moves on in steps of 5 ms; what is sent arrives 5 ms later.
    func run(_ duration: Duration, each: (MonotonicTime) -> Void = { _ in }) {
        let end = now + duration
        while now < end {
            now += .milliseconds(5)
            for side in sides {
                side.stream.receive(isControl: false, at: now)
                side.stream.receive(isControl: true, at: now)
            }
            for side in sides where side.stream.due <= now { side.stream.due = side.stream.process(at: now) }
            each(now)
        }
    }

    /// Lets time pass while the thread stands still.
    func stall(_ duration: Duration) {
        now += duration
    }
}

/// A peer made by hand: a socket that sends what it likes.
final class RawPeer {
    let descriptor: Int32
    let address: SocketAddress
    private var sequence: UInt16 = 1_000
    private var timestamp: UInt32 = 50_000

    init(host: String = "127.0.0.1") throws {
        let made = csys_socket(AF_INET, Int32(SOCK_DGRAM.rawValue), 0)
        let wanted = try SocketAddress(TransportAddress(host: host, port: 0))
        _ = wanted.withSystemAddress { Glibc.bind(made, $0, $1) }
        var storage = sockaddr_storage()
        var length = socklen_t(MemoryLayout<sockaddr_storage>.size)
        _ = withUnsafeMutablePointer(to: &storage) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { getsockname(made, $0, &length) }
        }
        descriptor = made
        address = SocketAddress(storage) ?? wanted
    }

    deinit {
        Glibc.close(descriptor)
    }

    func send(_ bytes: [UInt8], to port: UInt16) {
        guard let target = try? SocketAddress(TransportAddress(host: "127.0.0.1", port: port)) else { return }
        _ = target.withSystemAddress { pointer, length in
            csys_sendto(descriptor, bytes, bytes.count, pointer, length)
        }
    }

    /// The next datagram that arrived; nil when there is none.
    func receive() -> [UInt8]? {
        var bytes = [UInt8](repeating: 0, count: 2_048)
        let count = csys_recv(descriptor, &bytes, bytes.count)
        return count < 0 ? nil : Array(bytes[0..<count])
    }

    func receiveAll() -> [[UInt8]] {
        var all: [[UInt8]] = []
        while let datagram = receive() { all.append(datagram) }
        return all
    }

    /// The next packet of a stream of 20 ms of G.711.
    func packet(
        ssrc: UInt32 = 0x1234_5678, payloadType: UInt8 = 0, payload: [UInt8] = [UInt8](repeating: 0xFF, count: 160)
    ) -> [UInt8] {
        let header = RTPHeader(
            payloadType: payloadType, sequenceNumber: sequence, timestamp: timestamp, ssrc: ssrc)
        sequence &+= 1
        timestamp &+= UInt32(payload.count)
        var bytes = [UInt8](repeating: 0, count: RTPHeader.minimumLength)
        _ = header.write(into: &bytes)
        return bytes + payload
    }

    /// What to agree on with this peer.
    func agreement(codec: AudioCodec = Agreement.pcmu, direction: MediaDirection = .sendrecv) -> NegotiatedAudio {
        NegotiatedAudio(
            codec: codec, remoteAddress: "127.0.0.1", remoteRTPPort: address.port, remoteRTCPPort: address.port &+ 1,
            direction: direction)
    }
}
