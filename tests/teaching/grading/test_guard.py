"""What a learner's code may not do while it is graded, event by event."""

import pytest

from lt_core.teaching.grading.guard import refused


@pytest.mark.parametrize(
    ("event", "arguments", "says"),
    [
        ("socket.connect", (None, ("93.184.216.34", 80)), "network, 93.184.216.34"),
        ("socket.connect", (None, ("2606:2800::1", 80, 0, 0)), "network, 2606:2800::1"),
        ("socket.sendto", (None, ("10.0.0.1", 53)), "network, 10.0.0.1"),
        ("socket.getaddrinfo", ("example.org", 80, 0, 0, 0), "network, example.org"),
        ("socket.getaddrinfo", (b"example.org", 80, 0, 0, 0), "network, example.org"),
        ("socket.gethostbyname", ("example.org",), "network, example.org"),
        ("subprocess.Popen", ("ls", ["ls"], None, None), "subprocess.Popen, a process"),
        ("os.fork", (), "os.fork, a process"),
        ("os.system", (b"ls",), "os.system, a process"),
        ("os.kill", (1, 9), "os.kill, a signal"),
    ],
)
def test_refused(event, arguments, says):
    assert refused(event, arguments) == says


@pytest.mark.parametrize(
    ("event", "arguments"),
    [
        ("socket.connect", (None, ("127.0.0.1", 80))),
        ("socket.connect", (None, "/run/lt_core/door")),
        ("socket.sendmsg", (None, None)),
        ("socket.getaddrinfo", ("localhost", 80, 0, 0, 0)),
        ("socket.getaddrinfo", (None, 80, 0, 0, 0)),
        ("open", ("notes.txt", "w", 0)),
        ("import", ("torch",)),
    ],
)
def test_allowed(event, arguments):
    assert refused(event, arguments) == ""
