
_fastpath_with_names() {
    local -a names
    names=("${(@f)$(fastpath complete -- "${(@Q)words[2,CURRENT-1]}" 2>/dev/null)}")
    names=(${names:#})
    (( $#names )) && compadd -a names
    _fastpath "$@"
}

compdef _fastpath_with_names fastpath
