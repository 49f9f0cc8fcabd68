"""Reading C++ just well enough for the rules: code without comments, functions, includes."""

import re
from typing import NamedTuple


class Function(NamedTuple):
    line: int  # of the first line of its head
    length: int  # lines, head and closing brace included


TOKENS = re.compile(
    r'//[^\n]*|/\*.*?\*/|R"(?P<tag>[^(\s]*)\(.*?\)(?P=tag)"|"(?:\\.|[^"\\\n])*"'
    r"|(?<![0-9a-fA-F])'(?:\\.|[^'\\\n])*'",  # 1'000 is a number, not the start of a character
    re.DOTALL,
)
INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*([<"])([^>"\n]+)[>"]', re.MULTILINE)
CONTROL = re.compile(r"\b(if|for|while|switch|catch)\b[^;{}]*$")
CONTAINER = re.compile(  # but "struct point f(int x) {" is a function
    r"\b(namespace|class|struct|union|enum|extern)\b(?!.*\)\s*(const\b)?\s*$)", re.DOTALL
)
PARAMETERS_END = re.compile(
    r"\)\s*((const|noexcept|override|final|mutable|try|&{1,2})\s*)*((->|requires\b)[^{}]*)?$"
)
INITIALISERS = re.compile(r"\)\s*(noexcept\s*)?:[^:]")


def code_of(text):
    """The text with comments and literals emptied; every line keeps its number."""

    def empty(match):
        blank = "\n" * match.group().count("\n")
        return blank if match.group().startswith("/") else f'""{blank}'

    return TOKENS.sub(empty, text)


def includes_of(text):
    """(line, path, quoted) of every include directive."""
    for match in INCLUDE.finditer(text):
        yield text.count("\n", 0, match.start()) + 1, match.group(2), match.group(1) == '"'


def functions_of(text):
    """Every outermost function with a body; lambdas inside one belong to it.

    A heuristic: a brace at namespace or class level opens a function when a parameter list stands
    before it. Wrong guesses can only be made longer by code that nobody should write.
    """
    code = re.sub(r"^[ \t]*#(?:\\\n|[^\n])*", "", code_of(text), flags=re.MULTILINE)
    depth, depth_of_function, begun, start = 0, 0, None, 0
    initialised = None  # where the constructor began whose initialiser list we are in
    for position, sign in enumerate(code):
        if sign not in "{};":
            continue
        head = code[start:position]
        if sign == "{":
            if begun is None:
                here = start + len(head) - len(head.lstrip())
                if opens_function(head, code[start - 1 : start]):
                    begun = here if initialised is None else initialised
                    depth_of_function = depth
                elif INITIALISERS.search(head):
                    initialised = here
            depth += 1
        elif sign == "}":
            depth -= 1
            if begun is not None and depth == depth_of_function:
                first = code.count("\n", 0, begun) + 1
                last = code.count("\n", 0, position) + 1
                yield Function(first, last - first + 1)
                begun = initialised = None
        elif begun is None:
            initialised = None
        start = position + 1


def opens_function(head, before):
    """Whether the brace after `head` opens a body; `before` is the sign in front of the head."""
    if not head.strip():
        return before == "}"  # after the braces of the last member in an initialiser list
    if CONTROL.search(head) or CONTAINER.search(head):
        return False
    return bool(PARAMETERS_END.search(head))
