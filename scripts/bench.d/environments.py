"""The two environments under load: registrations and calls per second, CPU, memory per registered client.

    scripts/bench environments [--quick] [--json]

sipp drives both, in turns, with a socket of its own for each client, since both environments judge a client by its flow.
What counts is the work per second of the server's CPU: sipp shares the machine, so the rates reached are lower limits.
docs/scaling.md explains the figures and works them out to a million users.
"""

import argparse
import base64
import hashlib
import hmac
import json
import os
import re
import shutil
import signal
import socket
import ssl
import statistics
import subprocess
import sys
import tempfile
import time

import processes

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
APPLICATION = "5d1c7a0e-9d43-4c02-8f26-3a4f1b8f6e11"
SECRET = "c2luY2hjdGwtYmVuY2htYXJrLXNlY3JldA=="
CALLEES = 20  # so many that none comes near the embedded limit of 500 messages a second for each client


def token(user, application, secret):
    """A registration token of an hour."""
    def part(data):
        return base64.urlsafe_b64encode(data).rstrip(b"=").decode()
    now = int(time.time())
    day = time.strftime("%Y%m%d", time.gmtime(now))
    issuer = f"//rtc.sinch.com/applications/{application}"
    header = {"alg": "HS256", "kid": f"hkdfv1-{day}"}
    claims = {"iss": issuer, "sub": f"{issuer}/users/{user}", "iat": now, "exp": now + 3600, "nonce": f"{user}-{now}"}
    signed = ".".join(part(json.dumps(piece, separators=(",", ":")).encode()) for piece in (header, claims))
    key = hmac.new(base64.b64decode(secret), day.encode(), hashlib.sha256).digest()
    return signed + "." + part(hmac.new(key, signed.encode(), hashlib.sha256).digest())


def register(user, bearer, domain, here, transport, expires=3600):
    """A REGISTER as sipp sends it, for sockets of our own."""
    return (f"REGISTER sip:{domain} SIP/2.0\r\nVia: SIP/2.0/{transport.upper()} {here};branch=z9hG4bK{user};rport\r\n"
            f"Max-Forwards: 70\r\nFrom: <sip:{user}@{domain}>;tag=1\r\nTo: <sip:{user}@{domain}>\r\nCall-ID: {user}\r\n"
            f"CSeq: 1 REGISTER\r\nContact: <sip:{user}@{here};transport={transport}>\r\nExpires: {expires}\r\n"
            f"Authorization: Bearer {bearer}\r\nContent-Length: 0\r\n\r\n").encode()


class Server:
    """What both environments have in common: an address, an application, and processes whose cost is known."""

    def pids(self):
        """All processes of the server."""
        found, rest = [], [self.process.pid]
        while rest:
            pid = rest.pop()
            found.append(pid)
            with open(f"/proc/{pid}/task/{pid}/children") as file:
                rest += [int(child) for child in file.read().split()]
        return found

    def cpu(self):
        return sum(processes.cpu_seconds(pid) for pid in self.pids())

    def memory(self):
        """Memory that is the server's own, shared pages counted once, in KiB."""
        total = 0
        for pid in self.pids():
            with open(f"/proc/{pid}/smaps_rollup") as file:
                total += int(re.search(r"^Pss:\s+(\d+)", file.read(), re.M).group(1))
        return total

    def token(self, user):
        return token(user, self.application, self.secret)

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(15)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


