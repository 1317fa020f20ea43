import Audio
import Configuration
import FoundationEssentials
import Primitives
import SinchRTC

/// Somebody who waits for something to become true (`wait`).
struct Waiter {
    let condition: String
    let callId: String?
    weak var connection: AgentConnection?
    let continuation: CheckedContinuation<Result<JSONValue, AgentErrorObject>, Never>
}

extension AgentService {
    /// Runs a closure on the loop, between other work of the service.
    func onLoop(_ work: @Sendable () -> Void) {
        work()
    }

    /// Carries out one request of the control socket. The methods are named as the commands.
    func handle(_ request: AgentRequest, on connection: AgentConnection) async -> Result<JSONValue, AgentErrorObject> {
        let parameters = request.params ?? .object([:])
        do {
            switch request.method {
            case "hello":
                return .success(
                    .object([
                        "protocol": .integer(Int64(AgentProtocol.version)), "user": .string(user),
                        "pid": .integer(Int64(ProcessID.current)), "version": .string(SinchRTC.version()),
                    ]))
            case "status": return .success(await status())
            case "calls": return .success(await callList())
            case "call": return .success(try startCall(parameters, on: connection))
            case "answer": return .success(try answer(parameters))
            case "hangup": return .success(try hangUp(parameters))
            case "mute", "unmute": return .success(try setMuted(request.method == "mute", parameters))
            case "hold", "resume": return try await setHold(request.method == "hold", parameters)
            case "dtmf": return try await sendKeys(parameters)
            case "transfer": return try await transfer(parameters)
            case "stats":
                let call = try call(named: parameters["call"]?.string)
                return .success(JSONConversion.value(await reportWithStatistics(call)))
            case "events": return .success(subscribe(parameters, connection))
            case "wait": return await wait(parameters, on: connection)
            case "terminate":
                await terminate()
                return .success(.object(["terminated": .bool(true)]))
            default:
                return .failure(AgentErrorObject(code: -32_601, message: "there is no method '\(request.method)'"))
            }
        } catch let failure as CommandFailure {
            return .failure(AgentErrorObject(code: 1, message: failure.message, data: failure))
        } catch {
            return .failure(AgentErrorObject(code: -32_602, message: "\(error)"))
        }
    }

    // MARK: Calls

    private func decode(_ parameters: JSONValue) throws -> CallParameters {
        var members: [String: JSONValue] = ["destination": .string("")]
        if case .object(let given) = parameters { members.merge(given) { $1 } }
        do {
            let data = try JSONEncoder().encode(JSONValue.object(members))
            return try JSONDecoder().decode(CallParameters.self, from: data)
        } catch {
            throw CommandFailure(exit: .usage, message: "the parameters are not those of a call")
        }
    }

    private func startCall(_ json: JSONValue, on connection: AgentConnection) throws -> JSONValue {
        let parameters = try decode(json)
        guard !parameters.destination.isEmpty else {
            throw CommandFailure(exit: .usage, message: "call: the destination is missing")
        }
        let call = try place(parameters)
        if parameters.follow ?? false {
            connection.follow(call.callId)
            listen(connection)
        }
        if let ring = parameters.ringTimeout {
            schedule(after: ring, call) { call in
                if call.state < .answered { call.hangup(reason: .noAnswer) }
            }
        }
        if let duration = parameters.duration {
            call.userInfo = duration
        }
        record("initiating", call: call)
        return JSONConversion.value(CallReport(call))
    }

    /// Does something with a call later, unless it has ended by then.
    func schedule(after seconds: Double, _ call: SinchCall, _ action: @escaping @Sendable (SinchCall) -> Void) {
        let delay = Duration.milliseconds(Int64(min(max(seconds, 0), 1_000_000) * 1_000))
        _ = loop.schedule(at: loop.now + delay) { [weak call] in
            guard let call, call.state != .ended else { return }
            action(call)
        }
    }

    private func answer(_ json: JSONValue) throws -> JSONValue {
        let parameters = try decode(json)
        let call: SinchCall
        if parameters.call == nil {
            let ringing = calls.filter { $0.direction == .incoming && $0.state == .initiating }
            guard let first = ringing.first else {
                throw CommandFailure(
                    exit: .unreachable, message: "nobody is calling \(user)",
                    hint: "wait for a call: sinchctl wait --for incoming")
            }
            call = first
        } else {
            call = try self.call(named: parameters.call)
        }
        var media = try parameters.media()
        media.recording = media.recording ?? recordingPath(for: call)
        call.media = media
        do {
            try call.answer(headers: parameters.headers ?? [:])
        } catch let error as SinchError {
            throw CommandFailure(error)
        }
        return JSONConversion.value(CallReport(call))
    }

