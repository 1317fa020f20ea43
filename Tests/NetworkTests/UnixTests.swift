import CSys
import Glibc
import Primitives
import Testing

@testable import Network

/// The code of the error that `body` throws; nil when it throws none.
func errorCode(_ body: () throws -> Void) -> NetworkError.Code? {
    do {
        try body()
        return nil
    } catch {
        return (error as? NetworkError)?.code
    }
}

extension NetworkTests {
    @Suite struct UnixListenerTests {
        private func fails(
            _ loop: EventLoop, _ path: String, with expected: NetworkError.Code
        ) async throws {
            let code = try await loop.call { errorCode { _ = try UnixListener(loop: loop, path: path) } }
            #expect(code == expected)
        }

        @Test func peersTalkAndKnowEachOther() async throws {
            let directory = try ScratchDirectory()
            let before = try openDescriptors()
            try await withLoop { loop in
                let path = directory.file("control.sock")
                let (events, accepted) = (Inbox<StreamEvent>(), Inbox<UnixConnection>())
                let answers = Inbox<StreamEvent>()
                let listener = try await loop.call {
                    let listener = try UnixListener(loop: loop, path: path)
                    listener.onConnection = { connection in
                        #expect(connection.credentials?.processID == getpid())
                        connection.report(to: events)
                        accepted.put(connection)
                    }
                    return listener
                }
                let client = try await loop.call {
                    let client = UnixConnection.connect(loop: loop, path: path)
                    client.report(to: answers)
                    client.send(pattern(100_000))
                    return client
                }
                #expect(await events.next() == .open)
                #expect(await answers.nextChange() == .open)
                #expect(try await events.bytes(100_000) == pattern(100_000))
                let server = await accepted.next()
                try await loop.call {
                    #expect(client.credentials?.userID == geteuid())
                    #expect(client.remoteAddress == nil)
                    server.send([1, 2, 3])
                    server.close()
                }
                #expect(try await answers.bytes(3) == [1, 2, 3])
                #expect(await answers.nextChange() == .closed(nil))
                #expect(await events.nextChange() == .closed(nil))
                try await loop.call { listener.close() }
                #expect(access(path, F_OK) != 0)
            }
            #expect(try openDescriptors() == before)
        }

        @Test func theSocketIsForItsOwnerOnlyWhateverTheUmask() async throws {
            let directory = try ScratchDirectory()
            try await withLoop { loop in
                let saved = umask(0)
                defer { umask(saved) }
                let path = directory.file("open.sock")
                _ = try await loop.call { try UnixListener(loop: loop, path: path) }
                #expect(FileIdentity(path: path)?.permissions == 0o600)
            }
        }

        @Test func anotherUsersProcessIsClosedAndCounted() async throws {
            let directory = try ScratchDirectory()
            try await withLoop { loop in
                let path = directory.file("private.sock")
                let events = Inbox<StreamEvent>()
                let listener = try await loop.call {
                    // Nobody here runs as this user, so we are the others.
                    let listener = try UnixListener(loop: loop, path: path, trustedUserIDs: [geteuid() &+ 1])
                    listener.onConnection = { _ in Issue.record("let in") }
                    UnixConnection.connect(loop: loop, path: path).report(to: events)
                    return listener
                }
                #expect(await events.next() == .open)
                #expect(await events.next() == .closed(nil))
                #expect(try await loop.call { listener.statistics.untrusted } == 1)
            }
        }

        @Test func aClientRefusesAnotherUsersServer() async throws {
            let directory = try ScratchDirectory()
            try await withLoop { loop in
                let path = directory.file("planted.sock")
                let events = Inbox<StreamEvent>()
                let seen = Inbox<StreamEvent>()
                try await loop.call {
                    let listener = try UnixListener(loop: loop, path: path)
                    listener.onConnection = { $0.report(to: seen) }
                    let client = UnixConnection.connect(loop: loop, path: path, trustedUserIDs: [geteuid() &+ 1])
                    client.report(to: events)
                    client.send(Array("secret".utf8))
                }
                #expect(await events.next() == .closed(.notPermitted))
                #expect(await seen.next() == .open)
                #expect(await seen.next() == .closed(nil))
                let refused = errorCode {
                    _ = try UnixLineClient(path: path, trustedUserIDs: [geteuid() &+ 1])
                }
                #expect(refused == .notPermitted)
            }
        }

