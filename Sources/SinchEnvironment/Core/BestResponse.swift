import SIP

/// Chooses the one final response that the caller of a forked request gets (RFC 3261 section 16.7 step 6).
enum BestResponse {
    /// The best of the outcomes of all branches; of equals, the first. With `cancelled` a 487 wins, because it is what a
    /// caller who gave up waits for.
    static func choose(_ outcomes: [ResponseContext.Outcome], cancelled: Bool) -> ResponseContext.Outcome? {
        if cancelled, let terminated = outcomes.first(where: { $0.status == 487 }) { return terminated }
        return outcomes.min { rank($0.status) < rank($1.status) }
    }

    /// 6xx before all, else the lowest class; within 4xx what the caller can act on, then what a person decided, and last
    /// what only says that a device did not react.
    private static func rank(_ status: Int) -> Int {
        switch status {
        case 600...: 0
        case 400..<500: 400 + preference(status)
        default: status / 100 * 100
        }
    }

    private static func preference(_ status: Int) -> Int {
        switch status {
        case 415, 420, 484: 0
        case 486: 1
        case 480: 3
        case 404: 4
        case 408: 5
        case 430: 6
        case 481: 7
        case 487: 8
        default: 2
        }
    }

    /// The response as the caller may see it.
    static func step(for outcome: ResponseContext.Outcome) -> ResponseContext.Step {
        switch outcome {
        case .failure(430, _):
            // "Flow failed" (RFC 5626) is between proxies; to the caller the user is not available now.
            return .answer(status: 480, reason: "Device Unreachable")
        case .failure(let status, let reason):
            return .answer(status: status, reason: reason)
        case .response(let response):
            switch response.status {
            case 401, 407:
                // A device that asks the caller for credentials would get the caller's token.
                return .answer(status: 403, reason: "Forbidden by Device")
            case 503:
                // 503 would say that this environment is out of service (section 16.7 step 6).
                return .answer(status: 500, reason: "Device Out of Service")
            default:
                return .forward(response)
            }
        }
    }
}
