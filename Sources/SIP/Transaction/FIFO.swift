/// A first-in, first-out queue for the actions of a state machine.
struct FIFO<Element: Sendable>: Sendable {
    private var items: [Element?] = []
    private var head = 0

    var isEmpty: Bool { head == items.count }

    mutating func append(_ element: Element) {
        items.append(element)
    }

    mutating func next() -> Element? {
        guard head < items.count else { return nil }
        let element = items[head]
        items[head] = nil
        head += 1
        if head == items.count {
            items.removeAll(keepingCapacity: head <= 64)
            head = 0
        }
        return element
    }
}
