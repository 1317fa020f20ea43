import CSys
import Glibc
import Primitives
import Testing

@testable import Network

private let environment = ["PATH": "/usr/bin:/bin"]

/// Starts a shell script in the background; `$1` and on are its arguments.
private func spawn(_ script: String, _ arguments: String..., logFile: String? = nil) throws -> DetachedProcess {
    try ChildProcess.spawnDetached(
        executable: "/bin/sh", arguments: ["-c", script, "sh"] + arguments, environment: environment,
        logFile: logFile)
}

/// Ends a child that a blocking wait left behind, and collects it.
private func end(_ process: DetachedProcess) {
    process.kill(SIGKILL)
    var (exited, value) = (Int32(0), Int32(0))
    _ = csys_reap_wait(process.processID, &exited, &value)
}

extension NetworkTests {
    @Suite struct DetachedProcessTests {
        enum Way: CaseIterable, Sendable {
            case blocking
            case onLoop
        }

        /// Waits in one of the two ways; the error's code in place of a line when it fails.
        private func wait(
            _ process: DetachedProcess, _ way: Way, _ loop: EventLoop, timeout: Duration = .seconds(50)
        ) async -> Result<String, NetworkError> {
            do {
                let line =
                    switch way {
                    case .blocking: try process.waitUntilReady(timeout: timeout)
                    case .onLoop: try await process.waitUntilReady(on: loop, timeout: timeout)
                    }
                return .success(String(decoding: line, as: UTF8.self))
            } catch {
                return .failure(error as? NetworkError ?? NetworkError(.other(0), "\(error)"))
            }
        }

        private func code(_ result: Result<String, NetworkError>) -> NetworkError.Code? {
            guard case .failure(let error) = result else { return nil }
            return error.code
        }

