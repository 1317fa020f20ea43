import Configuration
import SinchRTC

/// A request whose answer waits for what it asked for.
struct Order {
    let call: SinchCall
    /// The event that fulfils it.
    let fulfilment: String
    /// The event that says that it cannot be fulfilled.
    let refusal: String
    let continuation: CheckedContinuation<Result<JSONValue, AgentErrorObject>, Never>
}

/// What can be done with a call while it goes on. Each method answers when it is done, or says why not; with `wait`: false
/// it answers at once, and events tell the rest.
extension AgentService {
    typealias Answer = Result<JSONValue, AgentErrorObject>

    // MARK: Methods

    func setHold(_ hold: Bool, _ parameters: JSONValue) async throws -> Answer {
        let call = try call(named: parameters["call"]?.string)
        try demandConversation(call, hold ? "hold" : "resume")
        guard call.isOnHold != hold else { return .success(JSONConversion.value(CallReport(call))) }
        return await order(call, hold ? "held" : "resumed", or: "holdFailed", parameters) {
            if hold { call.hold() } else { call.resume() }
        }
    }

    func sendKeys(_ parameters: JSONValue) async throws -> Answer {
        let keys = parameters["keys"]?.string ?? ""
        let call = try call(named: parameters["call"]?.string)
        guard (1...SinchCall.maximumKeys).contains(keys.count), keys.allSatisfy({ "0123456789*#ABCDabcd".contains($0) })
        else {
            throw CommandFailure(
                exit: .usage, message: "dtmf: the keys must be 1 to \(SinchCall.maximumKeys) of 0-9 * # A-D",
                hint: "quote them: sinchctl dtmf '123#'")
        }
        try demandConversation(call, "dtmf")
        guard !call.isOnHold else {
            throw CommandFailure(
                exit: .unreachable, step: "dtmf", message: "dtmf: the call with \(call.remoteUserId) is on hold",
                hint: "go on with it first: sinchctl resume")
        }
        return await order(call, "dtmfSent", or: "dtmfFailed", parameters) {
            call.sendDTMF(keys)
        }
    }

    func transfer(_ parameters: JSONValue) async throws -> Answer {
        let destination = parameters["destination"]?.string
        let target = parameters["toCall"]?.string
        guard (destination == nil) != (target == nil) else {
            throw CommandFailure(
                exit: .usage, message: "transfer: either a destination or another call must be named",
                hint: "use --to USER, or --to-call CALL")
        }
        guard let target else {
            let call = try call(named: parameters["call"]?.string)
            try demandConversation(call, "transfer")
            let address = destination ?? ""
            do {
                try SinchCall.checkDestination(address)
            } catch let error as SinchError {
                throw CommandFailure(error)
            }
            return await order(call, "transferred", or: "transferFailed", parameters) {
                // What is wrong with a destination was found above.
                try? call.transfer(to: address)
            }
        }
        let other = try self.call(named: target)
        let call = try self.call(named: parameters["call"]?.string ?? theOnlyCall(beside: other))
        guard call !== other else {
            throw CommandFailure(
                exit: .usage, message: "transfer: a call cannot be connected to itself", hint: "see: sinchctl calls")
        }
        try demandConversation(call, "transfer")
        try demandConversation(other, "transfer")
        return await order(call, "transferred", or: "transferFailed", parameters) { call.transfer(to: other) }
    }

    private func theOnlyCall(beside other: SinchCall) -> String? {
        let others = calls.filter { $0 !== other }
        return others.count == 1 ? others.first?.callId : nil
    }

    private func demandConversation(_ call: SinchCall, _ command: String) throws(CommandFailure) {
        guard call.state == .answered || call.state == .established else {
            throw CommandFailure(
                exit: .unreachable, step: command,
                message: "\(command): the call with \(call.remoteUserId) is not answered",
                hint: "wait for it: sinchctl wait --for established")
        }
    }

    // MARK: Orders

    private func order(
        _ call: SinchCall, _ fulfilment: String, or refusal: String, _ parameters: JSONValue,
        _ work: () -> Void
    ) async -> Answer {
        guard parameters["wait"]?.bool ?? true else {
            work()
            return .success(JSONConversion.value(CallReport(call)))
        }
        return await withCheckedContinuation { continuation in
            orders.append(
                Order(call: call, fulfilment: fulfilment, refusal: refusal, continuation: continuation))
            work()
        }
    }

    /// Answers the requests that an event fulfils, or makes impossible.
    func settleOrders(_ event: String, of call: SinchCall, failure: CommandFailure? = nil) {
        orders = orders.filter { order in
            guard order.call === call else { return true }
            if event == order.fulfilment {
                order.continuation.resume(returning: .success(JSONConversion.value(CallReport(call))))
                return false
            }
            guard event == order.refusal || event == "ended" else { return true }
            let failure =
                failure
                ?? CommandFailure(
                    exit: .canceled, message: "the call with \(call.remoteUserId) ended before that",
                    hint: "see: sinchctl calls")
            order.continuation.resume(
                returning: .failure(AgentErrorObject(code: 1, message: failure.message, data: failure)))
            return false
        }
    }

    // MARK: From the calls

    func happened(_ event: String, in call: SinchCall) {
        record(event, call: call)
        settleOrders(event, of: call)
    }

    func failed(_ event: String, in call: SinchCall, _ error: any Error) {
        let failure =
            (error as? SinchError).map { CommandFailure($0) }
            ?? CommandFailure(exit: .internalError, message: "\(error)")
        record(event, call: call, message: failure.message)
        settleOrders(event, of: call, failure: failure)
    }

    /// The other side makes this client call somebody else.
    func transferring(_ call: SinchCall, to new: SinchCall) {
        calls.append(new)
        var media = new.media
        media.recording = recordingPath(for: new)
        new.media = media
        record("transferring", call: call, message: "\(call.remoteUserId) transfers the call to \(new.remoteUserId)")
        record("initiating", call: new)
    }
}
