#!/usr/bin/env bash
# Fetches htsim at one commit and builds its NDP, outside this tree: tests/peers/htsim.sh FOLDER
#
# Then `make bench BENCH="permutation-1024/ndp --peer FOLDER/sim/datacenter"` times the same job there.
# It needs git, make and a C++ compiler; without optimisation for this machine's kind, as its authors build it.
set -euo pipefail

REPOSITORY=https://github.com/Broadcom/csg-htsim.git
COMMIT=841d9e7be46bb968eece766aa4b6c044c7799f67

folder=${1:?"say where: tests/peers/htsim.sh FOLDER"}
here=$(git -C "$(dirname "$0")" rev-parse --show-toplevel)
mkdir -p "$folder"
folder=$(cd "$folder" && pwd -P)
case "$folder/" in
    "$here/target/"*) ;;
    "$here/"*) echo "$folder is in this tree: name a folder outside it, or under target" >&2; exit 2 ;;
esac

if [ ! -d "$folder/.git" ]; then
    git init --quiet "$folder"
    git -C "$folder" remote add origin "$REPOSITORY"
fi
# The sources alone: experiments beside them are large.
git -C "$folder" sparse-checkout set sim
git -C "$folder" fetch --quiet --depth 1 --filter=blob:none origin "$COMMIT"
git -C "$folder" checkout --quiet --detach "$COMMIT"

make -C "$folder/sim" libhtsim.a
make -C "$folder/sim/datacenter" htsim_ndp
echo "built $folder/sim/datacenter/htsim_ndp"
