import Configuration
import FoundationEssentials
import SinchRTC

/// What `status` shows of one agent.
enum StatusReport {
    static func make(
        user: String, applicationKey: String, startedAt: Date, status: SinchClientStatus, capture: String,
        playback: String, autoAnswer: Bool, isMuted: Bool, calls: [CallReport]
    ) -> JSONValue {
        var registration: [String: JSONValue] = ["state": .string(status.registration)]
        registration["lastFailure"] = status.lastFailure.map { .string($0) }
        registration["nextAttemptInSeconds"] = status.nextAttemptIn.map { .number($0) }
        registration["lifetimeSeconds"] = status.grantedLifetime.map { .number($0) }
        registration["delayMs"] = status.registrationDelay.map { .number(($0 * 10_000).rounded() / 10) }
        var signalling: [String: JSONValue] = [:]
        signalling["transport"] = status.transport.map { .string($0) }
        signalling["remote"] = status.remoteAddress.map { .string($0) }
        signalling["tls"] = status.tls.map { .string($0) }
        signalling["keepAlive"] = status.keepAlive.map { .string($0) }
        signalling["local"] = status.localAddress.map { .string($0) }
        return .object([
            "user": .string(user), "application": .string(applicationKey), "pid": .integer(Int64(ProcessID.current)),
            "startedAt": .string(Timestamps.text(startedAt)), "registration": .object(registration),
            "signalling": .object(signalling),
            "media": .object([
                "thread": .string(status.mediaScheduling), "security": .string(status.mediaSecurity),
                "capture": .string(capture), "playback": .string(playback), "muted": .bool(isMuted),
            ]),
            "autoAnswer": .bool(autoAnswer), "calls": .array(calls.map { JSONConversion.value($0) }),
        ])
    }
}

/// Turns any encodable value into a JSON value.
public enum JSONConversion {
    /// The value as JSON; null when it cannot be encoded, which our own types always can.
    public static func value(_ value: some Encodable) -> JSONValue {
        guard let data = try? JSONEncoder().encode(value),
            let json = try? JSONDecoder().decode(JSONValue.self, from: data)
        else { return .null }
        return json
    }
}
