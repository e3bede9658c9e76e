#!/bin/sh
# Deciding is integers in a fixed order: no floating point and no unordered container in the sources given.
# What carries a request's sampling settings or a token's score only passes them on. Usage: banned_words.sh dir...
status=0
for dir in "$@"; do
    for file in "$dir"/*.h "$dir"/*.cpp; do
        case $file in *_test.cpp | *_bench.cpp) continue ;; esac
        if grep -nE '\b(float|double|unordered_[a-z]+|chrono|thread|mutex|random_device|std::rand)\b' "$file" | grep -v '//.*\b\(thread\)'; then
            echo "in $file"
            status=1
        fi
    done
done
exit $status
