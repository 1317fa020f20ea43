import Primitives
import SIP
import Token

/// What one embedded environment is: its name, its applications, where it listens, and how much it bears.
public struct EnvironmentConfiguration: Sendable {
    /// One application: a name space of users, and the secret that its registration tokens are signed with.
    public struct Application: Sendable {
        /// The application key, a UUID in lower case.
        public var key: String
        /// The application's secret.
        public var secret: ApplicationSecret

        /// Creates an application.
        public init(key: String, secret: ApplicationSecret) {
            self.key = key
            self.secret = secret
        }
    }

    /// The domain of the users' addresses and the realm of the challenges.
    public var realm = "sinchctl.localhost"
    /// Other host names that mean this environment in a URI, beside `realm` and the listening addresses.
    public var domainAliases: [String] = ["localhost"]
    /// The applications whose tokens are accepted.
    public var applications: [Application] = []
    /// The address of each transport as it goes into Via and Record-Route; requests leave only over what is listed.
    public var listen: [SIPTransport: TransportAddress] = [:]

    /// The longest registration granted, in seconds.
    public var maxExpires = 3_600
    /// The shortest registration accepted, in seconds; below it the answer is 423 (RFC 3261 section 10.3).
    public var minExpires = 30
    /// The registration granted when the client does not say how long, in seconds.
    public var defaultExpires = 600
    /// How long a device may ring after its last provisional response: timer C (RFC 3261 section 16.6 step 11).
    public var ringTimeout: Duration = .seconds(180)

    /// What bounds the environment's memory and work.
    public var limits = Limits()
    /// The transactions' timers.
    public var timers = SIPTimerSettings()

    /// Creates a configuration with the defaults.
    public init() {}

    /// Creates a configuration for `applications`, listening on `listen`.
    public init(applications: [Application], listen: [SIPTransport: TransportAddress]) {
        self.applications = applications
        self.listen = listen
    }

    /// What bounds the environment's memory and work.
    public struct Limits: Sendable, Equatable {
        /// Contacts of all users together; a registration beyond is answered with 503.
        public var maxRegistrations = 10_000
        /// Contacts of one user; beyond, the one that was refreshed longest ago makes room.
        public var maxContactsPerUser = 10
        /// Users remembered as known after their last device went away: they are answered 480 and not 404.
        public var maxKnownUsers = 100_000
        /// Requests in progress; a request beyond is answered with 503.
        public var maxTransactions = 20_000
        /// Calls being set up by one source at a time.
        public var maxCallsPerSource = 100
        /// Messages that one source may send.
        public var messagesPerSource = RateLimit(perSecond: 500, burst: 1_000)
        /// New calls that one source may start.
        public var callsPerSource = RateLimit(perSecond: 20, burst: 100)
        /// Refusals that a source beyond its limits still gets; what it sends above that is dropped in silence.
        public var refusalsPerSource = RateLimit(perSecond: 10, burst: 20)
        /// Sources remembered for the limits above.
        public var maxSources = 10_000
        /// What Retry-After says in a refusal, in seconds.
        public var retryAfter = 5

        /// Creates the default limits.
        public init() {}
    }
}