class Kamailio(Server):
    name = "Kamailio"

    password = "benchmark"  # of all phones

    def __init__(self, work, memory=512, phones=()):
        self.state = tempfile.mkdtemp(prefix="node.", dir=work)
        self.address, self.port, self.tls_port, self.domain = f"127.99.{os.getpid() % 250}.7", 5060, 5061, "localhost"
        self.application, self.secret = APPLICATION, SECRET
        path = os.open(os.path.join(self.state, "applications"), os.O_WRONLY | os.O_CREAT, 0o600)
        with os.fdopen(path, "w") as file:
            file.write(f"{APPLICATION} {SECRET}\n")
        path = os.open(os.path.join(self.state, "phones"), os.O_WRONLY | os.O_CREAT, 0o600)
        with os.fdopen(path, "w") as file:
            for user in phones:
                proof = hashlib.md5(f"{user}:{self.domain}:{self.password}".encode()).hexdigest()
                file.write(f"{user} {APPLICATION} {user} {proof}\n")
        self.ca_file = os.path.join(self.state, "tls", "ca.pem")
        self.log = os.path.join(self.state, "log")
        with open(self.log, "wb") as log:
            self.process = subprocess.Popen(
                [os.path.join(ROOT, "deploy/kamailio/run"), "--state", self.state, "--address", self.address,
                 "--flood-density", "0", "--calls-per-second", "0", "--memory", str(memory)],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        for _ in range(100):
            if self.control("core.uptime"):
                return
            time.sleep(0.1)
        raise SystemExit(f"bench: Kamailio does not start: see {self.log}")

    def proxy(self, transport):
        """Where clients send to over a transport."""
        port = {"udp": self.port, "tcp": self.port, "tls": self.tls_port, "wss": 5443}[transport]
        return f"{self.address}:{port};transport={transport}"

    def control(self, *words):
        program = shutil.which("kamcmd", path=os.environ.get("PATH", "") + ":/usr/sbin")
        done = subprocess.run([program, "-s", f"unix:{self.state}/control", *words], capture_output=True, text=True)
        return done.stdout if done.returncode == 0 else ""

    def shared(self):
        """Shared memory in use, in bytes."""
        return int(re.search(r"real_used: (\d+)", self.control("core.shmmem")).group(1))


class Embedded(Server):
    name = "embedded"

    def __init__(self, work, program):
        home = tempfile.mkdtemp(prefix="home.", dir=work)
        environment = {"PATH": os.environ["PATH"], "HOME": home}
        for name in ("XDG_RUNTIME_DIR", "XDG_STATE_HOME", "XDG_CONFIG_HOME"):
            environment[name] = os.path.join(home, name)
            os.mkdir(environment[name], 0o700)
        self.log = os.path.join(home, "log")
        with open(self.log, "wb") as log:
            self.process = subprocess.Popen([program, "environment", "run"], env=environment, stdin=subprocess.DEVNULL,
                                            stdout=log, stderr=log)
        path = os.path.join(environment["XDG_RUNTIME_DIR"], "sinchctl", "environment.json")
        for _ in range(100):
            if os.path.exists(path):
                with open(path) as file:
                    said = json.load(file)
                self.address, self.port, self.domain = said["host"], said["port"], said["realm"]
                self.application, self.secret = said["applicationKey"], said["applicationSecret"]
                return
            time.sleep(0.1)
        raise SystemExit(f"bench: the embedded environment does not start: see {self.log}")


# MARK: sipp

REGISTER = """
<send retrans="500" start_rtd="register"><![CDATA[
REGISTER sip:DOMAIN SIP/2.0
Via: SIP/2.0/UDP [local_ip]:[local_port];branch=[branch];rport
Max-Forwards: 70
From: <sip:[field0]@DOMAIN>;tag=[call_number]
To: <sip:[field0]@DOMAIN>
Call-ID: r///[call_id]
CSeq: 1 REGISTER
Contact: <sip:[field0]@[local_ip]:[local_port]>
Expires: 3600
Authorization: Bearer [field1]
Content-Length: 0

]]></send>
<recv response="200" rtd="register"/>
"""

CALL = """
<send retrans="500"><![CDATA[
INVITE sip:[field2]@DOMAIN SIP/2.0
Via: SIP/2.0/UDP [local_ip]:[local_port];branch=[branch];rport
Max-Forwards: 70
From: <sip:[field0]@DOMAIN>;tag=c[call_number]
To: <sip:[field2]@DOMAIN>
Call-ID: [call_id]
CSeq: 1 INVITE
Contact: <sip:[field0]@[local_ip]:[local_port]>
Content-Type: application/sdp
Content-Length: [len]

v=0
o=- 1 1 IN IP4 [local_ip]
s=-
c=IN IP4 [local_ip]
t=0 0
m=audio 20000 RTP/AVP 0
]]></send>
<recv response="100" optional="true"/>
<recv response="180" optional="true"/>
<recv response="200" rrs="true"/>
<send><![CDATA[
ACK [next_url] SIP/2.0
Via: SIP/2.0/UDP [local_ip]:[local_port];branch=[branch];rport
Max-Forwards: 70
[routes]
From: <sip:[field0]@DOMAIN>;tag=c[call_number]
To: <sip:[field2]@DOMAIN>[peer_tag_param]
Call-ID: [call_id]
CSeq: 1 ACK
Content-Length: 0

]]></send>
<send retrans="500"><![CDATA[
BYE [next_url] SIP/2.0
Via: SIP/2.0/UDP [local_ip]:[local_port];branch=[branch];rport
Max-Forwards: 70
[routes]
From: <sip:[field0]@DOMAIN>;tag=c[call_number]
To: <sip:[field2]@DOMAIN>[peer_tag_param]
Call-ID: [call_id]
CSeq: 2 BYE
Content-Length: 0

]]></send>
<recv response="200"/>
"""

ANSWER = """
<recv request="INVITE" rrs="true"/>
<send><![CDATA[
SIP/2.0 180 Ringing
[last_Via:]
[last_Record-Route:]
[last_From:]
[last_To:];tag=[pid]-[call_number]
[last_Call-ID:]
[last_CSeq:]
Contact: <sip:callee@[local_ip]:[local_port]>
Content-Length: 0

]]></send>
<pause milliseconds="20"/>
<send retrans="500"><![CDATA[
SIP/2.0 200 OK
[last_Via:]
[last_Record-Route:]
[last_From:]
[last_To:];tag=[pid]-[call_number]
[last_Call-ID:]
[last_CSeq:]
Contact: <sip:callee@[local_ip]:[local_port]>
Content-Type: application/sdp
Content-Length: [len]

v=0
o=- 1 1 IN IP4 [local_ip]
s=-
c=IN IP4 [local_ip]
t=0 0
m=audio 20000 RTP/AVP 0
]]></send>
<recv request="ACK"/>
<recv request="BYE"/>
<send><![CDATA[
SIP/2.0 200 OK
[last_Via:]
[last_From:]
[last_To:]
[last_Call-ID:]
[last_CSeq:]
Content-Length: 0

]]></send>
"""


def scenario(work, name, text, domain):
    path = os.path.join(work, name + ".xml")
    with open(path, "w") as file:
        file.write(f'<?xml version="1.0" encoding="UTF-8"?>\n<scenario name="{name}">{text}</scenario>\n'
                   .replace("DOMAIN", domain))
    return path


def drive(server, work, text, users, at_once):
    """Lets sipp go through all users, so many at once; returns seconds and what the server's CPU did."""
    rows = os.path.join(work, "users.csv")
    with open(rows, "w") as file:
        file.write("SEQUENTIAL\n")
        for index, user in enumerate(users):
            file.write(f"{user};{server.token(user)};callee{index % CALLEES}\n")
    command = ["sipp", f"{server.address}:{server.port}", "-sf", scenario(work, "client", text, server.domain), "-inf", rows,
               "-i", "127.0.0.1", "-t", "un", "-max_socket", "4000", "-m", str(len(users)), "-l", str(at_once), "-r", "100000",
               "-rp", "1000", "-nostdin", "-timeout", "300", "-trace_err", "-error_file", os.path.join(work, "errors")]
    used, begin = server.cpu(), time.monotonic()
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, cwd=work)
    elapsed, used = time.monotonic() - begin, server.cpu() - used
    if done.returncode != 0:
        raise SystemExit(f"bench: sipp failed at {server.name}: exit code {done.returncode}\n{done.stdout[-1500:]}")
    return elapsed, used


