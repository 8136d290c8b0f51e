#!/usr/bin/env bash
set -euo pipefail
rm -f /var/lib/demo/joined
echo "$(hostname) left"
