"""Asks the service again and again how alike two questions are; on SIGTERM says which revision answered how often.

python ask.py [http://127.0.0.1:8090]
"""

import collections
import itertools
import random
import signal
import sys

import httpx

QUESTIONS = [
    "How do I reset my password?",
    "I forgot my password, what can I do?",
    "Where is the nearest railway station?",
    "What time does the next train leave?",
    "Can I return shoes that I have worn?",
    "How long do I have to send something back?",
    "Is there a vegetarian dish on the menu?",
    "Do you have anything without meat?",
    "Why is my bill higher than last month?",
    "How do I cancel my subscription?",
    "Which documents do I need to open an account?",
    "Does the guarantee cover a broken screen?",
]


def main(gateway: str) -> None:
    """Ask until SIGTERM."""
    url = f"{gateway}/serving/default/question-similarity/v2/models/question-similarity/infer"
    signal.signal(signal.SIGTERM, lambda *_: sys.exit())
    seen: collections.Counter[str] = collections.Counter()
    pairs = list(itertools.combinations(QUESTIONS, 2))
    random.Random(0).shuffle(pairs)
    try:
        with httpx.Client(timeout=60, trust_env=False) as client:
            for first, second in itertools.cycle(pairs):
                asked = {"first": first, "second": second}
                inputs = [{"name": n, "datatype": "BYTES", "shape": [1, 1], "data": [t]} for n, t in asked.items()]
                answer = client.post(url, json={"inputs": inputs})
                seen[answer.headers.get("fairlead-revision", "") if answer.is_success else answer.text] += 1
    finally:
        for who, times in sorted(seen.items()):
            print(f"{who}: {times}", flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:] or ["http://127.0.0.1:8090"])
