"""Shell completion scripts, generated from the command tree. Pure.

All three have the same data: the words that may follow each place of the command line (`_places`), and the values of
each option with a fixed set (`_values`). Where anything may follow, the shell offers files.
"""

from collections.abc import Callable, Iterator

from fairlead_cli.parser.tree import Branch, walk

Candidates = list[tuple[str, str]]


def _places(root: Branch) -> Iterator[tuple[str, Candidates, Candidates]]:
    """Yield each place with the words that may follow, and with its options."""
    for branch in walk(root):
        words = [(child.words[-1], child.help) for child in branch.children]
        words += [(choice, "") for argument in branch.arguments if not argument.names for choice in argument.choices]
        options = [(name, argument.help) for argument in branch.arguments for name in argument.names]
        yield " ".join(branch.words), words, [*options, ("--help", "show what it takes")]


def _values(root: Branch) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield each option that takes a value as `PLACE OPTION`, with its possible values; () for any."""
    for branch in walk(root):
        for argument in branch.arguments:
            for name in argument.names:
                if argument.takes_value:
                    yield " ".join((*branch.words, name)), argument.choices


def _names(candidates: Candidates) -> str:
    return " ".join(name for name, _ in candidates)


def _quoted(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "'\\''") + "'"


def bash(root: Branch) -> str:
    """Return the script for bash."""
    return _posix(root, _BASH)


def zsh(root: Branch) -> str:
    """Return the script for zsh."""
    return _posix(root, _ZSH)


def _posix(root: Branch, script: str) -> str:
    """Return the script with the tables as branches of `case`, which bash and zsh read alike."""
    places = list(_places(root))
    return (
        script.replace("@NOUNS@", "|".join(branch.words[0] for branch in root.children if branch.children))
        .replace("@VALUES@", "\n".join(f'        "{at}") values="{" ".join(some)}" ;;' for at, some in _values(root)))
        .replace("@WORDS@", "\n".join(f'        "{at}") candidates="{_names(words)}" ;;' for at, words, _ in places))
        .replace("@OPTIONS@", "\n".join(f'        "{at}") options="{_names(some)}" ;;' for at, _, some in places))
    )


def fish(root: Branch) -> str:
    """Return the script for fish."""
    lines = [_FISH]
    for branch in walk(root):
        place = f"-n '{'__fairlead_at' if branch.children else '__fairlead_in'} {' '.join(branch.words)}'"
        words = [(child.words[-1], child.help) for child in branch.children]
        for argument in branch.arguments:
            words += [(choice, "") for choice in argument.choices if not argument.names]
            names = "".join(f" -{'l' if name.startswith('--') else 's'} {name.lstrip('-')}" for name in argument.names)
            if names:
                value = "-r -F"
                if argument.choices:
                    value = f"-x -a {_quoted(' '.join(argument.choices))}"
                lines.append(
                    f"complete -c fairlead {place}{names} {value if argument.takes_value else ''} "
                    f"-d {_quoted(argument.help)}"
                )
        if words:
            lines += [f"complete -c fairlead {place} -a {word} -d {_quoted(text)}" for word, text in words]
        else:
            lines.append(f"complete -c fairlead {place} -F")
    return "\n".join(lines) + "\n"


_CASES = """\
    case "$at $previous" in
@VALUES@
        *) values="-" ;;
    esac
    case "$at" in
@WORDS@
    esac
    case "$at" in
@OPTIONS@
    esac
"""

_BASH = (
    """\
# Completion of fairlead for bash: source <(fairlead completion bash)
_fairlead() {
    local current="${COMP_WORDS[COMP_CWORD]}" previous="${COMP_WORDS[COMP_CWORD-1]}" at="" values="-"
    local candidates="" options=""
    if ((COMP_CWORD > 1)); then
        at="${COMP_WORDS[1]}"
        case "$at" in
            @NOUNS@) ((COMP_CWORD > 2)) && at="$at ${COMP_WORDS[2]}" ;;
        esac
    fi
"""
    + _CASES
    + """\
    COMPREPLY=()
    if [[ $values != "-" ]]; then
        COMPREPLY=($(compgen -W "$values" -- "$current"))
    elif [[ $current == -* ]]; then
        COMPREPLY=($(compgen -W "$options" -- "$current"))
    else
        COMPREPLY=($(compgen -W "$candidates" -- "$current"))
    fi
}
complete -o default -F _fairlead fairlead
"""
)

_ZSH = (
    """\
#compdef fairlead
# Completion of fairlead for zsh: source <(fairlead completion zsh), after compinit
_fairlead() {
    local current="${words[CURRENT]}" previous="${words[CURRENT-1]}" at="" values="-" options=""
    local candidates=""
    if ((CURRENT > 2)); then
        at="${words[2]}"
        case "$at" in
            @NOUNS@) ((CURRENT > 3)) && at="$at ${words[3]}" ;;
        esac
    fi
"""
    + _CASES
    + """\
    if [[ $values != "-" ]]; then
        if [[ -n $values ]]; then compadd -- ${=values}; else _files; fi
    elif [[ $current == -* ]]; then
        compadd -- ${=options}
    elif [[ -n $candidates ]]; then
        compadd -- ${=candidates}
    else
        _files
    fi
}
compdef _fairlead fairlead
"""
)

_FISH = """\
# Completion of fairlead for fish: fairlead completion fish | source
function __fairlead_in -d 'Whether the command line so far begins with these words'
    set -l words (commandline -opc)
    set -e words[1]
    test (count $words) -ge (count $argv); or return 1
    for index in (seq (count $argv))
        test "$words[$index]" = "$argv[$index]"; or return 1
    end
end
function __fairlead_at -d 'Whether the command line so far is just these words'
    set -l words (commandline -opc)
    set -e words[1]
    test (count $words) -eq (count $argv); and __fairlead_in $argv
end
complete -c fairlead -f
complete -c fairlead -l help -d 'show what it takes'"""

SHELLS: dict[str, Callable[[Branch], str]] = {"bash": bash, "fish": fish, "zsh": zsh}
