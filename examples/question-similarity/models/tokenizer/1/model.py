"""BERT's uncased tokenizer: words in lower case without accents, each in the longest pieces that vocab.txt has."""

import unicodedata
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
from fairlead_python import BYTES, INT64

LONGEST = 256  # tokens of one text; what comes after them is left out, as in the model's training
ROUND_TO = 16  # few lengths, so that the encoder's batcher finds requests that it can join
LONGEST_WORD = 100  # characters


class Tokens(NamedTuple):
    input_ids: INT64[-1]
    attention_mask: INT64[-1]


class Model:
    max_batch_size = 32

    def __init__(self):
        lines = (Path(__file__).parent / "vocab.txt").read_text(encoding="utf-8").splitlines()
        self.ids = {piece: number for number, piece in enumerate(lines)}

    def predict(self, text: BYTES[1]) -> Tokens:
        rows = [self.encoded(one.decode(errors="replace")) for one in text[:, 0]]
        length = -(-max(len(row) for row in rows) // ROUND_TO) * ROUND_TO
        ids = np.full((len(rows), length), self.ids["[PAD]"], np.int64)
        mask = np.zeros((len(rows), length), np.int64)
        for number, row in enumerate(rows):
            ids[number, : len(row)] = row
            mask[number, : len(row)] = 1
        return Tokens(ids, mask)

    def encoded(self, text: str) -> list[int]:
        """Return the numbers of a text's pieces, between those of [CLS] and [SEP]."""
        pieces = [self.ids[piece] for word in words(text) for piece in self.pieces(word)]
        return [self.ids["[CLS]"], *pieces[: LONGEST - 2], self.ids["[SEP]"]]

    def pieces(self, word: str) -> list[str]:
        """Return the longest pieces of the vocabulary that make up the word, from its start; [UNK] where none do."""
        found, start = [], 0
        while start < len(word) <= LONGEST_WORD:
            piece = next(self.prefixes(word, start), None)
            if piece is None:
                return ["[UNK]"]
            found.append(piece)
            start += len(piece.removeprefix("##") if start else piece)
        return found or ["[UNK]"]

    def prefixes(self, word: str, start: int) -> Iterator[str]:
        for end in range(len(word), start, -1):
            piece = ("##" if start else "") + word[start:end]
            if piece in self.ids:
                yield piece


def words(text: str) -> list[str]:
    """Return words, punctuation marks and Chinese characters, each by itself."""
    spaced = []
    for character in unicodedata.normalize("NFD", cleaned(text).lower()):
        if unicodedata.category(character) == "Mn":  # an accent
            continue
        spaced.append(f" {character} " if stands_alone(character) else character)
    return "".join(spaced).split()


def cleaned(text: str) -> str:
    """Return the text without control characters; white space of any kind is a space."""
    kept = []
    for character in text:
        if character in "\t\n\r" or unicodedata.category(character) == "Zs":
            kept.append(" ")
        elif unicodedata.category(character) not in ("Cc", "Cf", "Co", "Cs") and character != "\ufffd":
            kept.append(character)
    return "".join(kept)


def stands_alone(character: str) -> bool:
    code = ord(character)
    ascii_mark = 33 <= code <= 47 or 58 <= code <= 64 or 91 <= code <= 96 or 123 <= code <= 126
    chinese = 0x3400 <= code <= 0x4DBF or 0x4E00 <= code <= 0x9FFF or 0xF900 <= code <= 0xFAFF or code >= 0x20000
    return ascii_mark or unicodedata.category(character)[0] == "P" or (chinese and code < 0x30000)
