# A long life of a lab: sh soak.sh FASTPATH CYCLES SECONDS. In each cycle the delay of a link changes
# and is measured, a file is fetched from a server that is then killed, and the link is down for a
# sixtieth of the cycle. Prints a line for each cycle.
set -eu
fastpath=$1 cycles=$2 seconds=$3
on() { host=$1; shift; "$fastpath" lab exec "$host" -- "$@"; }
mkdir -p files
head -c 2000000 /dev/urandom > files/file
sum=$(sha256sum < files/file)
start=$(date +%s)
on a ping -q -i 1 -c $((cycles * seconds)) b > pings.txt &
pings=$!
cycle=0
while [ $cycle -lt "$cycles" ]; do
    sleep $((seconds / 6))
    "$fastpath" ctl set r-b --delay 30ms > /dev/null
    sleep $((seconds / 60))
    round=$(on a ping -q -c 3 b | sed -n 's,^rtt [^=]*= [^/]*/\([^/]*\)/.*,\1,p')
    "$fastpath" ctl set r-b --delay 10ms > /dev/null
    on b python3 -m http.server 8000 --directory files > server.txt 2>&1 &
    server=$!
    until on a curl -s -o got http://b:8000/file; do sleep 0.1; done
    same=differs
    [ "$(sha256sum < got)" = "$sum" ] && same=same
    pkill -9 -f 'http.server 8000'
    wait $server || true
    refused=0
    on a curl -s -o nothing http://b:8000/file || refused=$?
    "$fastpath" ctl set r-b --state down > /dev/null
    sleep $((seconds / 60))
    "$fastpath" ctl set r-b --state up > /dev/null
    cycle=$((cycle + 1))
    sleep $((start + cycle * seconds - $(date +%s)))
    memory=$(sed -n 's/^VmRSS:[[:space:]]*\([0-9]*\) kB/\1/p' /proc/$PPID/status)
    set -- /proc/$PPID/fd/*
    echo "cycle $cycle $round $same $refused $memory $#"
done
wait $pings || true
sed -n 's/^\([0-9]*\) packets transmitted, \([0-9]*\) received.*/pings \1 \2/p' pings.txt
