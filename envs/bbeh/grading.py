"""The official matcher of BBEH: what is taken for the answer, and which answers are equal.

Facts of the published evaluator (ENVIRONMENTS.md, BBEH), in our own code. It is kept as lenient and as strict as published, so
that numbers compare: prefixes are case-sensitive, only the first line counts, and a lone letter equals the letter in brackets.
"""

from __future__ import annotations

# tried in this order, each on what the one before has left
ANSWER_PREFIXES = ("The answer is:", "The final answer is ", "The final answer is: ", "The answer is ")
_WRAPPERS = ("boxed{", "text{", "texttt{")


def extract(response: str) -> str:
    """The answer in a model's response: what follows the last known prefix, without a final dot and LaTeX around it."""
    answer = response
    for prefix in ANSWER_PREFIXES:
        if prefix in answer:
            answer = answer.split(prefix)[-1].strip()
    return _unwrap(answer.removesuffix("."))


def _unwrap(answer: str) -> str:
    if answer.startswith("$") and answer.endswith("$"):
        answer = answer[1:-1]
    for opening in _WRAPPERS:
        if opening in answer and answer.endswith("}"):
            answer = answer[:-1].split(opening)[1]
    return answer


def prediction(response: str) -> str:
    """A response as it is compared: extracted, lower-case, first line, no asterisks, no blanks after commas, no final dot."""
    answer = extract(response.strip()).lower().replace(", ", ",").replace("**", "")
    return answer.split("\n")[0].removesuffix(".")


def equal(given: str, wanted: str) -> bool:
    """Whether a prepared prediction equals a prepared target."""
    if given == wanted:
        return True
    for bracketed, plain in ((given, wanted), (wanted, given)):
        if len(bracketed) == 3 and bracketed[0] == "(" and bracketed[-1] == ")":
            return bracketed[1] == plain
    try:
        if float(given) == float(wanted):
            return True
    except ValueError:
        pass
    if given.replace("'", "") == wanted.replace("'", ""):
        return True
    if f"[{wanted}]" == given or f"[{given}]" == wanted:
        return True
    return given.endswith("?") and given[:-1] == wanted


def grade(response: str, target: str) -> bool:
    """Whether a model's response is right. Pure; never raises."""
    return equal(prediction(response), target.strip().lower().replace(", ", ","))
