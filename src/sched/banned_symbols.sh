#!/bin/sh
# The archives given may not reach for a clock, a thread, a file, a socket or randomness: only then does the
# simulator run the same code as the server. Usage: banned_symbols.sh NM archive...
nm=$1
shift
banned='clock_gettime|gettimeofday|std::chrono|[^a-z_]time$|pthread_|std::thread|std::mutex|condition_variable|futex'
banned="$banned|fopen|fwrite|fread|fprintf|printf|puts$| open(64)?$| read$| write$|std::basic_(if|of|f)stream|std::cout|std::cerr"
banned="$banned|socket$|getrandom|random_device|arc4random| rand(_r)?$|srand|getenv|sleep"
status=0
for archive in "$@"; do
    test -s "$archive" || { echo "no archive at $archive"; exit 1; }
    found=$("$nm" -C --undefined-only "$archive" | grep -E "$banned")
    if [ -n "$found" ]; then
        echo "$archive reaches for:"
        echo "$found"
        status=1
    fi
done
exit $status
