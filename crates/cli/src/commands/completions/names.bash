
_fastpath_with_names() {
    _fastpath "$@"
    local current="${COMP_WORDS[COMP_CWORD]}" name
    [[ $current == -* ]] && return 0
    while IFS= read -r name; do
        [[ $name == "$current"* ]] && COMPREPLY+=("$(printf '%q' "$name")")
    done < <(fastpath complete -- "${COMP_WORDS[@]:1:COMP_CWORD-1}" 2>/dev/null)
    return 0
}

complete -F _fastpath_with_names -o nosort -o bashdefault -o default fastpath
