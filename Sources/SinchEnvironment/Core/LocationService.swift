import Primitives
import SIP

/// Who can be reached where: the bindings that the registrar writes and the proxy reads (RFC 3261 section 10).
///
/// Bounded in bindings, bindings of a user, and users remembered. Every read takes the time, so that a registration that
/// has run out is never used even when nobody has swept it away yet.
struct LocationService: Sendable {
    private struct Record: Sendable {
        var bindings: [Binding] = []
        /// The numbers of devices that are gone: one that comes back, over another connection, gets its own again, so
        /// that the dialogs it is a side of find it (see `DialogToken`).
        var departed: [(identity: Binding.Identity, id: UInt64)] = []
        /// Which entry of `vacated` speaks of this user, when it has no device.
        var vacancy: UInt64 = 0
    }

    private let maxBindings: Int
    private let maxPerUser: Int
    private let maxUsers: Int

    private var users: [UserKey: Record] = [:]
    private var owners: [UInt64: UserKey] = [:]
    private var byFlow: [SIPFlow: [UInt64]] = [:]
    private var byContact: [ContactKey: [UInt64]] = [:]
    private var deadlines = DeadlineQueue<UInt64>()
    private var counter: UInt64 = 0
    /// Users without a device, the longest without one first.
    private var vacated: [(user: UserKey, vacancy: UInt64)] = []
    private var vacatedStart = 0

    /// How many bindings there are, those included that ran out and were not swept yet.
    var count: Int { owners.count }

    /// How many users are remembered.
    var userCount: Int { users.count }

    /// When the next registration may run out.
    var nextExpiry: MonotonicTime? { deadlines.next }

    init(maxBindings: Int, maxPerUser: Int, maxUsers: Int) {
        self.maxBindings = max(1, maxBindings)
        self.maxPerUser = max(1, maxPerUser)
        self.maxUsers = max(1, maxUsers)
    }

    // MARK: Reading

    /// The devices of a user, the one registered last first.
    func bindings(of user: UserKey, at now: MonotonicTime) -> [Binding] {
        guard let record = users[user] else { return [] }
        return record.bindings.filter { $0.expiry > now }.sorted { $0.age > $1.age }
    }

    /// Whether the user was ever registered, as far as is remembered.
    func isKnown(_ user: UserKey) -> Bool {
        users[user] != nil
    }

    /// The device with this number.
    func binding(_ id: UInt64, at now: MonotonicTime) -> Binding? {
        guard let owner = owners[id], let record = users[owner] else { return nil }
        return record.bindings.first { $0.id == id && $0.expiry > now }
    }

    /// The device of a user called `name` that registered over `flow`; the youngest, when there are several. This is how the
    /// application of a request is known, and that its From is not forged.
    func sender(named name: String, over flow: SIPFlow, at now: MonotonicTime) -> Binding? {
        (byFlow[flow] ?? []).compactMap { binding($0, at: now) }
            .filter { $0.user.user == name }
            .max { $0.age < $1.age }
    }

    /// Whether the device `id` registered over `flow`.
    func isRegistered(_ id: UInt64, over flow: SIPFlow, at now: MonotonicTime) -> Bool {
        binding(id, at: now)?.flow == flow
    }

    /// The device of an application with this contact; the youngest, when there are several.
    func binding(at contact: SIPURI, in application: String, at now: MonotonicTime) -> Binding? {
        (byContact[ContactKey(contact)] ?? []).compactMap { binding($0, at: now) }
            .filter { $0.user.application == application }
            .max { $0.age < $1.age }
    }

    /// Whether `additions` more bindings fit.
    func hasRoom(for additions: Int) -> Bool {
        count + additions <= maxBindings
    }

    // MARK: Writing

    /// What one registration of a contact says.
    struct Registration: Sendable {
        var contact: SIPAddress
        var flow: SIPFlow
        var callID: String
        var sequence: UInt32
        var expiry: MonotonicTime
    }

    /// What became of a registration.
    struct Outcome: Sendable {
        var binding: Binding
        var isRefresh: Bool
        /// The device that made room, when the user had too many.
        var displaced: Binding?
    }

