# For scripts whose switch says on $DIRECTORY/said when it is connected: pings give up after a time, and a controller may take
# longer to start.
mkfifo "$DIRECTORY/said"
wait_for_controller() {
    exec 3<"$DIRECTORY/said"
    while read -r line <&3; do
        echo "$line"
        case $line in *connected) break ;; esac
    done
    cat <&3 >&2 &
}
