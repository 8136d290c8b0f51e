#!/usr/bin/env bash
set -euo pipefail
rm -rf /var/lib/demo
echo "$(hostname) is blank again"