    /// Adds or renews a device. The caller has checked order and room.
    mutating func register(_ registration: Registration, for user: UserKey) -> Outcome {
        counter &+= 1
        let identity = Binding.identity(of: registration.contact)
        let old = users[user]?.bindings.first { $0.identity.matches(identity) }
        let binding = Binding(
            id: old?.id ?? takeDepartedNumber(of: identity, user) ?? counter, user: user, identity: identity,
            contact: registration.contact,
            flow: registration.flow, callID: registration.callID, sequence: registration.sequence,
            expiry: registration.expiry, age: counter)
        var displaced: Binding?
        if let old {
            detach(old)
        } else if let bindings = users[user]?.bindings, bindings.count >= maxPerUser,
            let oldest = bindings.min(by: { $0.age < $1.age })
        {
            remove(oldest)
            displaced = oldest
        }
        users[user, default: Record()].bindings.append(binding)
        owners[binding.id] = user
        byFlow[binding.flow, default: []].append(binding.id)
        byContact[ContactKey(binding.contact.uri), default: []].append(binding.id)
        // A later deadline needs no entry of its own: the old one is pushed on when it comes up.
        if old.map({ binding.expiry < $0.expiry }) ?? true {
            deadlines.push(binding.id, at: binding.expiry)
            let owners = owners
            deadlines.prune(live: owners.count) { owners[$0] != nil }
        }
        forgetOldestUsers()
        return Outcome(binding: binding, isRefresh: old != nil, displaced: displaced)
    }

    /// Removes a device; its user stays known.
    mutating func remove(_ binding: Binding) {
        detach(binding)
        if case .instance = binding.identity {
            users[binding.user]?.departed.append((binding.identity, binding.id))
            if let count = users[binding.user]?.departed.count, count > maxPerUser {
                users[binding.user]?.departed.removeFirst()
            }
        }
        guard var record = users[binding.user], record.bindings.isEmpty else { return }
        counter &+= 1
        record.vacancy = counter
        users[binding.user] = record
        vacated.append((binding.user, counter))
    }

    /// The number that a device of this user had. Only an instance is proof enough that it is the same one: a contact may
    /// be another program's by now.
    private mutating func takeDepartedNumber(of identity: Binding.Identity, _ user: UserKey) -> UInt64? {
        guard let index = users[user]?.departed.lastIndex(where: { $0.identity.matches(identity) }) else { return nil }
        return users[user]?.departed.remove(at: index).id
    }

    /// Removes every device that registered over a flow that failed.
    mutating func removeAll(over flow: SIPFlow) -> [Binding] {
        let gone = (byFlow[flow] ?? []).compactMap { id in
            owners[id].flatMap { users[$0] }?.bindings.first { $0.id == id }
        }
        for binding in gone { remove(binding) }
        return gone
    }

    /// Removes the devices whose registrations have run out.
    mutating func expire(at now: MonotonicTime) -> [Binding] {
        var gone: [Binding] = []
        while let id = deadlines.popDue(at: now) {
            guard let owner = owners[id], let binding = users[owner]?.bindings.first(where: { $0.id == id }) else {
                continue
            }
            if binding.expiry > now {
                deadlines.push(id, at: binding.expiry)
            } else {
                remove(binding)
                gone.append(binding)
            }
        }
        return gone
    }

    private mutating func detach(_ binding: Binding) {
        users[binding.user]?.bindings.removeAll { $0.id == binding.id }
        owners[binding.id] = nil
        Self.drop(binding.id, from: &byFlow, at: binding.flow)
        Self.drop(binding.id, from: &byContact, at: ContactKey(binding.contact.uri))
    }

    private static func drop<Key: Hashable>(_ id: UInt64, from index: inout [Key: [UInt64]], at key: Key) {
        guard var ids = index[key] else { return }
        ids.removeAll { $0 == id }
        index[key] = ids.isEmpty ? nil : ids
    }

    private mutating func forgetOldestUsers() {
        while users.count > maxUsers, vacatedStart < vacated.count {
            let (user, vacancy) = vacated[vacatedStart]
            vacatedStart += 1
            if let record = users[user], record.bindings.isEmpty, record.vacancy == vacancy {
                users[user] = nil
            }
        }
        // Users that came back leave stale entries behind: drop them before they outnumber the users.
        if vacatedStart > 1_024 || vacated.count - vacatedStart > 2 * users.count + 1_024 {
            let remembered = users
            vacated = vacated[vacatedStart...].filter { entry in
                remembered[entry.user].map { $0.bindings.isEmpty && $0.vacancy == entry.vacancy } ?? false
            }
            vacatedStart = 0
        }
    }
}

/// What of a contact's URI a request for it must share; parameters play no part in finding it again.
private struct ContactKey: Hashable, Sendable {
    var user: String?
    var host: String
    var port: UInt16?

    init(_ uri: SIPURI) {
        user = uri.user
        host = uri.host
        port = uri.port
    }
}
