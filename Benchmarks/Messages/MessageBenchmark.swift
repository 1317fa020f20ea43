import CAllocations
@preconcurrency import Glibc
import SIP

/// Reads SIP messages again and again on one core, and prints as JSON how many of each a second makes and what one takes
/// from the heap. Arguments: files with a message each, besides the typical INVITE that is built in.
@main
enum MessageBenchmark {
    /// An INVITE as a client behind one proxy receives it: 16 headers, a session description with one audio stream.
    private static let typical = message(
        head: """
            INVITE sip:bob@192.0.2.201:49152;transport=tls SIP/2.0
            Via: SIP/2.0/TLS 192.0.2.10:5061;branch=z9hG4bK3f8a11c09e7742d1
            Via: SIP/2.0/TLS 192.0.2.101:38112;branch=z9hG4bKnashds8a4c1;rport=38112;received=198.51.100.7
            Record-Route: <sip:192.0.2.10:5061;transport=tls;lr>
            Max-Forwards: 69
            From: "Alice" <sip:alice@example.com>;tag=9fxced76sl81
            To: <sip:bob@example.com>
            Call-ID: 3848276298220188511-5512@192.0.2.101
            CSeq: 314159 INVITE
            Contact: <sip:alice@198.51.100.7:38112;transport=tls>
            Allow: INVITE, ACK, CANCEL, BYE, OPTIONS, REFER, NOTIFY, INFO, PRACK, UPDATE
            Supported: replaces, outbound, timer
            Session-Expires: 1800;refresher=uac
            User-Agent: Example Phone 4.2
            Content-Type: application/sdp
            """,
        body: """
            v=0
            o=- 3724394400 3724394405 IN IP4 198.51.100.7
            s=-
            c=IN IP4 198.51.100.7
            t=0 0
            m=audio 49170 RTP/AVP 96 0 8 101
            a=rtpmap:96 opus/48000/2
            a=rtpmap:101 telephone-event/8000
            a=fmtp:101 0-16
            a=ptime:20
            a=sendrecv

            """)

    private static func message(head: String, body: String) -> [UInt8] {
        func wire(_ text: String) -> String {
            text.split(separator: "\n", omittingEmptySubsequences: false).joined(separator: "\r\n")
        }
        let content = wire(body)
        return Array((wire(head) + "\r\nContent-Length: \(content.utf8.count)\r\n\r\n" + content).utf8)
    }

    static func main() {
        var messages = [("typical INVITE", typical)]
        for path in CommandLine.arguments.dropFirst() {
            guard let bytes = read(path) else {
                fputs("message-benchmark: cannot read \(path)\n", stderr)
                exit(66)
            }
            messages.append((path.split(separator: "/").last.map { String($0) } ?? path, bytes))
        }
        for (name, bytes) in messages {
            for (work, run) in works {
                let result = measure(bytes, run)
                print(
                    """
                    {"message": "\(name)", "bytes": \(bytes.count), "work": "\(work)", "perSecond": \(result.perSecond), \
                    "allocatedBytes": \(result.bytes), "allocations": \(result.allocations)}
                    """)
            }
        }
    }

    /// What is done with a message; each gives something that depends on the work, so that it is not left out.
    private static let works: [(String, @Sendable ([UInt8]) -> Int)] = [
        ("parse", { bytes in (try? SIPMessage.parse(bytes))?.headers.count ?? -1 }),
        (
            "parse and validate",
            { bytes in
                guard let message = try? SIPMessage.parse(bytes) else { return -1 }
                return message.validate() == nil ? message.headers.count : -2
            }
        ),
        (
            "parse, validate and read",
            { bytes in
                guard let message = try? SIPMessage.parse(bytes), message.validate() == nil else { return -1 }
                let hop = message.topVia?.branch?.utf8.count ?? 0
                let tags = (message.from?.tag?.utf8.count ?? 0) + (message.to?.tag?.utf8.count ?? 0)
                let identity = (message.callID?.utf8.count ?? 0) + Int(message.cseq?.number ?? 0)
                return hop + tags + identity + message.routes.count + message.contacts.count
                    + (message.maxForwards ?? 0)
            }
        ),
        (
            "parse and print",
            { bytes in
                guard let message = try? SIPMessage.parse(bytes) else { return -1 }
                return (try? message.encoded().count) ?? -1
            }
        ),
    ]

    private static func measure(
        _ bytes: [UInt8], _ run: ([UInt8]) -> Int
    ) -> (perSecond: Int, bytes: UInt64, allocations: UInt64) {
        var sum = 0
        for _ in 0..<2_000 { sum &+= run(bytes) }
        let rounds = 20_000
        let before = allocations_so_far()
        for _ in 0..<rounds { sum &+= run(bytes) }
        let after = allocations_so_far()
        // The best of several: whatever else the machine does only takes time away.
        var best = Double.infinity
        for _ in 0..<15 {
            let start = processorTime()
            for _ in 0..<rounds { sum &+= run(bytes) }
            best = min(best, processorTime() - start)
        }
        if sum == .min { print(sum) }
        return (
            Int(Double(rounds) / best), (after.bytes - before.bytes) / UInt64(rounds),
            (after.count - before.count) / UInt64(rounds)
        )
    }

    private static func processorTime() -> Double {
        var time = timespec()
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time)
        return Double(time.tv_sec) + Double(time.tv_nsec) / 1e9
    }

    private static func read(_ path: String) -> [UInt8]? {
        guard let file = fopen(path, "r") else { return nil }
        defer { fclose(file) }
        var bytes = [UInt8](repeating: 0, count: 65_536)
        let count = fread(&bytes, 1, bytes.count, file)
        return Array(bytes.prefix(count))
    }
}
