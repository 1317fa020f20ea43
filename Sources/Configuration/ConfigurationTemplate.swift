extension Configuration {
    /// The text of a new configuration file, for `config init`: JSON5, everything at its default, every key explained.
    public static let template = """
        // Configuration of sinchctl. JSON5: comments and trailing commas are allowed.
        // Flags beat environment variables (SINCHCTL_ENVIRONMENT_HOST and so on) beat this file.
        // Keep it to yourself when it holds a secret: chmod 600.
        {
          "profiles": {
            // Choose another profile with --profile NAME or SINCHCTL_PROFILE.
            "default": {
              // Where calls go: HOST[:PORT][;transport=udp|tcp|tls|ws|wss].
              // Without it: the embedded environment on this machine, which needs nothing else.
              // "environmentHost": "sip.example.com",

              // How to reach it, when DNS does not say.
              // "transport": "tls",
              // "outboundProxy": "10.0.0.5:5061",
              // "caFile": "/etc/ssl/own-ca.pem",

              // Who you are. Production: a backend of yours signs tokens; one of these three.
              // "tokenCommand": ["fetch-token", "--user", "alice"],
              // "tokenURL": "https://backend.example.com/token?user={user}",
              // "tokenFile": "token.jwt",
              // Development: tokens are signed here. The secret is base64 and may stand in a file of its own.
              // "applicationKey": "00000000-0000-0000-0000-000000000000",
              // "applicationSecretFile": "application-secret",

              // bearer (the token, over TLS) | digest (user name and password, for plain SIP services) | none
              // "authentication": "bearer",
              // For digest; without authenticationUser the name is that of the client's user.
              // "authenticationUser": "alice",
              // "passwordFile": "password",

              // Encrypted media: required | optional | none (plain RTP everywhere: only on protected networks)
              // "mediaSecurity": "required",
              // "iceServers": [
              //   {"urls": "stun:stun.example.com"},
              //   {"urls": "turn:turn.example.com?transport=udp", "username": "alice", "credential": "secret"},
              // ],

              // alsa:PCM, file:PATH.wav, tone:HERTZ, silence, null, echo
              // "capture": "alsa:default",
              // "playback": "alsa:default",
            },
          },
        }

        """

    /// Writes the template to the configuration file's place, with mode 0600. An existing file is left alone (`exists`).
    public static func writeTemplate(paths: Paths) throws(ConfigurationError) {
        try paths.prepareConfigDirectory()
        try AtomicFile.write(Array(template.utf8), to: paths.configFile, replacing: false)
    }
}
