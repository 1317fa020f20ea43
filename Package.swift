// swift-tools-version: 6.2
import PackageDescription

/// Every target: warnings are errors, so that main never collects any.
let strict: [SwiftSetting] = [.treatAllWarnings(as: .error)]

/// Protocol cores: the compiler proves that they contain no unsafe expression (docs/architecture.md).
let core: [SwiftSetting] = strict + [.strictMemorySafety()]

/// The executables' names are part of the interface; everything else is an internal layer of one package.
let package = Package(
    name: "sinchctl",
    products: [
        .executable(name: "sinchctl", targets: ["sinchctl"]),
        .library(name: "SinchRTC", targets: ["SinchRTC"]),
    ],
    targets: [
        // C libraries from Debian.
        .systemLibrary(name: "CALSA", pkgConfig: "alsa", providers: [.apt(["libasound2-dev"])]),
        .systemLibrary(name: "CCares", pkgConfig: "libcares", providers: [.apt(["libc-ares-dev"])]),
        .systemLibrary(name: "COpus", pkgConfig: "opus", providers: [.apt(["libopus-dev"])]),
        .systemLibrary(name: "COpenSSL", pkgConfig: "openssl", providers: [.apt(["libssl-dev"])]),
        .systemLibrary(name: "CSpeexDSP", pkgConfig: "speexdsp", providers: [.apt(["libspeexdsp-dev"])]),
        .systemLibrary(name: "CSRTP", pkgConfig: "libsrtp2", providers: [.apt(["libsrtp2-dev"])]),
        .target(name: "CSys"),
        // Needs libcurl's headers only: the library is loaded when first used.
        .target(name: "CCurl"),

        // Protocol cores: value types without I/O or clock.
        .target(name: "Primitives", swiftSettings: core),
        .target(name: "Crypto", dependencies: ["COpenSSL"], swiftSettings: core),
        .target(name: "Token", dependencies: ["Crypto", "Primitives"], swiftSettings: core),
        .target(name: "DNS", dependencies: ["Primitives"], swiftSettings: core),
        .target(name: "SIP", dependencies: ["Crypto", "DNS", "Primitives"], swiftSettings: core),
        .target(name: "SDP", dependencies: ["Primitives"], swiftSettings: core),
        .target(name: "RTP", dependencies: ["Primitives"], swiftSettings: core),
        .target(name: "STUN", dependencies: ["Crypto", "Primitives"], swiftSettings: core),
        .target(name: "ICE", dependencies: ["Crypto", "Primitives", "STUN"], swiftSettings: core),
        .target(name: "WebSocket", dependencies: ["Crypto"], swiftSettings: core),

        // What touches the machine.
        .target(
            name: "Network", dependencies: ["CCares", "CCurl", "COpenSSL", "CSys", "DNS", "Primitives", "WebSocket"],
            swiftSettings: strict),
        .target(name: "Security", dependencies: ["COpenSSL", "CSRTP", "Primitives"], swiftSettings: strict),
        .target(
            name: "Audio", dependencies: ["CALSA", "COpus", "CSpeexDSP", "CSys", "Primitives"],
            swiftSettings: strict),
        .target(
            name: "MediaSession", dependencies: ["Audio", "CSys", "Network", "Primitives", "RTP", "SDP"],
            swiftSettings: strict),
        .target(
            name: "Signalling", dependencies: ["DNS", "Network", "Primitives", "SDP", "SIP", "STUN"],
            swiftSettings: strict),

        // What people and programs use.
        .target(
            name: "SinchRTC",
            dependencies: [
                "Audio", "MediaSession", "Network", "Primitives", "RTP", "SDP", "SIP", "Signalling", "Token",
            ],
            swiftSettings: strict),
        .target(
            name: "Configuration", dependencies: ["Primitives", "Token"], swiftSettings: strict),
        .target(
            name: "SinchEnvironment",
            dependencies: [
                "Audio", "Configuration", "Crypto", "Network", "Primitives", "SIP", "Signalling", "SinchRTC", "Token",
            ],
            swiftSettings: strict),
        .target(
            name: "Agent",
            dependencies: [
                "Audio", "CSys", "Configuration", "MediaSession", "Network", "Primitives", "Signalling",
                "SinchEnvironment", "SinchRTC",
                "Token",
            ],
            swiftSettings: strict),
        .target(
            name: "CommandLineInterface",
            dependencies: [
                "Agent", "Audio", "CSys", "Configuration", "MediaSession", "Network", "Primitives", "SinchEnvironment",
                "SinchRTC", "Token",
            ],
            swiftSettings: strict),
        .executableTarget(name: "sinchctl", dependencies: ["CommandLineInterface"], swiftSettings: strict),

        // What a user of the library writes; the tests build and run it.
        .executableTarget(
            name: "first-call-example", dependencies: ["SinchRTC"], path: "Examples/FirstCall", swiftSettings: strict),

        // What bytes from the network are given to; `make fuzz` runs it under libFuzzer, a test on the saved inputs.
        .target(
            name: "FuzzTargets",
            dependencies: [
                "Crypto", "Primitives", "RTP", "SDP", "SIP", "STUN", "Signalling", "SinchEnvironment", "Token",
                "WebSocket",
            ],
            path: "Fuzz/Targets", swiftSettings: strict),

        // Tests beside what they test; Integration runs real servers and devices.
        .testTarget(name: "PrimitivesTests", dependencies: ["Primitives"]),
        .testTarget(name: "TokenTests", dependencies: ["Crypto", "Primitives", "Token"]),
        .target(
            name: "NameServerSupport", dependencies: ["Network", "Primitives"], path: "Tests/Support/NameServer",
            swiftSettings: strict),
        .testTarget(name: "DNSTests", dependencies: ["DNS", "NameServerSupport", "Primitives"]),
        .testTarget(
            name: "SIPTests", dependencies: ["Crypto", "DNS", "Primitives", "SIP"], resources: [.copy("Vectors")]),
        .testTarget(name: "FuzzTests", dependencies: ["FuzzTargets"]),
        .testTarget(name: "SDPTests", dependencies: ["SDP"]),
        .testTarget(name: "RTPTests", dependencies: ["Primitives", "RTP"]),
        .testTarget(name: "STUNTests", dependencies: ["Crypto", "Primitives", "STUN"]),
        .testTarget(name: "ICETests", dependencies: ["ICE", "Primitives", "STUN"]),
        .testTarget(name: "WebSocketTests", dependencies: ["Crypto", "WebSocket"]),
        .target(
            name: "TestCertificates", dependencies: ["COpenSSL"], path: "Tests/TestCertificates",
            swiftSettings: strict),
        .testTarget(
            name: "NetworkTests",
            dependencies: [
                "CSys", "DNS", "NameServerSupport", "Network", "Primitives", "TestCertificates", "WebSocket",
            ], exclude: ["WebSocket/websockets-peer.py"]),
        .testTarget(name: "SecurityTests", dependencies: ["Primitives", "Security"]),
        .testTarget(name: "AudioTests", dependencies: ["Audio", "CSys", "Primitives"]),
        .testTarget(
            name: "MediaSessionTests",
            dependencies: ["Audio", "CSys", "MediaSession", "Network", "Primitives", "RTP", "SDP"]),
        .testTarget(
            name: "SignallingTests",
            dependencies: [
                "DNS", "NameServerSupport", "Network", "Primitives", "SDP", "SIP", "STUN", "Signalling",
                "SinchEnvironment", "TestCertificates", "Token",
            ]),
        .testTarget(
            name: "SinchRTCTests",
            dependencies: [
                "Audio", "Configuration", "MediaSession", "Network", "Primitives", "SDP", "SIP", "Signalling",
                "SinchEnvironment", "SinchRTC", "TestCertificates", "Token", "first-call-example",
            ]),
        .testTarget(name: "ConfigurationTests", dependencies: ["Configuration", "Primitives", "Token"]),
        .testTarget(
            name: "SinchEnvironmentTests",
            dependencies: [
                "Audio", "Crypto", "Network", "Primitives", "SIP", "Signalling", "SinchEnvironment", "SinchRTC",
                "Token",
            ]),
        .testTarget(
            name: "AgentTests", dependencies: ["Agent", "Audio", "Configuration", "Network", "SinchRTC", "Token"],
            exclude: ["Support/token_server.py"]),
        .testTarget(
            name: "CommandLineTests", dependencies: ["CommandLineInterface", "Configuration"], exclude: ["Snapshots"]),
        .testTarget(
            name: "Integration",
            dependencies: [
                "Agent", "Audio", "CSys", "Configuration", "Crypto", "Network", "Primitives", "SIP", "Token",
                "sinchctl",
            ], exclude: ["Scenarios"]),
    ]
)

// Tools for this repository's own work, built by scripts/fuzz and scripts/bench only: the fuzzer's driver needs libraries
// that the toolchain hides, the benchmark replaces malloc.
if Context.environment["SINCHCTL_TOOLS"] != nil {
    package.targets += [
        .target(name: "CFuzzer", path: "Fuzz/CFuzzer"),
        .executableTarget(
            name: "fuzz", dependencies: ["CFuzzer", "FuzzTargets"], path: "Fuzz/Driver", swiftSettings: strict,
            linkerSettings: [.linkedLibrary("stdc++")]),
        .target(name: "CAllocations", path: "Benchmarks/CAllocations"),
        .executableTarget(
            name: "message-benchmark", dependencies: ["CAllocations", "SIP"], path: "Benchmarks/Messages",
            swiftSettings: strict),
    ]
}
