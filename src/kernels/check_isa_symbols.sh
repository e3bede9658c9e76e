#!/bin/sh
# Fails when an object built for one instruction set defines a symbol that the linker could merge with another unit's.
# usage: check_isa_symbols.sh OBJECT...
status=0
for object in "$@"; do
    weak=$(nm -C --defined-only "$object" | grep -E '^[0-9a-f]* [WVu] ' | grep -vE 'DW\.ref\.|asan|ubsan|sancov')
    if [ -n "$weak" ]; then
        echo "$object defines mergeable symbols:"
        echo "$weak"
        status=1
    fi
    nm --defined-only "$object" | grep -qE ' [DRBV] cadans_kernels_' || { echo "$object holds no kernel table"; status=1; }
done
exit $status
