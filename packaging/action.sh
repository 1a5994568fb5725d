#!/usr/bin/env bash
# The step of action.yml: runs the script $RUN in an emulated network.
#
# $SPEC is a network file, with $ON the host on which the script runs. Without it the script runs
# behind one link: $PRESET, $DELAY, $LOSS, $RATE.
set -euo pipefail

fail() {
    echo "action: $1" >&2
    exit 2
}

[ -n "${RUN:-}" ] || fail "the input 'run' is empty: write the command"
link="${PRESET:-}${DELAY:-}${LOSS:-}${RATE:-}"
if [ -n "${SPEC:-}" ]; then
    [ -z "$link" ] || fail "'spec' describes the links: leave out preset, delay, loss and rate"
    [ -f "$SPEC" ] || fail "'spec' is no file: $SPEC"
    words=(lab run "$SPEC" ${ON:+--on "$ON"})
else
    [ -n "$link" ] || fail "write 'spec', 'preset', 'delay', 'loss' or 'rate'"
    [ -z "${ON:-}" ] || fail "'on' is a host of 'spec'"
    words=(shell ${PRESET:+--preset "$PRESET"} ${DELAY:+--delay "$DELAY"} ${LOSS:+--loss "$LOSS"} ${RATE:+--rate "$RATE"})
fi
as_root=()
if [ "$(id -u)" != 0 ] && command -v sudo > /dev/null; then
    as_root=(sudo --preserve-env env "PATH=$PATH")
fi
exec "${as_root[@]}" fastpath "${words[@]}" -- bash -euo pipefail -c "$RUN"
