import CSys
import Glibc
import Primitives
import Testing

@testable import Network

private enum DatagramEvent: Sendable, Equatable {
    case datagram([UInt8], TransportAddress)
    case error(NetworkError.Code, TransportAddress?)
}

extension UDPSocket {
    /// Sends all events to an inbox. On the loop.
    fileprivate func report(to inbox: Inbox<DatagramEvent>) {
        onDatagram = { inbox.put(.datagram($0, $1)) }
        onError = { inbox.put(.error($0.code, $1)) }
    }
}

/// An address where nobody listens: its socket was bound and closed.
func deadUDPAddress(_ loop: EventLoop, host: String = "127.0.0.1") async throws -> TransportAddress {
    try await loop.call {
        let socket = try UDPSocket(loop: loop, bind: TransportAddress(host: host, port: 0))
        socket.close()
        return socket.localAddress
    }
}

extension NetworkTests {
    @Suite struct UDPSocketTests {
        @Test(arguments: ["127.0.0.1", "::1"])
        func datagramsArriveWithTheirSender(_ host: String) async throws {
            try await withLoop { loop in
                let inbox = Inbox<DatagramEvent>()
                let (sender, receiver) = try await loop.call {
                    let sockets = (
                        try UDPSocket(loop: loop, bind: TransportAddress(host: host, port: 0)),
                        try UDPSocket(loop: loop, bind: TransportAddress(host: host, port: 0))
                    )
                    sockets.1.report(to: inbox)
                    return sockets
                }
                #expect(sender.localAddress.host == host)
                #expect(sender.localAddress.port != 0)
                for size in [0, 1, 1_200, 60_000] {
                    loop.execute { sender.send(pattern(size), to: receiver.localAddress) }
                    #expect(await inbox.next() == .datagram(pattern(size), sender.localAddress))
                }
                let statistics = try await loop.call { (sender.statistics, receiver.statistics) }
                #expect(statistics.0.sent == 4)
                #expect(statistics.1.received == 4)
            }
        }

        @Test(arguments: ["127.0.0.1", "::1"])
        func aRefusedDatagramIsReportedWithThePeer(_ host: String) async throws {
            try await withLoop { loop in
                let inbox = Inbox<DatagramEvent>()
                let dead = try await deadUDPAddress(loop, host: host)
                try await loop.call {
                    let socket = try UDPSocket(loop: loop, bind: TransportAddress(host: host, port: 0))
                    socket.report(to: inbox)
                    socket.send([1], to: dead)
                }
                #expect(await inbox.next() == .error(.connectionRefused, dead))
            }
        }

        @Test func anErrorAboutOnePeerDoesNotHoldUpAnother() async throws {
            try await withLoop { loop in
                let (errors, datagrams) = (Inbox<DatagramEvent>(), Inbox<DatagramEvent>())
                let dead = try await deadUDPAddress(loop)
                let socket = try await loop.call {
                    let receiver = try UDPSocket(loop: loop, bind: anyLoopback)
                    receiver.report(to: datagrams)
                    let socket = try UDPSocket(loop: loop, bind: anyLoopback)
                    socket.report(to: errors)
                    // The system reports each refusal through the next send, which must still go out.
                    for index in 0..<50 {
                        socket.send([0], to: dead)
                        socket.send([UInt8(index)], to: receiver.localAddress)
                    }
                    return socket
                }
                for index in 0..<50 {
                    #expect(await datagrams.next() == .datagram([UInt8(index)], socket.localAddress))
                }
                #expect(await errors.next() == .error(.connectionRefused, dead))
                #expect(try await loop.call { socket.statistics.dropped } == 0)
            }
        }

        @Test func aDatagramLongerThanAllowedIsDroppedAndCounted() async throws {
            try await withLoop { loop in
                let inbox = Inbox<DatagramEvent>()
                let receiver = try await loop.call {
                    var options = UDPSocket.Options()
                    options.maximumDatagramBytes = 100
                    let receiver = try UDPSocket(loop: loop, bind: anyLoopback, options: options)
                    receiver.report(to: inbox)
                    let sender = try UDPSocket(loop: loop, bind: anyLoopback)
                    for size in [101, 5_000, 100] { sender.send(pattern(size), to: receiver.localAddress) }
                    return receiver
                }
                guard case .datagram(let bytes, _) = await inbox.next() else {
                    Issue.record("an error instead of the datagram")
                    return
                }
                #expect(bytes == pattern(100))
                #expect(try await loop.call { receiver.statistics.truncated } == 2)
            }
        }

        @Test func whatCannotBeSentIsReported() async throws {
            try await withLoop { loop in
                let inbox = Inbox<DatagramEvent>()
                let ipv6 = TransportAddress(host: "::1", port: 9)
                let name = TransportAddress(host: "example.com", port: 9)
                let local = TransportAddress(host: "127.0.0.1", port: 9)
                try await loop.call {
                    let socket = try UDPSocket(loop: loop, bind: anyLoopback)
                    socket.report(to: inbox)
                    socket.send([1], to: ipv6)
                    socket.send([1], to: name)
                    socket.send(pattern(70_000), to: local)
                }
                #expect(await inbox.next() == .error(.invalidAddress, ipv6))
                #expect(await inbox.next() == .error(.invalidAddress, name))
                #expect(await inbox.next() == .error(.tooLarge, local))
            }
        }