class Callees:
    """Users that answer every call, each by a sipp on a port that was registered before."""

    def __init__(self, server, work):
        self.running = []
        path = scenario(work, "callee", ANSWER, server.domain)
        for index in range(CALLEES):
            with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as phone:
                phone.bind(("127.0.0.1", 0))
                phone.settimeout(5)
                port = phone.getsockname()[1]
                user = f"callee{index}"
                phone.sendto(register(user, server.token(user), server.domain, f"127.0.0.1:{port}", "udp"),
                             (server.address, server.port))
                if not phone.recv(65536).startswith(b"SIP/2.0 200"):
                    raise SystemExit(f"bench: {user} is not registered with {server.name}")
            self.running.append(subprocess.Popen(
                ["sipp", "-sf", path, "-i", "127.0.0.1", "-p", str(port), "-nostdin", f"{server.address}:{server.port}"],
                stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd=work))
        time.sleep(1)

    def stop(self):
        for process in self.running:
            process.kill()
            process.wait()


# MARK: Measurements

class Results:
    def __init__(self):
        self.rows = []

    def add(self, name, unit, server, values):
        self.rows.append({"figure": name, "unit": unit, "server": server, "median": statistics.median(values),
                          "samples": values})

    def show(self):
        print(f"{'figure':<46}{'server':<12}{'median':>12}")
        for row in self.rows:
            print(f"{row['figure']:<46}{row['server']:<12}{row['median']:>12.1f} {row['unit']}")


