#!/usr/bin/env bash
# Made by `course export gradescope`. Gradescope runs it once, when it builds the image.
set -euo pipefail
base="${AUTOGRADER_BASE:-/autograder}"
export DEBIAN_FRONTEND=noninteractive

new_enough() { "$1" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; }

apt-get update
apt-get install -y --no-install-recommends bubblewrap libseccomp2 util-linux python3 python3-venv
python=python3
if ! new_enough "$python"; then # Ubuntu 22.04
    apt-get install -y --no-install-recommends python3.11 python3.11-venv
    python=python3.11
fi

"$python" -m venv "$base/venv"
"$base/venv/bin/python" -m pip install --quiet --requirement "$base/source/requirements.txt"
packages="$("$base/venv/bin/python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')"
echo "$base/source/kit" >"$packages/course-kit.pth"

# A submission runs as an ordinary user; solutions and hidden probes are root's alone.
chmod -R go-rwx "$base/source"

# The last lines of the build's log say whether a sandbox can be made; see docs/ci/gradescope.md.
"$base/venv/bin/python" -m course doctor || true