        @Test(arguments: Way.allCases)
        func readinessIsTheLineThatTheChildWrites(_ way: Way) async throws {
            try await withLoop { loop in
                let child = try spawn(#"echo '{"ready":true}' >&$SINCHCTL_READY_FD; exec sleep 600"#)
                #expect(await wait(child, way, loop) == .success(#"{"ready":true}"#))
                #expect(kill(child.processID, 0) == 0)
                #expect(getsid(child.processID) == child.processID)
                end(child)
            }
        }

        @Test(arguments: Way.allCases)
        func aReportedFailureIsALineToo(_ way: Way) async throws {
            try await withLoop { loop in
                // Without a line end, and the child is gone.
                let child = try spawn(#"printf '{"error":"no"}' >&3; exit 78"#)
                #expect(await wait(child, way, loop) == .success(#"{"error":"no"}"#))
                if way == .blocking { end(child) }
            }
        }

        @Test(arguments: Way.allCases)
        func aSilentDeathIsSeenAtOnce(_ way: Way) async throws {
            try await withLoop { loop in
                let ended = try spawn("exit 7")
                #expect(code(await wait(ended, way, loop)) == .exited(7))
                let killed = try spawn("kill -KILL $$")
                #expect(code(await wait(killed, way, loop)) == .signalled(SIGKILL))
            }
        }

        @Test(arguments: Way.allCases)
        func aSilentChildRunsIntoTheTimeLimit(_ way: Way) async throws {
            try await withLoop { loop in
                let child = try spawn("exec sleep 600")
                #expect(code(await wait(child, way, loop, timeout: .milliseconds(50))) == .timedOut)
                #expect(kill(child.processID, 0) == 0)
                end(child)
            }
        }

        @Test(arguments: Way.allCases)
        func aChildThatClosesThePipeAndLivesOnIsNotReady(_ way: Way) async throws {
            try await withLoop { loop in
                let child = try spawn("exec 3>&-; exec sleep 600")
                #expect(code(await wait(child, way, loop)) == .closed)
                end(child)
            }
        }

        @Test(arguments: Way.allCases)
        func anEndlessReportIsRefused(_ way: Way) async throws {
            try await withLoop { loop in
                let child = try spawn("head -c 200000 /dev/zero >&3; exec sleep 600")
                #expect(code(await wait(child, way, loop)) == .tooLarge)
                end(child)
            }
        }

        @Test func theChildGetsNoOtherDescriptor() async throws {
            let directory = try ScratchDirectory()
            let log = directory.file("log")
            // One that is not close-on-exec would leak by fork and exec.
            let leaky = dup(2)
            defer { close(leaky) }
            let child = try spawn("echo to-the-log; ls /proc/self/fd | tr '\\n' ' ' >&3; echo >&3", logFile: log)
            let listed = try child.waitUntilReady(timeout: .seconds(50))
            // 3 is the pipe of the shell; ls inherits it and opens the directory.
            #expect(String(decoding: listed, as: UTF8.self) == "0 1 2 3 4 ")
            var (exited, value) = (Int32(0), Int32(0))
            #expect(csys_reap_wait(child.processID, &exited, &value) == 1)
            let file = try FileDescriptor(csys_open(log, O_RDONLY, 0), "open the log")
            var text = [UInt8](repeating: 0, count: 100)
            #expect(read(file.number, &text, 100) == 11)
            #expect(FileIdentity(path: log)?.permissions == 0o600)
        }

        @Test func theChildStartsWithDefaultSignals() throws {
            // A process that ignores or blocks signals must not hand that on.
            let signals = [SIGTERM, SIGUSR1]
            #expect(csys_signals_block(signals, 2) == 0)
            // The last 31 signals' bits: glibc itself ignores the two that it keeps for its own use, 32 and 33.
            let child = try spawn(
                "sed -nE 's/^Sig(Blk|Ign).*(.{8})$/\\1 \\2/p' /proc/$$/status | tr '\\n' ' ' >&3; echo >&3")
            #expect(csys_signals_unblock(signals, 2) == 0)
            let masks = String(decoding: try child.waitUntilReady(timeout: .seconds(50)), as: UTF8.self)
            #expect(masks == "Blk 00000000 Ign 80000000 " || masks == "Blk 00000000 Ign 00000000 ")
            end(child)
        }

        @Test func theLoopCollectsAChildThatEndsLater() async throws {
            try await withLoop { loop in
                let child = try spawn("echo ready >&3; exec sleep 600")
                _ = try await child.waitUntilReady(on: loop, timeout: .seconds(50))
                let collected = Inbox<Bool>()
                let processID = child.processID
                let ending = try FileDescriptor(csys_pidfd_open(processID), "watch the child")
                try await loop.call {
                    let watch = WatchHolder()
                    watch.handle = try loop.watch(fd: ending.number, events: .read) { _ in
                        watch.handle?.cancel()
                        // After the other handlers of this turn.
                        loop.execute { collected.put(kill(processID, 0) != 0) }
                    }
                }
                child.kill(SIGKILL)
                #expect(await collected.next())
            }
        }

        @Test func aMissingProgramIsAnError() throws {
            let before = try openDescriptors()
            let missing = errorCode {
                _ = try ChildProcess.spawnDetached(
                    executable: "/nonexistent/program", arguments: [], environment: [:])
            }
            #expect(missing == .other(ENOENT))
            #expect(try openDescriptors() == before)
        }

        @Test func theChildsEndReportsOnce() throws {
            let (readEnd, writeEnd) = try ChildProcess.makePipe()
            let number = dup(writeEnd.number)
            writeEnd.close()
            setenv("TEST_READY_FD", "\(number)", 1)
            let pipe = try #require(ReadinessPipe.takeFromEnvironment(variable: "TEST_READY_FD"))
            #expect(ReadinessPipe.takeFromEnvironment(variable: "TEST_READY_FD") == nil)
            pipe.report(Array("ok".utf8))
            pipe.report(Array("again".utf8))
            var bytes = [UInt8](repeating: 0, count: 10)
            #expect(read(readEnd.number, &bytes, 10) == 3)
            #expect(read(readEnd.number, &bytes, 10) == 0)
            setenv("TEST_READY_FD", "1", 1)
            #expect(ReadinessPipe.takeFromEnvironment(variable: "TEST_READY_FD") == nil)
        }
    }

    @Suite struct CapturedProcessTests {
        private func run(
            _ script: String, _ loop: EventLoop, timeout: Duration = .seconds(50), limit: Int = 65_536
        ) async throws -> ProcessOutput {
            try await ChildProcess.run(
                ["sh", "-c", script], environment: environment, timeout: timeout, outputLimit: limit, on: loop)
        }

        private func code(_ body: () async throws -> ProcessOutput) async -> NetworkError.Code? {
            do {
                _ = try await body()
                return nil
            } catch {
                return (error as? NetworkError)?.code
            }
        }

        @Test func outputErrorsAndStatusComeBack() async throws {
            let before = try openDescriptors()
            try await withLoop { loop in
                let result = try await run("echo token; echo trouble >&2; exit 3", loop)
                #expect(result.output == Array("token\n".utf8))
                #expect(result.errorOutput == Array("trouble\n".utf8))
                #expect(result.status == .exited(3))
                #expect(try await run("kill -TERM $$", loop).status == .signalled(SIGTERM))
                #expect(try await run("cat; echo \"$HOME\"", loop).output == [10])
            }
            #expect(try openDescriptors() == before)
        }

        @Test func whatFitsIsTakenAndMoreIsNot() async throws {
            try await withLoop { loop in
                let exact = try await run("head -c 65536 /dev/zero", loop)
                #expect(exact.output.count == 65_536)
                #expect(await code { try await run("head -c 65537 /dev/zero", loop) } == .tooLarge)
                #expect(await code { try await run("cat /dev/zero", loop) } == .tooLarge)
            }
        }

        @Test func theTimeLimitKillsTheWholeGroup() async throws {
            try await withLoop { loop in
                // The sleeping grandchild holds the pipe open; the shell ignores polite signals.
                let script = "trap '' TERM; sleep 600 & wait; wait"
                #expect(await code { try await run(script, loop, timeout: .milliseconds(50)) } == .timedOut)
            }
        }

        @Test func aProcessLeftBehindIsNotWaitedFor() async throws {
            try await withLoop { loop in
                let result = try await run("sleep 600 & echo $!", loop)
                let left = try #require(
                    Int32(String(decoding: result.output.dropLast(), as: UTF8.self)))
                #expect(kill(left, SIGKILL) == 0)
            }
        }

        @Test func commandsThatCannotRunAreErrors() async throws {
            try await withLoop { loop in
                let missing = await code {
                    try await ChildProcess.run(
                        ["no-such-program-here"], environment: environment, timeout: .seconds(5), on: loop)
                }
                #expect(missing == .other(ENOENT))
                let empty = await code {
                    try await ChildProcess.run([], environment: environment, timeout: .seconds(5), on: loop)
                }
                #expect(empty == .invalidAddress)
            }
        }

        @Test func stoppingTheLoopKillsTheCommand() async throws {
            let loop = try EventLoop(name: "killed")
            let started = Inbox<Void>()
            async let result = code {
                loop.execute { loop.execute { started.put(()) } }
                return try await run("exec sleep 600", loop)
            }
            await started.next()
            loop.stop()
            #expect(await result == .closed)
        }
    }

