"""Sentences that English does not make: fronted clauses, and persons where processes are meant.

A sentence opens with its actor; ranks, threads and processes go by these names. Errors and help
texts are checked everywhere, comments and docstrings in every file but those in words_to_do.txt,
a list that may only get shorter.
"""

import ast
import io
import re
import tokenize

from tidy_source import TOKENS

TO_DO = "tests/tidy/words_to_do.txt"
OPENINGS = "Of Where Whether Whose Who Whom Whoever How What Which Nobody Likewise".split()
PERSONS = "who whoever whom nobody somebody anybody everybody".split()
CPP = (".cpp", ".hpp", ".h", ".c", ".inc", ".cu")
OPENING = re.compile(rf"(?:^|(?<=[.!?] ))({'|'.join(OPENINGS)})\b(?![^.!?]*\?)")
PERSON = re.compile(rf"\b({'|'.join(PERSONS)})\b", re.IGNORECASE)
MARKS = re.compile(r"^[\s/*#!<]+|[\s/*]+$")


def blocks(pieces):
    """(line, text) of every run of comments on consecutive lines."""
    block, first, last = [], 0, -2
    for line, text in pieces:
        if line != last + 1 and block:
            yield first, block
            block = []
        if not block:
            first = line
        block.append(MARKS.sub("", text))
        last = line
    if block:
        yield first, block


def lines_of(line, text):
    return [(line + at, part) for at, part in enumerate(text.split("\n"))]


def cpp_texts(text):
    """Blocks of comments, and literals, each as (line, list of its lines)."""
    comments, literals = [], []
    for match in TOKENS.finditer(text):
        line = text.count("\n", 0, match.start()) + 1
        if match.group().startswith("/"):
            comments += lines_of(line, match.group())
        elif match.group().startswith('"'):
            literals.append((line, [match.group()[1:-1]]))
    return list(blocks(comments)), literals


def python_texts(text):
    comments = [(token.start[0], token.string)
                for token in tokenize.generate_tokens(io.StringIO(text).readline)
                if token.type == tokenize.COMMENT]
    tree, docstrings = ast.parse(text), set()
    found = []
    for node in ast.walk(tree):
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef)) and node.body:
            first = node.body[0]
            if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant) \
                    and isinstance(first.value.value, str):
                docstrings.add(first.value)
                found.append((first.lineno, [line.strip()
                                             for line in first.value.value.split("\n")]))
    literals = [(node.lineno, node.value.split("\n")) for node in ast.walk(tree)
                if isinstance(node, ast.Constant) and isinstance(node.value, str)
                and node not in docstrings]
    return list(blocks(comments)) + found, literals


def texts_of(path, text):
    return python_texts(text) if path.endswith(".py") else cpp_texts(text)


def block_findings(first, block):
    """(line, message) of every sentence that opens with one of OPENINGS, and of every person."""
    starts, joined = [], ""
    for line in block:
        starts.append(len(joined))
        joined += line + " "
    for match in OPENING.finditer(joined):
        line = first + sum(start <= match.start() for start in starts) - 1
        yield line, f"a sentence opens with {match[1]}: actor first, then verb, then object"
    for at, part in enumerate(block):
        for match in PERSON.finditer(part):
            yield first + at, f"{match[1]}: say which rank, thread, process or caller it is"


def comment_findings(path, text):
    for first, block in texts_of(path, text)[0]:
        yield from block_findings(first, block)


def is_checked(path):
    return path.endswith((*CPP, ".py")) and not path.startswith("tests/tidy/")


def plain_comments(path, text, tree):
    """Comments and docstrings, but in files that are still to be done."""
    to_do = tree.get(TO_DO, "").split()
    if is_checked(path) and path not in to_do:
        yield from comment_findings(path, text)
    if path == TO_DO:
        for name in to_do:
            if name not in tree or not any(comment_findings(name, tree[name])):
                yield 1, f"{name} is in order: take it from the list"


def plain_messages(path, text, tree):
    """Errors and help texts of the product, its tools and its laboratory."""
    if not is_checked(path) or path.startswith("tests/") or "/tests/" in path:
        return
    for first, block in texts_of(path, text)[1]:
        if " " in block[0]:  # else it is a name
            yield from block_findings(first, block)


RULES = (plain_comments, plain_messages)
