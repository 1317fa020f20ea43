import Glibc

/// Debian's linphonec as the other phone, spoken to on its console; sound comes from and goes to files.
final class Linphone: Peer {
    let recording: String
    private let process: PeerProcess

    /// Starts it and waits for its registration. It plays `sound` and records what it hears.
    static func start(
        user: String, at server: PeerServer, playing sound: String, in scratch: Scratch, transport: String = "udp",
        caFile: String? = nil
    ) async throws -> Linphone {
        let phone = try Linphone(user: user, at: server, in: scratch, transport: transport, caFile: caFile)
        do {
            try await phone.awaitRegistration()
            phone.command("soundcard use files")
            try await phone.process.line(containing: "Using wav files")
            phone.command("play " + sound)
            phone.command("record " + phone.recording)
        } catch {
            await phone.stop()
            throw error
        }
        return phone
    }

    private init(
        user: String, at server: PeerServer, in scratch: Scratch, transport: String, caFile: String?
    ) throws {
        let directory = scratch.root + "/linphone-" + user
        for path in ["", "/.local", "/.local/share", "/.local/share/linphone"] {
            guard mkdir(directory + path, 0o700) == 0 else { throw TestFailure("cannot make \(directory)\(path)") }
        }
        recording = directory + "/heard.wav"
        let route = "<sip:\(server.host):\(server.port(transport));transport=\(transport)"
        // It expects the certificate to be for the host of the route, an address here, and not for the domain.
        let certificates = caFile.map { "root_ca=\($0)\nverify_server_cn=0\n" } ?? ""
        let configuration = """
            [sip]
            sip_port=-1
            sip_tcp_port=-1
            sip_tls_port=-1
            default_proxy=0
            guess_hostname=0
            bind_address=127.0.0.1
            contact="\(user)" <sip:\(user)@127.0.0.1>
            \(certificates)[rtp]
            audio_rtp_port=20000-29999
            [sound]
            echocancellation=0
            [proxy_0]
            reg_proxy=\(route)>
            reg_route=\(route);lr>
            reg_identity=sip:\(user)@\(server.domain)
            reg_expires=600
            reg_sendregister=1
            publish=0
            [auth_info_0]
            username=\(user)
            userid=\(user)
            passwd=\(server.password(of: user))
            realm=\(server.domain)
            domain=\(server.domain)

            """
        let file = directory + "/linphonerc"
        try writeFile(file, Array(configuration.utf8))
        process = try PeerProcess(
            "linphonec", ["-c", file, "-d", "0"], environment: ["XDG_DATA_HOME": directory + "/.local/share"],
            directory: directory)
    }

    /// It tells of its registration only when asked.
    private func awaitRegistration() async throws {
        for _ in 0..<60 {
            command("status register")
            let answer = try await line(containing: "registered")
            if answer.contains("registered, identity") { return }
            if await process.lines.take(within: .milliseconds(250), { $0.contains("never") }) != nil { return }
        }
        throw TestFailure("linphonec does not register: \(process.lines.untaken.suffix(10))")
    }

    /// Types a line: `call carol`, `answer`, `pause`, `resume`, `transfer dave`, `terminate`.
    func command(_ line: String) {
        process.send(line)
    }

    /// Waits for a line of its output.
    @discardableResult
    func line(containing text: String, within limit: Duration = .seconds(15)) async throws -> String {
        try await process.line(containing: text, within: limit)
    }

    func stop() async {
        process.send("quit")
        await process.stop()
    }
}
