import CSys

/// What a descriptor is ready for.
public struct IOEvents: OptionSet, Sendable, Hashable {
    /// The system's bits.
    public let rawValue: UInt32

    /// Creates a set from the system's bits.
    public init(rawValue: UInt32) {
        self.rawValue = rawValue
    }

    /// There is something to read, or a connection to accept, or the end was reached.
    public static let read = IOEvents(rawValue: CSYS_EPOLL_IN)
    /// There is room to write, or connecting is done.
    public static let write = IOEvents(rawValue: CSYS_EPOLL_OUT)
    /// An error is pending; always reported, whether asked for or not.
    public static let error = IOEvents(rawValue: CSYS_EPOLL_ERR)
    /// Both directions are closed; always reported, whether asked for or not.
    public static let hangUp = IOEvents(rawValue: CSYS_EPOLL_HUP)
}

/// One watched descriptor of an event loop. On the loop only.
public final class WatchHandle: @unchecked Sendable {
    let fd: Int32
    var token: UInt64 = 0
    private(set) var handler: (@Sendable (IOEvents) -> Void)?
    private weak var loop: EventLoop?

    init(loop: EventLoop, fd: Int32, handler: @escaping @Sendable (IOEvents) -> Void) {
        self.loop = loop
        self.fd = fd
        self.handler = handler
    }

    /// Changes what is waited for.
    public func update(events: IOEvents) {
        guard handler != nil else { return }
        loop?.update(self, events: events)
    }

    /// Ends the watch and lets go of the handler, which is not called again. A second call does nothing.
    public func cancel() {
        guard handler != nil else { return }
        loop?.cancel(self)
        handler = nil
    }

    func drop() {
        handler = nil
    }
}

/// The watches by slot. A token carries the slot's generation, so that an event that was fetched together with the
/// one whose handler cancelled the watch does not reach the slot's next user.
struct WatchTable {
    private struct Slot {
        var generation: UInt32 = 0
        var handle: WatchHandle?
    }

    private var slots: [Slot] = []
    private var free: [Int] = []

    var count: Int { slots.count - free.count }

    mutating func insert(_ handle: WatchHandle) -> UInt64 {
        let index: Int
        if let reused = free.popLast() {
            index = reused
        } else {
            index = slots.count
            slots.append(Slot())
        }
        slots[index].generation &+= 1
        slots[index].handle = handle
        return UInt64(slots[index].generation) << 32 | UInt64(index)
    }

    mutating func remove(_ handle: WatchHandle) {
        let index = Int(handle.token & 0xFFFF_FFFF)
        guard slots.indices.contains(index), slots[index].handle === handle else { return }
        slots[index].handle = nil
        free.append(index)
    }

    func find(_ token: UInt64) -> WatchHandle? {
        let index = Int(token & 0xFFFF_FFFF)
        guard slots.indices.contains(index), slots[index].generation == UInt32(token >> 32) else { return nil }
        return slots[index].handle
    }

    /// Lets go of all handlers.
    func drop() {
        for slot in slots { slot.handle?.drop() }
    }
}