    private func hangUp(_ parameters: JSONValue) throws -> JSONValue {
        let reason = parameters["reason"]?.string
        let meant =
            parameters["all"]?.bool ?? false ? calls : [try call(named: parameters["call"]?.string)]
        for call in meant {
            switch reason {
            case "busy": call.hangupBusy()
            case "noAnswer": call.hangup(reason: .noAnswer)
            default: call.hangup()
            }
        }
        return .object(["calls": .array(meant.map { .string($0.callId) })])
    }

    private func setMuted(_ muted: Bool, _ parameters: JSONValue) throws -> JSONValue {
        if let id = parameters["call"]?.string {
            try call(named: id).setMuted(muted)
        } else {
            isMuted = muted
            if muted { client.audioController.mute() } else { client.audioController.unmute() }
        }
        record(muted ? "muted" : "unmuted", call: nil)
        return .object(["muted": .bool(muted)])
    }

    private func callList() async -> JSONValue {
        var reports: [JSONValue] = []
        for call in calls { reports.append(JSONConversion.value(await reportWithStatistics(call))) }
        return .object([
            "active": .array(reports), "ended": .array(ended.reversed().map { JSONConversion.value($0) }),
        ])
    }

    // MARK: Events and waiting

    private func listen(_ connection: AgentConnection) {
        guard !connection.isListening else { return }
        connection.listens(as: events.listen { [weak connection] event in connection?.send(event) })
    }

    private func subscribe(_ parameters: JSONValue, _ connection: AgentConnection) -> JSONValue {
        let since = parameters["since"]?.integer.flatMap { UInt64(exactly: $0) }
        let kept = since.map { Array(events.since($0)) } ?? []
        let isGap = since.map { $0 + 1 < events.recent.first?.seq ?? 1 } ?? false
        if parameters["follow"]?.bool ?? true { listen(connection) }
        return .object([
            "events": .array(kept.map { JSONConversion.value($0) }), "gap": .bool(isGap),
            "last": .integer(Int64(events.nextSequence - 1)),
        ])
    }

    private func wait(_ parameters: JSONValue, on connection: AgentConnection) async
        -> Result<JSONValue, AgentErrorObject>
    {
        let condition = parameters["for"]?.string ?? "registered"
        guard ["registered", "incoming", "established", "ended"].contains(condition) else {
            let failure = CommandFailure(
                exit: .usage, message: "wait: '\(condition)' cannot be waited for",
                hint: "use registered, incoming, established or ended")
            return .failure(AgentErrorObject(code: 1, message: failure.message, data: failure))
        }
        let callId = parameters["call"]?.string
        if let met = met(condition, callId) { return .success(met) }
        if connection.isClosed { return .success(.null) }
        return await withCheckedContinuation { continuation in
            waiters.append(
                Waiter(condition: condition, callId: callId, connection: connection, continuation: continuation))
        }
    }

    /// What fulfils a condition now; nil when nothing does.
    private func met(_ condition: String, _ callId: String?) -> JSONValue? {
        func report(_ call: SinchCall?) -> JSONValue? { call.map { JSONConversion.value(CallReport($0)) } }
        let candidates = calls.filter { callId == nil || $0.callId.hasPrefix(callId ?? "") }
        switch condition {
        case "registered":
            return isRegistered ? .object(["registered": .bool(true), "user": .string(user)]) : nil
        case "incoming":
            return report(candidates.first { $0.direction == .incoming && $0.state == .initiating })
        case "established":
            return report(candidates.first { $0.state == .established })
        default:
            // With no call at all there is nothing left to end.
            guard candidates.isEmpty else { return nil }
            let last = ended.last { callId == nil || $0.id.hasPrefix(callId ?? "") }
            return last.map { JSONConversion.value($0) } ?? .object(["calls": .integer(0)])
        }
    }

    /// Lets those go whose condition has come true.
    func settleWaiters() {
        waiters = waiters.filter { waiter in
            guard let met = met(waiter.condition, waiter.callId) else { return true }
            waiter.continuation.resume(returning: .success(met))
            return false
        }
    }

    func abandonWaiters(of connection: AgentConnection) {
        waiters = waiters.filter { waiter in
            guard waiter.connection === connection || waiter.connection == nil else { return true }
            waiter.continuation.resume(returning: .success(.null))
            return false
        }
    }
}
