import Primitives
import Testing

@testable import Network
@testable import TestCertificates

extension NetworkTests {
    @Suite struct TLSTimingTests {
        /// Both sides' work of a handshake on one thread, with an ECDSA certificate below an authority.
        @Test func aHandshakeTakesMilliseconds() async throws {
            try await withLoop { loop in
                let files = try TLSFiles()
                let authority = try TestCertificate.authority()
                let context = try files.server(authority.issue())
                let client = try files.client(trusting: [authority])
                let server = try await loop.call { try TLSTestServer(loop, context) }
                let times = Inbox<Duration>()
                var all: [Duration] = []
                for _ in 0..<50 {
                    try await loop.call {
                        let lower = TCPConnection.connect(loop: loop, to: server.listener.localAddress)
                        let stream = TLSStream(client: lower, context: client, serverName: "example.com")
                        let begin = loop.now
                        stream.onOpen = { [unowned stream] in
                            times.put(loop.now - begin)
                            stream.close()
                        }
                    }
                    all.append(await times.next())
                }
                all.sort()
                // A few milliseconds, on a machine that may be busy with other tests.
                #expect(all[0] < .milliseconds(100))
            }
        }
    }
}
