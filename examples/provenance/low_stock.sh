#!/bin/sh
# A tool from before there were envelopes: prints the articles of which fewer than $2 are left in file $1.
set -eu
[ -r "$1" ] || { echo "low_stock: cannot read $1" >&2; exit 2; }
awk -F, -v least="$2" 'NR > 1 && $2 < least { print $1 }' "$1"
