"""The two programs that are compared, behind one interface.

A client is one user at one server: `start` returns when the command was issued, `call` likewise; what follows is seen
on the wire. `timed_call` also returns what the program itself says of the call's set-up, for transports that cannot be
watched. The media settings are the same for both: Opus at 48 kHz mono in frames of 20 ms, 32 kb/s, complexity 5.
"""

import datetime
import json
import os
import re
import signal
import socket
import subprocess
import time

BITRATE = 32000
COMPLEXITY = 5


def quiet(arguments, **options):
    """A process without a terminal."""
    return subprocess.Popen(arguments, stdin=subprocess.DEVNULL, **options)


class Sinchctl:
    """An agent that `sinchctl start` left in the background; calls are placed by `sinchctl call`."""

    name = "sinchctl"

    def __init__(self, program, work, user, server, speech, answers, transport="udp"):
        self.program = program
        self.user = user
        self.pid = None
        self.speech = speech
        self.answers = answers
        self.log = os.path.join(work, f"{user}.log")
        self.environment = {name: value for name, value in os.environ.items() if not name.startswith("SINCHCTL_")}
        for variable, name in (("RUNTIME_DIR", "run"), ("STATE_HOME", "state"), ("CONFIG_HOME", "config")):
            path = os.path.join(work, name)
            os.makedirs(path, mode=0o700, exist_ok=True)
            self.environment["XDG_" + variable] = path
        directory = os.path.join(work, "config", "sinchctl")
        os.makedirs(directory, mode=0o700, exist_ok=True)
        profile = {
            "environmentHost": server.domain, "outboundProxy": server.proxy(transport),
            "applicationKey": server.application, "applicationSecret": server.secret, "mediaSecurity": "none",
        }
        if server.ca_file:
            profile["caFile"] = server.ca_file
        with os.fdopen(os.open(os.path.join(directory, "config.json"), os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600),
                       "w") as config:
            json.dump({"profiles": {"default": profile}}, config)

    def run(self, *arguments):
        """Runs a command to its end; returns when it was issued and what it printed."""
        issued = time.time()
        done = subprocess.run([self.program, *arguments], stdin=subprocess.DEVNULL, capture_output=True, text=True,
                              env=self.environment, timeout=60)
        if done.returncode != 0:
            raise RuntimeError(f"sinchctl {' '.join(arguments)}: exit code {done.returncode}: {done.stderr.strip()}")
        return issued, done.stdout

    def start(self):
        options = ["--auto-answer"] if self.answers else []
        issued, _ = self.run("start", "--user", self.user, "--play", self.speech, "--playback", "null", *options)
        self.returned = time.time()
        _, text = self.run("status", "--user", self.user, "--json")
        self.pid = json.loads(text)["clients"][0]["pid"]
        return issued

    def call(self, user):
        issued, _ = self.run("call", user, "--as", self.user, "--detach")
        return issued

    def timed_call(self, user):
        """Returns when the command was issued, when the call began, and when it was answered."""
        issued, text = self.run("call", user, "--as", self.user, "--detach", "--json")
        report = json.loads(text)
        began = datetime.datetime.fromisoformat(report["times"]["started"]).timestamp()
        return issued, began, began + report["delays"]["answered"] / 1000

    def hang_up(self):
        self.run("hangup", "--as", self.user, "--all")

    def stop(self):
        if self.pid is not None:
            self.run("terminate", "--user", self.user)
            self.pid = None


