"""A Kamailio of its own for the measurement: registrar and proxy on one port of loopback."""

import os
import shutil
import signal
import socket
import subprocess
import time

DOMAIN = "sip.test"
APPLICATION = "5d1c7a0e-9d43-4c02-8f26-3a4f1b8f6e11"
SECRET = "c2luY2hjdGwtYmVuY2htYXJrLXNlY3JldA=="
PASSWORD = "benchmark"


def free_udp_port():
    """A port that nobody had a moment ago."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Kamailio:
    """Runs until `stop`; its files and log are in `work`."""

    domain, application, secret, password, ca_file = DOMAIN, APPLICATION, SECRET, PASSWORD, None

    def __init__(self, work):
        program = shutil.which("kamailio", path=os.environ.get("PATH", "") + ":/usr/sbin")
        if program is None:
            raise SystemExit("bench: kamailio is not installed; run scripts/setup bench")
        self.port = free_udp_port()
        self.log = os.path.join(work, "kamailio.log")
        config = os.path.join(os.path.dirname(os.path.abspath(__file__)), "kamailio.cfg")
        with open(self.log, "wb") as log:
            self.process = subprocess.Popen(
                [program, "-f", config, "-DD", "-E", "-Y", work, "-P", os.path.join(work, "kamailio.pid"),
                 "-m", "32", "-M", "4", "-A", f"PORT={self.port}", "-A", f'APPLICATION="{APPLICATION}"',
                 "-A", f'SECRET="{SECRET}"', "-A", f'PASSWORD="{PASSWORD}"'],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        self._wait_until_it_answers()

    def _wait_until_it_answers(self):
        """Asks for a user that is not there until the answer says so."""
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
            probe.bind(("127.0.0.1", 0))
            probe.settimeout(0.1)
            here = "127.0.0.1:%d" % probe.getsockname()[1]
            for attempt in range(100):
                if self.process.poll() is not None:
                    break
                request = (
                    f"OPTIONS sip:nobody@{DOMAIN} SIP/2.0\r\nVia: SIP/2.0/UDP {here};branch=z9hG4bKprobe{attempt}\r\n"
                    f"From: <sip:probe@{DOMAIN}>;tag=probe\r\nTo: <sip:nobody@{DOMAIN}>\r\nCSeq: 1 OPTIONS\r\n"
                    f"Call-ID: probe-{attempt}\r\nMax-Forwards: 70\r\nContent-Length: 0\r\n\r\n")
                try:
                    probe.sendto(request.encode(), ("127.0.0.1", self.port))
                    if probe.recv(4096).startswith(b"SIP/2.0 404"):
                        return
                except OSError:
                    time.sleep(0.05)
        self.stop()
        with open(self.log, errors="replace") as log:
            raise SystemExit("bench: kamailio does not start:\n" + "".join(log.readlines()[-10:]))

    def proxy(self, transport):
        """Where clients send to over a transport; there is only UDP."""
        return f"127.0.0.1:{self.port};transport={transport}"

    def stop(self):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            try:
                self.process.wait(10)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
