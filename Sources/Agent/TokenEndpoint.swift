import Configuration
import FoundationEssentials
import Network

/// Asks a backend for a user's registration token (`tokenURL`).
///
/// With `{user}` in the URL it is fetched by GET, the user's id in that place. Without, it is a POST whose body is
/// `{"userId": "alice", "applicationKey": "…"}`. The answer is a 2xx with `{"token": "…"}` or nothing but the token.
struct TokenEndpoint: Sendable {
    let url: String
    let applicationKey: String
    let caFile: String?
    var connectTimeout: Duration = .seconds(10)
    var timeout: Duration = .seconds(20)

    private static let placeholder = "{user}"

    private struct Question: Encodable {
        var userId: String
        var applicationKey: String
    }

    private struct Answer: Decodable {
        var token: String
    }

    /// Fetches a token; any thread, takes up to the time-out.
    func token(for user: String) async throws(CommandFailure) -> String {
        var request = HTTPRequest(url: url)
        if url.contains(Self.placeholder) {
            // Of what a user id may hold only = has a meaning in a URL.
            request.url = url.replacing(Self.placeholder, with: user.replacing("=", with: "%3D"))
        } else {
            let question = Question(userId: user, applicationKey: applicationKey)
            request.body = (try? JSONEncoder().encode(question)).map { Array($0) } ?? []
            request.headers = [("Content-Type", "application/json")]
        }
        request.headers.append(("Accept", "application/json, application/jwt, text/plain"))
        request.caFile = caFile
        request.connectTimeout = connectTimeout
        request.timeout = timeout
        let response: HTTPResponse
        do {
            response = try await HTTPClient.send(request)
        } catch {
            throw failure(error)
        }
        guard (200..<300).contains(response.status) else { throw refusal(response) }
        return try token(in: response.body)
    }

    private func token(in body: [UInt8]) throws(CommandFailure) -> String {
        let origin = "the answer of \(place)"
        let text = try TokenInput.checked(body, from: origin)
        guard text.hasPrefix("{") else { return try TokenInput.compact(text, from: origin) }
        guard let answer = try? JSONDecoder().decode(Answer.self, from: Data(text.utf8)) else {
            throw CommandFailure(
                exit: .dataUnusable, step: "token", message: "\(origin) is no JSON object with a token",
                hint: "it must be {\"token\": \"…\"}, or the token alone")
        }
        return try TokenInput.compact(answer.token, from: origin)
    }

    /// The endpoint as messages name it: what follows `?` may be a secret.
    private var place: String { "the token endpoint \(withoutQuery(url))" }

    private func failure(_ error: HTTPFailure) -> CommandFailure {
        let message = "\(place) did not answer: \(error.message)"
        let (exit, hint): (ExitCode, String) =
            switch error.kind {
            case .libraryMissing:
                (.configuration, "tokenURL needs libcurl: install Debian's libcurl4, or use tokenCommand")
            case .nameNotFound, .unreachable: (.network, "check tokenURL, and whether the backend runs")
            case .timedOut: (.network, "check whether the backend is overloaded")
            case .tls: (.tls, "check the backend's certificate; set caFile when its authority is your own")
            case .tooLarge: (.dataUnusable, "an answer is {\"token\": \"…\"}, or the token alone")
            case .other: (.network, "check tokenURL")
            }
        return CommandFailure(exit: exit, step: "token", message: message, hint: hint)
    }

    private func refusal(_ response: HTTPResponse) -> CommandFailure {
        let message = "\(place) answered with HTTP status \(response.status)"
        switch response.status {
        case 300..<400:
            let target = response.redirect.map { ": it redirects to \(withoutQuery($0)), which is not followed" } ?? ""
            return CommandFailure(
                exit: .configuration, step: "token", message: message + target,
                hint: "set tokenURL to where the tokens are")
        case 400..<500:
            return CommandFailure(
                exit: .registrationRefused, step: "token", message: message,
                hint: "the backend gives no token for this user; check tokenURL and the user's id")
        default:
            return CommandFailure(
                exit: .network, step: "token", message: message, hint: "the backend has a problem; see its log")
        }
    }
}
