import FoundationEssentials
import Network
import Primitives
import SIP
import Signalling
import Token

/// What a client knows of its credentials.
struct CredentialState {
    /// The number of the last question to the delegate; answers to others are late.
    var request: UInt64 = 0
    var isAsking = false
    /// Whether the question is about a token that is still good.
    var isRenewal = false
    /// The token in use.
    var token: String?
    /// The next question.
    var timer: TimerHandle?
    /// When that is.
    var nextQuestion: MonotonicTime?
    /// Questions in a row without an answer that helps.
    var failures = 0
    /// Who issues tokens, as the platform said it.
    var authorizationServer: String?
    var random = RandomSource.system

    mutating func stop() {
        timer?.cancel()
        timer = nil
        nextQuestion = nil
        isAsking = false
        request &+= 1
    }
}

extension ClientCore {
    /// What is known from the start: a password. Tokens are asked for when the platform wants one.
    nonisolated static func initialCredentials(_ configuration: SinchClientConfiguration) -> [Credential] {
        guard case .digest(let username, let password) = configuration.authentication else { return [] }
        return [.digest(username: username, password: password)]
    }

    /// The platform wants credentials that the agent does not have, or no longer takes those it has.
    func credentialsNeeded(_ challenge: Challenge?) {
        if let server = challenge?.authzServer { credentials.authorizationServer = server }
        switch configuration.authentication {
        case .token:
            askForToken(isRenewal: false)
        case .digest, .none:
            let wanted = challenge?.scheme == .bearer ? "a token" : "a user name and password"
            credentialsUnavailable(
                SinchError(
                    .noCredentials,
                    "the platform asks for \(wanted), and the client's authentication is "
                        + "\(configuration.authentication)",
                    hint: "set authentication to what the platform asks for", step: "registering"))
        }
    }

    private func askForToken(isRenewal: Bool) {
        credentials.stop()
        credentials.isAsking = true
        credentials.isRenewal = isRenewal
        let request = credentials.request
        guard let client else { return }
        callBack { [weak self] in
            guard let self else { return }
            let registration = SinchClientRegistration { [weak self] answer in
                self?.perform { $0.supply(answer, for: request) }
            }
            if let delegate = client.delegate {
                delegate.clientRequiresRegistrationCredentials(client, withCallback: registration)
            } else {
                registration.registerDidFail(
                    error: SinchError(
                        .noCredentials, "the client has no delegate to ask for a token",
                        hint: "set the delegate before start()", step: "registering"))
            }
        }
    }

    private func supply(_ answer: Result<String, SinchError>, for request: UInt64) {
        // One answer for one question: a late or second one is not what the platform asks for now.
        guard credentials.isAsking, request == credentials.request, isRunning else { return }
        credentials.isAsking = false
        switch answer {
        case .success(let token):
            let isNew = token != credentials.token
            credentials.token = token
            planRenewal(isRetry: !isNew)
            if credentials.isRenewal, !isNew { return }
            credentials.failures = 0
            agent.credentialsChanged([.bearer(token: token)], at: loop.now)
            drain()
        case .failure(let error):
            if credentials.isRenewal {
                // The last one is still good.
                log(.warning, "token", error.description)
                planRenewal(isRetry: true)
            } else {
                credentialsUnavailable(error)
            }
        }
    }

    /// There are no credentials. A client that was registered asks again, after ever longer pauses; one that was not is
    /// as before `start()`.
    private func credentialsUnavailable(_ error: SinchError) {
        guard hasBeenRegistered else {
            refuse(error)
            return
        }
        log(.warning, "token", error.description)
        lastFailure = error
        let ceiling = min(Duration.seconds(1) * (1 << min(credentials.failures, 9)), .seconds(300))
        credentials.failures += 1
        askLater(after: ceiling * (0.5 + 0.5 * credentials.random.unitInterval()), isRenewal: false)
        notifyRegistration()
    }

    private func planRenewal(isRetry: Bool) {
        guard
            let delay = configuration.tokenRenewal.delay(
                of: credentials.token.flatMap { TokenValidity(of: $0) }, unixTime: Self.unixTime, isRetry: isRetry,
                random: &credentials.random)
        else { return }
        askLater(after: delay, isRenewal: true)
    }

    private func askLater(after delay: Duration, isRenewal: Bool) {
        credentials.timer?.cancel()
        let time = loop.now + delay
        credentials.nextQuestion = isRenewal ? nil : time
        credentials.timer = loop.schedule(at: time) { [weak self] in
            self?.assumeIsolated { core in
                guard core.isRunning, !core.isTerminating else { return }
                if case .token = core.configuration.authentication {
                    core.askForToken(isRenewal: isRenewal)
                } else {
                    core.credentials.nextQuestion = nil
                    core.agent.renewRegistration(at: core.loop.now)
                    core.drain()
                }
            }
        }
    }

    private nonisolated static var unixTime: Int64 { Int64(Date().timeIntervalSince1970) }

    // MARK: Diagnosis

    /// Adds to an error what only this side knows: which rule the token broke, and what the clocks say.
    func explain(_ failure: RegistrationFailure, in error: inout SinchError) {
        guard let challenge = failure.tokenChallenge else { return }
        if let server = challenge.authzServer {
            credentials.authorizationServer = server
            error.message += "; tokens come from '\(server)' (authz_server), which is never asked by itself"
        }
        switch challenge.tokenError {
        case TokenError.Code.unknownApplication.rawValue: error.code = .unknownApplication
        case TokenError.Code.expired.rawValue, TokenError.Code.notYetValid.rawValue: compareClocks(failure, &error)
        case nil where challenge.error == "invalid_token": compareClocks(failure, &error)
        default: break
        }
    }

    private func compareClocks(_ failure: RegistrationFailure, _ error: inout SinchError) {
        guard let validity = credentials.token.flatMap({ TokenValidity(of: $0) }), let end = validity.end else {
            return
        }
        let own = Self.unixTime
        let start = validity.start.map { "from \(utcText(unixTime: $0)) " } ?? ""
        error.message +=
            "; the token is valid \(start)until \(utcText(unixTime: end)), it is \(utcText(unixTime: own)) here"
        guard let theirs = failure.date.flatMap({ Token.unixTime(internetDate: $0) }) else { return }
        error.message += " and \(utcText(unixTime: theirs)) there"
        let skew = theirs > own ? theirs - own : own - theirs
        guard skew > RegistrationToken.maximumLeeway else { return }
        error.hint = "the clocks differ by \(skew) s; set this machine's clock, or the issuer's, for example with NTP"
    }
}
