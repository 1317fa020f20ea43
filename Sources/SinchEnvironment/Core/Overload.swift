import Primitives
import SIP

extension EnvironmentCore {
    /// Counts a message against its source's limits; what is beyond them is refused or dropped here, before it costs a
    /// transaction.
    mutating func isWithinLimits(_ message: SIPMessage, from flow: SIPFlow, at now: MonotonicTime) -> Bool {
        switch limiter.count(.message, from: flow, at: now) {
        case .accept: break
        case .drop: return false
        case .refuse(let first):
            if first { log(.rateLimited(flow: flow)) }
            refuseStatelessly(message, over: flow)
            return false
        }
        return true
    }

    /// Counts a new call against its source's limits; answers it when it is beyond them.
    mutating func admitsCall(_ incoming: Incoming) -> Bool {
        guard callsBySource[incoming.flow, default: 0] < configuration.limits.maxCallsPerSource else {
            refuse(incoming, status: 503, reason: "Too Many Calls at Once", retry: true)
            return false
        }
        switch limiter.count(.newCall, from: incoming.flow, at: incoming.now) {
        case .accept: return true
        case .refuse(first: true): log(.rateLimited(flow: incoming.flow))
        case .refuse, .drop: break
        }
        // The transaction exists already, and an answer ends it.
        respond(incoming, status: 503, reason: "Too Many Calls", retry: true)
        return false
    }

    /// 503 with Retry-After, without a transaction. ACK and responses have no answer; a CANCEL beyond the limits will be
    /// repeated.
    private mutating func refuseStatelessly(_ message: SIPMessage, over flow: SIPFlow) {
        guard let method = message.method, method != .ack, method != .cancel, message.validate() == nil else { return }
        var request = message
        if var via = request.topVia, via.hasRport {
            via.received = flow.remote.host
            via.parameters["rport"] = String(flow.remote.port)
            request.topVia = via
        }
        let tag = recordRoute.sealer.digest([request.topVia?.branch ?? "", request.callID ?? ""])
        var response = request.response(status: 503, reason: "Too Many Messages", toTag: tag)
        response.headers.append("Retry-After", String(configuration.limits.retryAfter))
        send(response, over: flow)
    }
}