        @Test func badPlacesAreRefused() async throws {
            let directory = try ScratchDirectory()
            try await withLoop { loop in
                try await fails(loop, "", with: .invalidAddress)
                try await fails(loop, directory.file(String(repeating: "x", count: 108)), with: .invalidAddress)
                try await fails(loop, directory.file("missing/x.sock"), with: .other(ENOENT))

                let link = directory.file("link.sock")
                #expect(symlink("/nowhere", link) == 0)
                try await fails(loop, link, with: .notPermitted)

                let file = directory.file("file.sock")
                close(try NetworkError.check(csys_open(file, O_CREAT | O_WRONLY, 0o600), "create"))
                try await fails(loop, file, with: .notPermitted)
                #expect(access(file, F_OK) == 0)

                #expect(chmod(directory.path, 0o770) == 0)
                try await fails(loop, directory.file("x.sock"), with: .notPermitted)
                #expect(chmod(directory.path, 0o700) == 0)

                let other = try ScratchDirectory()
                let directoryLink = other.file("directory")
                #expect(symlink(directory.path, directoryLink) == 0)
                try await fails(loop, directoryLink + "/x.sock", with: .notPermitted)
            }
        }

        @Test func theLongestPathWorks() async throws {
            let directory = try ScratchDirectory()
            let name = String(repeating: "x", count: 107 - directory.path.utf8.count - 1)
            try await withLoop { loop in
                let path = directory.file(name)
                #expect(path.utf8.count == 107)
                _ = try await loop.call { try UnixListener(loop: loop, path: path) }
                _ = try UnixLineClient(path: path)
            }
        }

        @Test func aStaleSocketIsReplacedAndALiveOneIsNot() async throws {
            let directory = try ScratchDirectory()
            let path = directory.file("stale.sock")
            try await withLoop { loop in
                // A process that was killed leaves its socket behind.
                let dead = try FileDescriptor(csys_socket(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0), "open")
                let address = try UnixAddress(path: path)
                #expect(address.withSystemAddress { bind(dead.number, $0, $1) } == 0)
                #expect(listen(dead.number, 1) == 0)
                try await fails(loop, path, with: .addressInUse)
                dead.close()
                let listener = try await loop.call { try UnixListener(loop: loop, path: path) }
                try await fails(loop, path, with: .addressInUse)

                // Replaced behind its back: the newcomer's socket is not the listener's to remove.
                #expect(unlink(path) == 0)
                let newcomer = try FileDescriptor(csys_socket(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0), "open")
                #expect(address.withSystemAddress { bind(newcomer.number, $0, $1) } == 0)
                try await loop.call { listener.close() }
                #expect(access(path, F_OK) == 0)
            }
        }

        @Test func aMissingServerIsReported() async throws {
            let directory = try ScratchDirectory()
            try await withLoop { loop in
                let events = Inbox<StreamEvent>()
                let path = directory.file("nobody.sock")
                loop.execute { UnixConnection.connect(loop: loop, path: path).report(to: events) }
                #expect(await events.next() == .closed(.other(ENOENT)))
            }
        }
    }

    @Suite struct UnixLineClientTests {
        /// A server that answers what `answer` says, for each piece that it receives.
        private func serve(
            _ loop: EventLoop, _ path: String, _ answer: @escaping @Sendable (UnixConnection, [UInt8]) -> Void
        ) async throws {
            try await loop.call {
                var options = UnixListener.Options()
                options.connection.sendQueueLimit = 64 << 20
                let listener = try UnixListener(loop: loop, path: path, options: options)
                listener.onConnection = { connection in
                    connection.onData = { [unowned connection] in answer(connection, $0) }
                }
            }
        }

        @Test func linesGoBothWays() async throws {
            let directory = try ScratchDirectory()
            let path = directory.file("line.sock")
            try await withLoop { loop in
                try await serve(loop, path) { $0.send($1) }
                let client = try UnixLineClient(path: path)
                #expect(client.credentials.processID == getpid())
                for line in ["first", "", "second\r", "third"] { try client.send(line) }
                #expect(try client.receiveLine(timeout: nil) == Array("first".utf8))
                #expect(try client.receiveLine(timeout: nil) == [])
                // CRLF is a line end too.
                #expect(try client.receiveLine(timeout: nil) == Array("second".utf8))
                #expect(try client.receiveLine(timeout: .seconds(50)) == Array("third".utf8))
            }
        }

