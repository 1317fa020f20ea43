import CSys
import Glibc

/// Starts threads of the system: for the event loop, blocking look-ups and real-time media.
public enum SystemThread {
    /// What the new thread runs.
    private final class Body: Sendable {
        let name: String
        let run: @Sendable () -> Void

        init(name: String, run: @escaping @Sendable () -> Void) {
            self.name = name
            self.run = run
        }
    }

    /// Starts a detached thread; it ends when `body` returns.
    ///
    /// - Parameters:
    ///   - name: as shown by `top -H`; 15 bytes are kept.
    ///   - body: form it in nonisolated code: a closure formed in `@MainActor` code (the top level of `main.swift`)
    ///     compiles, and traps on the other thread.
    public static func start(name: String, _ body: @escaping @Sendable () -> Void) throws(NetworkError) {
        var attributes = pthread_attr_t()
        pthread_attr_init(&attributes)
        defer { pthread_attr_destroy(&attributes) }
        pthread_attr_setdetachstate(&attributes, Int32(PTHREAD_CREATE_DETACHED))
        let context = Unmanaged.passRetained(Body(name: name, run: body))
        var thread = pthread_t()
        let error = pthread_create(
            &thread, &attributes,
            { context in
                guard let context else { return nil }
                let body = Unmanaged<Body>.fromOpaque(context).takeRetainedValue()
                _ = csys_thread_set_name(body.name)
                body.run()
                return nil
            }, context.toOpaque())
        if error != 0 {
            context.release()
            throw NetworkError(errno: error, "start the thread \"\(name)\"")
        }
    }
}
