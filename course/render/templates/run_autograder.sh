#!/usr/bin/env bash
# Made by `course export gradescope @CHAPTER@`. Gradescope runs it for each submission.
set -u
base="${AUTOGRADER_BASE:-/autograder}"
options=() # more options for `course grade`; see docs/ci/gradescope.md

# Puts a file where Gradescope looks for results, whole or not at all.
publish() {
    cp "$1" "$base/results/.results.json" &&
        mv -f "$base/results/.results.json" "$base/results/results.json"
}

mkdir -p "$base/results"
publish "$base/source/crashed.json" # what counts if anything below ends early

out="$(mktemp -d)"
"$base/venv/bin/python" -m course --root "$base/source/root" grade "$base/submission" \
    --chapter @CHAPTER@ --out "$out" --format gradescope "${options[@]}"
status=$?

# Every verdict has its document, also "rejected" and "ungradable"; without one the crash stands.
if [ -s "$out/gradescope.json" ]; then
    publish "$out/gradescope.json"
fi
rm -rf "$out"
echo "course grade ended with $status" # for the instructor; students do not see it
exit 0