def rates(server, work, options, results):
    """The embedded environment holds 10,000 registrations: all rounds together stay below."""
    registrations, calls = {"rate": [], "cpu": []}, {"rate": [], "cpu": []}
    count = options.registrations
    for number in range(options.rounds):
        elapsed, used = drive(server, work, REGISTER, [f"u{number}x{index}" for index in range(count)], 200)
        registrations["rate"].append(count / elapsed)
        registrations["cpu"].append(count / used)
    callees = Callees(server, work)
    try:
        for number in range(options.rounds):
            users = [f"c{number}x{index}" for index in range(options.calls)]
            elapsed, used = drive(server, work, REGISTER + CALL, users, 50)
            # Each caller registers first; what that costs was measured before.
            own = used - options.calls / statistics.median(registrations["cpu"])
            calls["rate"].append(options.calls / elapsed)
            calls["cpu"].append(options.calls / own)
    finally:
        callees.stop()
    results.add("registrations, as driven", "/s", server.name, registrations["rate"])
    results.add("registrations per CPU second", "", server.name, registrations["cpu"])
    results.add("registrations with a call each, as driven", "/s", server.name, calls["rate"])
    results.add("calls per CPU second", "", server.name, calls["cpu"])


def memory_over_udp(server, work, options, results):
    shared = server.shared() if isinstance(server, Kamailio) else None
    before = server.memory()
    drive(server, work, REGISTER, [f"m{index}" for index in range(options.clients)], 200)
    time.sleep(1)
    results.add("memory per client over UDP", "KiB", server.name, [(server.memory() - before) / options.clients])
    if shared is not None:
        results.add("shared memory per client over UDP", "KiB", server.name,
                    [(server.shared() - shared) / 1024 / options.clients])


def memory_over_tls(server, options, results):
    context = ssl.create_default_context(cafile=server.ca_file)
    shared, before, used = server.shared(), server.memory(), server.cpu()
    connections = []
    for index in range(options.connections):
        user = f"t{index}"
        connection = context.wrap_socket(socket.create_connection((server.address, server.tls_port)),
                                         server_hostname=server.domain)
        here = "%s:%d" % connection.getsockname()
        connection.sendall(register(user, server.token(user), server.domain, here, "tls"))
        if not connection.recv(65536).startswith(b"SIP/2.0 200"):
            raise SystemExit("bench: a client over TLS is not registered")
        connections.append(connection)
    used = server.cpu() - used
    results.add("TLS handshakes with registration per CPU second", "", server.name, [options.connections / used])
    results.add("memory per client over TLS", "KiB", server.name, [(server.memory() - before) / options.connections])
    results.add("shared memory per client over TLS", "KiB", server.name,
                [(server.shared() - shared) / 1024 / options.connections])
    used, begin = server.cpu(), time.monotonic()
    for connection in connections:
        connection.sendall(b"\r\n\r\n")
    for connection in connections:
        connection.recv(16)
    results.add("keep-alives over TLS per CPU second", "", server.name, [len(connections) / (server.cpu() - used)])
    results.add("keep-alives over TLS, as driven", "/s", server.name, [len(connections) / (time.monotonic() - begin)])
    for connection in connections:
        connection.close()


def main():
    parser = argparse.ArgumentParser(prog="scripts/bench environments", description=__doc__.split("\n")[0])
    parser.add_argument("--rounds", type=int, default=3, help="rounds; medians are shown (3)")
    parser.add_argument("--registrations", type=int, default=2000, help="registrations in a round (2000)")
    parser.add_argument("--calls", type=int, default=1000, help="calls in a round (1000)")
    parser.add_argument("--clients", type=int, default=5000, help="registered clients whose memory is measured (5000)")
    parser.add_argument("--connections", type=int, default=800, help="the same over TLS (800)")
    parser.add_argument("--quick", action="store_true", help="a tenth of all that")
    parser.add_argument("--json", action="store_true", help="print all samples as JSON instead of a table")
    parser.add_argument("--sinchctl", default=os.path.join(ROOT, ".build/release/sinchctl"), help="the program")
    options = parser.parse_args()
    if options.quick:
        options.rounds = 1
        for name in ("registrations", "calls", "clients", "connections"):
            setattr(options, name, getattr(options, name) // 10)
    if not os.access(options.sinchctl, os.X_OK):
        raise SystemExit("bench: there is no .build/release/sinchctl; run: make build")
    if shutil.which("sipp") is None:
        raise SystemExit("bench: sipp is not installed; run: scripts/setup bench")
    results = Results()
    with tempfile.TemporaryDirectory(prefix="bench.") as work:
        for measure in (rates, memory_over_udp):
            for make in (lambda: Kamailio(work), lambda: Embedded(work, os.path.abspath(options.sinchctl))):
                server = make()
                try:
                    measure(server, work, options, results)
                finally:
                    server.stop()
                print(f"  {server.name}: {measure.__name__} done", file=sys.stderr)
        server = Kamailio(work)
        try:
            memory_over_tls(server, options, results)
        finally:
            server.stop()
    if options.json:
        print(json.dumps({"cores": os.cpu_count(), "figures": results.rows}, indent=2))
    else:
        results.show()


if __name__ == "__main__":
    main()
