import Glibc

/// One process, not merely its number: numbers are used again, start times on the same boot are not.
public struct ProcessIdentity: Hashable, Sendable {
    /// The process's number.
    public var pid: Int32
    /// When it started, in the kernel's clock ticks since boot; nil where /proc does not tell.
    public var startTicks: UInt64?
    /// The boot it ran in (`/proc/sys/kernel/random/boot_id`); nil where /proc does not tell.
    public var bootID: String?

    /// Names a process.
    public init(pid: Int32, startTicks: UInt64?, bootID: String?) {
        self.pid = pid
        self.startTicks = startTicks
        self.bootID = bootID
    }

    /// This process.
    public static func current() -> ProcessIdentity {
        let pid = getpid()
        return ProcessIdentity(pid: pid, startTicks: kernelStatus(pid)?.startTicks, bootID: currentBootID())
    }

    /// Whether this very process runs: one of its number does, started when it was, and has not ended without being
    /// waited for.
    public var isRunning: Bool {
        // Numbers up to 0 address groups of processes.
        guard pid > 0 else { return false }
        if let bootID, let current = Self.currentBootID(), bootID != current { return false }
        // A process of another user exists, too, when the signal is not permitted.
        guard kill(pid, 0) == 0 || errno == EPERM else { return false }
        guard let status = Self.kernelStatus(pid) else { return true }
        if status.state == UInt8(ascii: "Z") || status.state == UInt8(ascii: "X") { return false }
        return startTicks == nil || startTicks == status.startTicks
    }

    /// State and start time in `/proc/<pid>/stat`, fields 3 and 22.
    private static func kernelStatus(_ pid: Int32) -> (state: UInt8, startTicks: UInt64)? {
        guard let file = try? ProtectedFile.read("/proc/\(pid)/stat", limit: 4_096),
            // The second field, the program's name, is in parentheses and may contain anything, also parentheses.
            let end = file.bytes.lastIndex(of: UInt8(ascii: ")"))
        else { return nil }
        let fields = file.bytes[end...].dropFirst().split(separator: UInt8(ascii: " "))
        guard fields.count > 19, let state = fields[0].first,
            let ticks = UInt64(String(decoding: fields[19], as: UTF8.self))
        else { return nil }
        return (state, ticks)
    }

    private static func currentBootID() -> String? {
        guard let file = try? ProtectedFile.read("/proc/sys/kernel/random/boot_id", limit: 128) else { return nil }
        let text = String(decoding: file.bytes.filter { $0 > 0x20 }, as: UTF8.self)
        return text.isEmpty ? nil : text
    }
}
