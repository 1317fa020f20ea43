/// The last events, for readers that come later (`events --since`), and who wants to hear of new ones.
struct EventHistory {
    private static let capacity = 1_000
    private(set) var recent: [AgentEvent] = []
    private(set) var nextSequence: UInt64 = 1
    private var listeners: [UInt64: (AgentEvent) -> Void] = [:]
    private var nextListener: UInt64 = 1

    /// The last event about the registration.
    private(set) var lastRegistrationEvent: String?

    mutating func append(_ event: AgentEvent) {
        nextSequence = event.seq + 1
        if event.event.hasPrefix("regist") { lastRegistrationEvent = event.event }
        recent.append(event)
        if recent.count > Self.capacity { recent.removeFirst(recent.count - Self.capacity) }
        for listener in listeners.values { listener(event) }
    }

    /// Events after `sequence` that are still kept.
    func since(_ sequence: UInt64) -> ArraySlice<AgentEvent> {
        recent.drop { $0.seq <= sequence }
    }

    mutating func listen(_ listener: @escaping (AgentEvent) -> Void) -> UInt64 {
        defer { nextListener += 1 }
        listeners[nextListener] = listener
        return nextListener
    }

    mutating func stopListening(_ number: UInt64) {
        listeners[number] = nil
    }
}
