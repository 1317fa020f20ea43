import Network
import SIP
import Testing

@testable import SinchRTC

@Suite struct RegistrationErrorTests {
    @Test(arguments: [
        (NetworkError.Code.tls(.expired), SinchError.Code.tls), (.tls(.truncated), .network),
        (.nameNotFound, .nameNotFound),
        (.connectionRefused, .network), (.webSocket(.truncated), .network),
    ])
    func whatTheNetworkSaidDecidesTheCode(_ cause: NetworkError.Code, _ code: SinchError.Code) {
        let failure = RegistrationFailure(reason: "the flow failed", kind: .unreachable)
        let error = SinchError(failure, cause: NetworkError(cause, "why"))
        #expect(error.code == code)
        #expect(error.message == "the flow failed")
    }
}
