#!/usr/bin/env bash
set -euo pipefail
mkdir -p /var/lib/demo
echo "installed on $(hostname)"