    @Suite struct FileLockTests {
        @Test func aLockIsForOneHolder() throws {
            let directory = try ScratchDirectory()
            let path = directory.file("lock")
            let lock = try FileLock.acquire(path)
            #expect(errorCode { _ = try FileLock.acquire(path) } == .alreadyHeld(getpid()))
            lock.release()
            let again = try FileLock.acquire(path)
            again.release()
            let link = directory.file("link")
            #expect(symlink(path, link) == 0)
            #expect(errorCode { _ = try FileLock.acquire(link) } == .notPermitted)
            #expect(FileIdentity(path: path)?.permissions == 0o600)
        }

        @Test func anotherProcessHoldsItUntilItDies() throws {
            let directory = try ScratchDirectory()
            let path = directory.file("lock")
            let script = #"exec 9<>"$1"; flock 9; echo $$ >&9; echo held >&3; exec sleep 600"#
            let holder = try spawn(script, path)
            #expect(try holder.waitUntilReady(timeout: .seconds(50)) == Array("held".utf8))
            #expect(errorCode { _ = try FileLock.acquire(path) } == .alreadyHeld(holder.processID))
            end(holder)
            // Not even a shorter id of ours leaves the old one's digits behind.
            let lock = try FileLock.acquire(path)
            #expect(errorCode { _ = try FileLock.acquire(path) } == .alreadyHeld(getpid()))
            lock.release()
        }

        @Test func childrenDoNotInheritIt() throws {
            let directory = try ScratchDirectory()
            let path = directory.file("lock")
            let lock = try FileLock.acquire(path)
            let child = try spawn("echo up >&3; exec sleep 600")
            #expect(try child.waitUntilReady(timeout: .seconds(50)) == Array("up".utf8))
            lock.release()
            try FileLock.acquire(path).release()
            end(child)
        }
    }

    @Suite struct SignalWatcherTests {
        @Test func blockedSignalsArriveOnTheLoop() async throws {
            try await withLoop { loop in
                let inbox = Inbox<Int32>()
                try await loop.call {
                    _ = try SignalWatcher(loop: loop, signals: [SIGUSR1, SIGUSR2]) { signal in
                        #expect(loop.isOnLoop)
                        inbox.put(signal)
                    }
                    // To this thread: the test process has others that do not block the signals.
                    pthread_kill(pthread_self(), SIGUSR2)
                    pthread_kill(pthread_self(), SIGUSR1)
                }
                #expect(await Set([inbox.next(), inbox.next()]) == [SIGUSR1, SIGUSR2])
            }
        }
    }
}

/// Touched on the loop only.
private final class WatchHolder: @unchecked Sendable {
    var handle: WatchHandle?
}
