/// The version of SinchRTC, with a build suffix as the SDK's has: `0.1.0+linux`.
public func version() -> String {
    "0.1.0+linux"
}

/// Creates a client for one user of one application.
///
/// - Parameters:
///   - applicationKey: the application, as the registration token names it.
///   - environmentHost: `HOST[:PORT][;transport=udp|tcp]`: the SIP domain and registrar.
///   - userId: at most 255 bytes of `A-Z a-z 0-9 - _ =`.
/// - Throws: `SinchError` with code `invalidArgument`, or `unsupportedEnvironment` for the vendor's own hosts, whose
///   private protocol is not spoken.
public func client(
    withApplicationKey applicationKey: String, environmentHost: String, userId: String
) throws -> SinchClient {
    try client(
        configuration: SinchClientConfiguration(
            applicationKey: applicationKey, environmentHost: environmentHost, userId: userId))
}

/// Creates a client with all that can be set.
///
/// - Throws: as `client(withApplicationKey:environmentHost:userId:)`.
public func client(configuration: SinchClientConfiguration) throws -> SinchClient {
    try SinchClient(configuration: configuration)
}
