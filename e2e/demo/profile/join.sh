#!/usr/bin/env bash
set -euo pipefail
mkdir -p /var/lib/demo
echo "$(hostname) joined as ${KPSSH_NODE_NAME}, run by $(id -un)" | tee /var/lib/demo/joined