        @Test func aTakenPortIsRefused() async throws {
            try await withLoop { loop in
                let code = try await loop.call { () -> NetworkError.Code? in
                    let first = try UDPSocket(loop: loop, bind: anyLoopback)
                    do {
                        _ = try UDPSocket(loop: loop, bind: first.localAddress)
                        return nil
                    } catch let error as NetworkError {
                        return error.code
                    }
                }
                #expect(code == .addressInUse)
            }
        }

        @Test func aHandlerMayCloseItsSocket() async throws {
            let before = try openDescriptors()
            try await withLoop { loop in
                let inbox = Inbox<Int>()
                let receiver = try await loop.call {
                    let receiver = try UDPSocket(loop: loop, bind: anyLoopback)
                    receiver.onDatagram = { bytes, _ in
                        receiver.close()
                        inbox.put(bytes.count)
                    }
                    let sender = try UDPSocket(loop: loop, bind: anyLoopback)
                    for _ in 0..<5 { sender.send([1, 2], to: receiver.localAddress) }
                    return receiver
                }
                #expect(await inbox.next() == 2)
                #expect(try await loop.call { receiver.statistics.received } == 1)
                #expect(inbox.rest.isEmpty)
            }
            // The sender was left open: the loop's end closed it.
            #expect(try openDescriptors() == before)
        }

        @Test func severalDatagramsComeInOneSystemCall() throws {
            // The media path's batch receive.
            let receiver = try FileDescriptor(csys_socket(AF_INET, Int32(SOCK_DGRAM.rawValue), 0), "open")
            let local = SocketAddress(ipv4: 0x7F00_0001, port: 0)
            #expect(local.withSystemAddress { bind(receiver.number, $0, $1) } == 0)
            let target = try receiver.localSocketAddress()
            let sender = try FileDescriptor(csys_socket(AF_INET, Int32(SOCK_DGRAM.rawValue), 0), "open")
            for size in [10, 300, 20] {
                let bytes = pattern(size)
                let sent = target.withSystemAddress { csys_sendto(sender.number, bytes, bytes.count, $0, $1) }
                #expect(sent == size)
            }
            let space = UnsafeMutableRawPointer.allocate(byteCount: 4 * 200, alignment: 16)
            defer { space.deallocate() }
            var datagrams = (0..<4).map { index in
                csys_datagram(
                    bytes: space + 200 * index, capacity: 200, length: 0, truncated: 0, address: sockaddr_storage(),
                    address_length: 0)
            }
            #expect(csys_recv_datagrams(receiver.number, &datagrams, 4) == 3)
            #expect(datagrams.prefix(3).map(\.length) == [10, 200, 20])
            #expect(datagrams.prefix(3).map(\.truncated) == [0, 1, 0])
            #expect(SocketAddress(datagrams[0].address) == (try sender.localSocketAddress()).loopback)
            #expect(csys_recv_datagrams(receiver.number, &datagrams, 4) == 0 - EAGAIN)
        }
    }

    @Suite struct SocketAddressTests {
        @Test(arguments: [
            ("127.0.0.1", true, "127.0.0.1:5060"), ("10.255.0.9", false, "10.255.0.9:5060"),
            ("::1", true, "[::1]:5060"), ("2001:DB8:0:0::1", false, "[2001:db8::1]:5060"),
            ("fe80::1%1", false, "[fe80::1%1]:5060"),
        ])
        func numericAddressesRoundTrip(_ text: String, _ isLoopback: Bool, _ printed: String) throws {
            let address = try SocketAddress(TransportAddress(host: text, port: 5060))
            #expect(address.description == printed)
            #expect(address.isLoopback == isLoopback)
            let copy = address.withSystemAddress { pointer, length in
                var storage = sockaddr_storage()
                withUnsafeMutableBytes(of: &storage) {
                    $0.copyMemory(from: UnsafeRawBufferPointer(start: pointer, count: Int(length)))
                }
                return SocketAddress(storage)
            }
            #expect(copy == address)
        }

        @Test(arguments: [
            "", "localhost", "1.2.3", "1.2.3.4.5", "[::1]", "::1%", "fe80::1%nosuchinterface", "1.2.3.4\0",
        ])
        func otherTextIsRefused(_ text: String) {
            #expect(throws: NetworkError.self) { try SocketAddress(TransportAddress(host: text, port: 1)) }
        }

        @Test func theLocalAddressTowardLoopbackIsLoopback() throws {
            let toward = TransportAddress(host: "127.0.0.1", port: 5060)
            #expect(try LocalAddresses.localAddress(toward: toward).host == "127.0.0.1")
            #expect(try LocalAddresses.localAddress(toward: TransportAddress(host: "::1", port: 0)).host == "::1")
        }

        @Test func errorsSayWhatFailed() {
            let error = NetworkError(errno: ECONNREFUSED, "connect to 127.0.0.1:1", hint: "start it")
            #expect(error.code == .connectionRefused)
            #expect(error.description == "cannot connect to 127.0.0.1:1: Connection refused; start it")
        }
    }
}

extension SocketAddress {
    /// An unbound sender's address is 0.0.0.0; on the wire it was the loopback.
    fileprivate var loopback: SocketAddress { SocketAddress(ipv4: 0x7F00_0001, port: port) }
}
