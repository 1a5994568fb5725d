
complete -c fastpath -f -a '(set -l typed (commandline -opc); fastpath complete -- $typed[2..-1] 2>/dev/null)'
