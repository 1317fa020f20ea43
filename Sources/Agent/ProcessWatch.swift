import CSys
import Configuration
import Glibc
import Network
import Primitives
import SinchRTC

/// Tells when another process has ended. On the loop only.
final class ProcessWatch: @unchecked Sendable {
    // @unchecked: made, used and cancelled on the loop.
    private let descriptor: Int32
    private var watch: WatchHandle?

    /// Watches a process; nil when it has ended already or cannot be watched.
    ///
    /// A descriptor of the process itself is held, so its number cannot pass to another process meanwhile.
    init?(pid: Int32, on loop: EventLoop, onEnd: @escaping @Sendable () -> Void) {
        descriptor = csys_pidfd_open(pid)
        guard descriptor >= 0 else { return nil }
        watch = try? loop.watch(fd: descriptor, events: .read) { [weak self] _ in
            self?.cancel()
            onEnd()
        }
        if watch == nil { return nil }
    }

    /// Ends the watch.
    func cancel() {
        watch?.cancel()
        watch = nil
    }

    deinit {
        watch?.cancel()
        if descriptor >= 0 { close(descriptor) }
    }
}

extension AgentService {
    /// Ends the agent together with the process that started it, however that one ends.
    ///
    /// Not by a parent death signal: the kernel ties that to the thread which asked for it, and threads of a pool end.
    func follow(parent: Int32) -> Bool {
        parentWatch = ProcessWatch(pid: parent, on: loop) { [weak self] in
            guard let self else { return }
            Task { await self.terminate() }
        }
        // Asked after the descriptor is held: it is the parent's only if the parent was alive then.
        return parentWatch != nil && getppid() == parent
    }

    /// Registers anew when the embedded environment was restarted: it has forgotten its clients, and over UDP nothing
    /// tells them before the next refresh.
    func watchEnvironment(file path: String) {
        guard !isEnding else { return }
        if let running = try? EnvironmentFile.running(path),
            let watch = ProcessWatch(
                pid: running.pid, on: loop, onEnd: { [weak self] in self?.assumeIsolated { $0.environmentEnded(path) } }
            )
        {
            environmentWatch = watch
        } else {
            environmentEnded(path)
        }
    }

    private func environmentEnded(_ path: String) {
        environmentWatch = nil
        // Nobody answers this one: the registration is known to be lost at once, and `status` says so.
        client.renewRegistration()
        awaitEnvironment(path)
    }

    private func awaitEnvironment(_ path: String) {
        guard !isEnding else { return }
        _ = loop.schedule(at: loop.now + .milliseconds(500)) { [weak self] in
            self?.assumeIsolated { service in
                guard (try? EnvironmentFile.running(path)) != nil else { return service.awaitEnvironment(path) }
                service.client.renewRegistration()
                service.watchEnvironment(file: path)
            }
        }
    }
}