class Baresip:
    """A baresip that is told what to do through its TCP control port."""

    name = "baresip"

    def __init__(self, program, work, user, server, speech, answers, debian_modules=False,
                 transport="udp"):
        self.program = program
        self.user = user
        self.process = None
        # Only what the calls need; or what the configuration that baresip writes for a new user loads besides.
        more = ["g711.so", "alsa.so", "stun.so", "turn.so", "ice.so"] if debian_modules else []
        applications = ["auloop.so", "contact.so", "debug_cmd.so", "vidloop.so"] if debian_modules else []
        self.directory = os.path.join(work, user)
        self.log = os.path.join(self.directory, "log")
        os.makedirs(self.directory, exist_ok=True)
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.control_port = probe.getsockname()[1]
        modules = ["module " + name for name in ["opus.so", "aufile.so", "aubridge.so", *more]]
        modules += ["module_tmp uuid.so"] if debian_modules else []
        modules += ["module_app " + name for name in ["account.so", "menu.so", "ctrl_tcp.so", *applications]]
        modules += [f"sip_cafile {server.ca_file}"] if server.ca_file else []
        self.write("config", f"""
            sip_listen 127.0.0.1:0
            net_interface 127.0.0.1
            ctrl_tcp_listen 127.0.0.1:{self.control_port}
            audio_source aufile,{speech}
            audio_player aubridge,nil
            audio_alert aubridge,nil
            ausrc_srate 48000
            auplay_srate 48000
            ausrc_channels 1
            auplay_channels 1
            opus_stereo no
            opus_sprop_stereo no
            opus_application voip
            opus_bitrate {BITRATE}
            opus_complexity {COMPLEXITY}
            opus_inbandfec yes
            opus_packet_loss 5
            module_path {self.modules()}
            """ + "\n".join(modules))
        answer_mode = ";answermode=auto" if answers else ""
        self.write("accounts", f'<sip:{user}@{server.domain};transport={transport}>;auth_pass={server.password}'
                   f';outbound="sip:{server.proxy(transport)}"{answer_mode}')
        self.write("contacts", "")

    @staticmethod
    def modules():
        for path in ("/usr/lib/baresip/modules", "/usr/local/lib/baresip/modules"):
            if os.path.isdir(path):
                return path
        raise SystemExit("bench: baresip's modules are not installed; run scripts/setup bench")

    def write(self, name, text):
        with open(os.path.join(self.directory, name), "w") as file:
            file.write(re.sub(r"^ +", "", text, flags=re.M).strip() + "\n")

    @property
    def pid(self):
        return self.process.pid if self.process else None

    def start(self):
        with open(self.log, "wb") as log:
            issued = time.time()
            self.process = quiet([self.program, "-f", self.directory], stdout=log, stderr=log)
        deadline = time.monotonic() + 10
        while True:
            try:
                self.control = socket.create_connection(("127.0.0.1", self.control_port))
                return issued
            except OSError:
                if time.monotonic() > deadline or self.process.poll() is not None:
                    raise RuntimeError(f"baresip does not start: see {self.log}") from None
                time.sleep(0.005)

    def command(self, name, parameters=""):
        """Sends a command as a netstring; answers and events are read away later."""
        text = json.dumps({"command": name, "params": parameters}).encode()
        issued = time.time()
        self.control.sendall(b"%d:%s," % (len(text), text))
        return issued

    def drain(self):
        self.control.setblocking(False)
        try:
            while self.control.recv(65536):
                pass
        except BlockingIOError:
            pass
        self.control.setblocking(True)

    def call(self, user):
        self.drain()
        return self.command("dial", user)

    def timed_call(self, user):
        """Returns when the command was issued, the same once more, and when the event of the answer arrived."""
        issued = self.call(user)
        said = b""
        self.control.settimeout(10)
        try:
            while b"CALL_ESTABLISHED" not in said:
                piece = self.control.recv(65536)
                answered = time.time()
                said += piece
                if not piece or b"CALL_CLOSED" in said:
                    raise RuntimeError(f"{self.user} could not call {user}: {said.decode(errors='replace')}")
        except TimeoutError:
            raise RuntimeError(f"nobody answered {self.user} in 10 s: {said.decode(errors='replace')}") from None
        return issued, issued, answered

    def hang_up(self):
        self.command("hangup")

    def stop(self):
        if self.process is None:
            return
        self.control.close()
        self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.process = None
