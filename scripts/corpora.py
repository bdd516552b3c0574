"""Cuts text into token ids: int32, little-endian, files in the order of their names, an <|endoftext|> after each.

    corpora.py corpora TOKENIZER PACKAGES OUT   the corpora from Debian packages unpacked in the folder PACKAGES
    corpora.py trace TOKENIZER OUT TEXT...      your own files
"""
import array
import hashlib
import html
import json
import pathlib
import re
import sys
import time

import tokenizers

# Of each HTML page only what stands between these two, so that navigation, which each page repeats, does not count.
PROSE = {
    "python": ("python3.11-doc/usr/share/doc/python3.11/html", r'role="main">', r'<div class="sphinxsidebar"'),
    "postgresql": ("postgresql-doc-15/usr/share/doc/postgresql-doc-15/html",
                   r'<div class="navheader".*?<hr />', r'<div class="navfooter"'),
    "linux-doc": ("linux-doc-6.1/usr/share/doc/linux-doc-6.1/html", r'<div role="main"[^>]*>', r"<footer>"),
    "handbook": ("debian-handbook/usr/share/doc/debian-handbook/html/en-US",
                 r'<ul class="docnav top">.*?</ul>', r'<ul class="docnav">'),
}
INDEXES = re.compile(r"^(genindex.*|search|py-modindex|bookindex|ix01)\.html$")

# Of the kernel's source these folders, in this order, as far as CODE_TOKENS reach.
CODE_FOLDERS = ["kernel", "mm", "block", "lib", "security", "net", "fs"]
CODE_TOKENS = 8_000_000
CODE_SUFFIXES = {".c", ".h", ".S", ".rs"}

BATCH_BYTES = 4 << 20

UNSEEN = re.compile(r"<(script|style|head)\b.*?</\1>|<!--.*?-->", re.DOTALL)
LINE_ENDS = re.compile(r"</?(?:p|div|li|ul|ol|dl|dt|dd|tr|table|h[1-6]|pre|br|section|blockquote)\b[^>]*>")
TAG = re.compile(r"<[^>]+>")
BLANK_LINES = re.compile(r"\n[ \t]*(?:\n[ \t]*)+")


def page_text(page, first, last):
    start = re.search(first, page, re.DOTALL)
    if not start:
        return ""
    page = page[start.end():]
    end = re.search(last, page)
    page = UNSEEN.sub("", page[:end.start()] if end else page)
    return BLANK_LINES.sub("\n\n", html.unescape(TAG.sub("", LINE_ENDS.sub("\n", page)))).strip() + "\n"


def prose(packages, folder, first, last):
    """The texts of a folder's HTML pages, in the order of their names."""
    for path in sorted((packages / folder).rglob("*.html")):
        if not INDEXES.match(path.name):
            text = page_text(path.read_text(errors="replace"), first, last)
            if text.strip():
                yield text


def code(packages):
    source = next((packages / "linux-source-6.1").glob("linux-source-*"))
    for folder in CODE_FOLDERS:
        for path in sorted((source / folder).rglob("*")):
            if path.suffix in CODE_SUFFIXES and path.is_file() and not path.is_symlink():
                yield path.read_text(errors="replace")


class Encoder:
    def __init__(self, path):
        self.tokenizer = tokenizers.Tokenizer.from_file(str(path))
        self.end = self.tokenizer.token_to_id("<|endoftext|>")
        assert self.end is not None, f"{path} names no <|endoftext|>"

    def tokens(self, texts, most=None):
        """(ids, files) of the texts, which ends after `most` tokens."""
        ids, files = array.array("i"), 0
        for batch in batches(texts):
            for encoding in self.tokenizer.encode_batch_fast(batch, add_special_tokens=False):
                ids.extend(encoding.ids)
                ids.append(self.end)
                files += 1
                if most and len(ids) >= most:
                    return ids[:most], files
        return ids, files


def batches(texts):
    """Lists of texts that several threads may encode at once."""
    batch, held = [], 0
    for text in texts:
        batch.append(text)
        held += len(text)
        if held >= BATCH_BYTES:
            yield batch
            batch, held = [], 0
    if batch:
        yield batch


def write(path, ids):
    assert ids.itemsize == 4
    if sys.byteorder == "big":
        ids.byteswap()
    path.write_bytes(ids.tobytes())
    return hashlib.sha256(path.read_bytes()).hexdigest()


def make_corpora(tokenizer, packages, out):
    out.mkdir(parents=True)
    encoder = Encoder(tokenizer)
    corpora = []
    for name in [*PROSE, "code"]:
        start = time.monotonic()
        texts = code(packages) if name == "code" else prose(packages, *PROSE[name])
        ids, files = encoder.tokens(texts, CODE_TOKENS if name == "code" else None)
        seconds = time.monotonic() - start
        print(f"set-up:   {name}: {len(ids):,} tokens of {files:,} files in {seconds:.1f} s", flush=True)
        corpora.append({"name": name, "file": f"{name}.i32", "files": files, "tokens": len(ids),
                        "sha256": write(out / f"{name}.i32", ids)})
    versions = dict(line.split() for line in (packages / "versions").read_text().splitlines())
    manifest = {"tokens": sum(corpus["tokens"] for corpus in corpora), "corpora": corpora, "packages": versions,
                "tokenizer": hashlib.sha256(tokenizer.read_bytes()).hexdigest()}
    (out / "manifest.json").write_text(json.dumps(manifest, indent=2) + "\n")


def make_trace(tokenizer, out, *texts):
    ids, files = Encoder(tokenizer).tokens(path.read_text(errors="replace") for path in texts)
    write(out, ids)
    print(f"{out}: {len(ids):,} tokens of {files} files")


if __name__ == "__main__":
    what, *paths = sys.argv[1:]
    {"corpora": make_corpora, "trace": make_trace}[what](*map(pathlib.Path, paths))
