"""Parts of a program in the place of a runtime, which tries what it should not reach and answers as a server does."""

BEGIN = """
import ctypes, json, os, socket, sys, threading
if sys.argv[1:] == ["--help"]:
    sys.exit(print("fd:N"))
aims = json.loads(AIMS)
flags = dict(flag.removeprefix("--").split("=", 1) for flag in sys.argv[1:] if "=" in flag)
found = {}
def attempt(name, what):
    try:
        found[name] = str(what() or "ok")
    except OSError as error:
        found[name] = type(error).__name__
"""
"""Reads what it is to attack, `AIMS`, and its flags; `attempt` notes in `found` what came of a try."""

ANSWER = """
def answer(sock):
    sock.listen()
    while True:
        client, _ = sock.accept()
        def talk(client=client):
            with client:
                while data := client.recv(65536):
                    client.sendall(b"HTTP/1.1 200 OK\\r\\nContent-Length: 2\\r\\n\\r\\n{}")
        threading.Thread(target=talk, daemon=True).start()
threading.Thread(target=answer, args=(sock,), daemon=True).start()
"""
"""Answers all that comes to the socket `sock`."""