        @Test func aLineMayComeInPieces() async throws {
            let directory = try ScratchDirectory()
            let path = directory.file("pieces.sock")
            try await withLoop { loop in
                try await serve(loop, path) { connection, _ in
                    connection.send(Array("ha".utf8))
                    loop.schedule(after: .milliseconds(5)) {
                        connection.send(Array("lf\nne".utf8))
                        connection.send(Array("xt\nrest".utf8))
                        connection.close()
                    }
                }
                let client = try UnixLineClient(path: path)
                try client.send("go")
                #expect(try client.receiveLine(timeout: nil) == Array("half".utf8))
                #expect(try client.receiveLine(timeout: nil) == Array("next".utf8))
                #expect(errorCode { _ = try client.receiveLine(timeout: nil) } == .closed)
            }
        }

        @Test func theEndAfterAWholeLineIsNil() async throws {
            let directory = try ScratchDirectory()
            let path = directory.file("end.sock")
            try await withLoop { loop in
                try await serve(loop, path) { connection, _ in
                    connection.send(Array("bye\n".utf8))
                    connection.close()
                }
                let client = try UnixLineClient(path: path)
                try client.send("quit")
                #expect(try client.receiveLine(timeout: nil) == Array("bye".utf8))
                #expect(try client.receiveLine(timeout: nil) == nil)
            }
        }

        @Test func silenceEndsInATimeOutThatLosesNothing() async throws {
            let directory = try ScratchDirectory()
            let path = directory.file("silent.sock")
            try await withLoop { loop in
                try await serve(loop, path) { connection, bytes in
                    if bytes == Array("1\n".utf8) {
                        connection.send(Array("be".utf8))
                    } else {
                        connection.send(Array("gun\n".utf8))
                    }
                }
                let client = try UnixLineClient(path: path)
                try client.send("1")
                #expect(errorCode { _ = try client.receiveLine(timeout: .milliseconds(20)) } == .timedOut)
                try client.send("2")
                #expect(try client.receiveLine(timeout: nil) == Array("begun".utf8))
            }
        }

        @Test func aLongLinePassesAndATooLongOneDoesNot() async throws {
            let directory = try ScratchDirectory()
            let path = directory.file("long.sock")
            try await withLoop { loop in
                let long = [UInt8](repeating: 66, count: 5 << 20)
                try await serve(loop, path) { connection, bytes in
                    if bytes == Array("long\n".utf8) {
                        connection.send(long + [10])
                    } else {
                        connection.send([UInt8](repeating: 65, count: UnixLineClient.longestLine + 100_000))
                    }
                }
                let client = try UnixLineClient(path: path)
                try client.send("long")
                #expect(try client.receiveLine(timeout: nil) == long)
                try client.send("endless")
                #expect(errorCode { _ = try client.receiveLine(timeout: nil) } == .tooLarge)
            }
        }

        @Test func aMissingServerIsReported() throws {
            let directory = try ScratchDirectory()
            #expect(errorCode { _ = try UnixLineClient(path: directory.file("none.sock")) } == .other(ENOENT))
            let path = directory.file("dead.sock")
            let dead = try FileDescriptor(csys_socket(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0), "open")
            #expect(try UnixAddress(path: path).withSystemAddress { bind(dead.number, $0, $1) } == 0)
            #expect(errorCode { _ = try UnixLineClient(path: path) } == .connectionRefused)
        }

        @Test func aServerThatAcceptsNobodyRunsIntoTheTimeOut() throws {
            let directory = try ScratchDirectory()
            let path = directory.file("full.sock")
            let full = try FileDescriptor(csys_socket(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0), "open")
            #expect(try UnixAddress(path: path).withSystemAddress { bind(full.number, $0, $1) } == 0)
            #expect(listen(full.number, 0) == 0)
            let first = try UnixLineClient(path: path)
            #expect(errorCode { _ = try UnixLineClient(path: path, timeout: .milliseconds(20)) } == .timedOut)
            first.close()
        }
    }
}
